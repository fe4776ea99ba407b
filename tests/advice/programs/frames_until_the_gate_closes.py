import torch


class Decoder(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.cell = torch.nn.Linear(4, 4)
        self.gate = torch.nn.Linear(4, 1)

    def decode(self, frame, outputs):
        frame = torch.tanh(self.cell(frame)) + 0.1 * len(outputs)
        return frame, self.gate(frame)

    def forward(self, frame):
        outputs = []
        while True:
            frame, gate = self.decode(frame, outputs)
            outputs.append(frame)
            if gate.mean().item() > 10 or len(outputs) == 6:
                break
        return torch.stack(outputs)


decoder = torch.compile(Decoder())
with torch.no_grad():
    results = [decoder(torch.ones(2, 4)), decoder(torch.zeros(2, 4))]
