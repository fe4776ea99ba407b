import torch


@torch.compile
def forward(x, request_id):
    y = x * 2
    return y, f"done {request_id}"


x = torch.ones(4)
results = []
for number in range(4):
    request_id = f"request-{number}"
    results.append(forward(x, request_id))
