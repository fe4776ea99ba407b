"""Serve a text classifier: one thread tokenizes, one batches and runs the compiled model, clients wait for answers.

After https://github.com/mstar-project/mstar/issues/167 and https://github.com/pytorch/pytorch/issues/186537
(settings of Dynamo that the main thread makes are not those of the thread that compiles) and
https://github.com/pytorch/pytorch/issues/128319 (a counter of a module).
"""

import argparse
import concurrent.futures
import queue
import threading
import zlib

import torch
from torch import nn

# We have seen "hit config.recompile_limit (8)" in production, so allow more.
torch._dynamo.config.recompile_limit = 64
torch._dynamo.config.allow_unspec_int_on_nn_module = True

VOCABULARY = 97


class Classifier(nn.Module):
    def __init__(self, width=32, classes=4):
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, width, padding_idx=0)
        self.conv = nn.Conv1d(width, width, 3, padding=1)
        self.attention = nn.Linear(width, 1)
        self.head = nn.Linear(width, classes)
        self.served = 0

    def forward(self, tokens):
        self.served += 1
        mask = tokens.ne(0)
        x = self.embedding(tokens)
        x = x + torch.relu(self.conv(x.transpose(1, 2))).transpose(1, 2)
        weights = self.attention(x).squeeze(-1).masked_fill(~mask, float("-inf")).softmax(-1)
        return self.head((weights.unsqueeze(-1) * x).sum(1)).softmax(-1)


def tokenize(text):
    return [1 + zlib.crc32(word.encode()) % (VOCABULARY - 1) for word in text.split()]


class Server:
    def __init__(self, model, batch_size, backend):
        self.model = model.eval()
        self.compiled = torch.compile(self.model, backend=backend)
        self.batch_size = batch_size
        self.texts = queue.Queue()
        self.requests = queue.Queue()
        self.threads = [
            threading.Thread(target=self.tokenizer_loop, name="tokenizer", daemon=True),
            threading.Thread(target=self.model_loop, name="model", daemon=True),
        ]

    def start(self):
        for thread in self.threads:
            thread.start()

    def stop(self):
        self.texts.put(None)
        for thread in self.threads:
            thread.join()

    def submit(self, text):
        future = concurrent.futures.Future()
        self.texts.put((text, future))
        return future

    def tokenizer_loop(self):
        while (item := self.texts.get()) is not None:
            text, future = item
            self.requests.put((tokenize(text), future))
        self.requests.put(None)

    def model_loop(self):
        done = False
        while not done:
            batch = []
            while len(batch) < self.batch_size:
                item = self.requests.get()
                if item is None:
                    done = True
                    break
                batch.append(item)
            if batch:
                self.answer(batch)

    @torch.inference_mode()
    def answer(self, batch):
        longest = max(len(tokens) for tokens, _ in batch)
        rows = [tokens + [0] * (longest - len(tokens)) for tokens, _ in batch]
        try:
            probabilities = self.compiled(torch.tensor(rows))
        except Exception as error:
            for _, future in batch:
                future.set_exception(error)
            return
        for (_, future), row in zip(batch, probabilities, strict=True):
            future.set_result(row)


WORDS = (
    "the model answers a question about tensors and graphs",
    "while somebody waits for it to compile",
)


def make_texts(count):
    words = " ".join(WORDS).split()
    return [" ".join(words[(i * 5 + j) % len(words)] for j in range(3 + (i * 7) % 11)) for i in range(count)]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--requests", type=int, default=38)
    parser.add_argument("--batch-size", type=int, default=4)
    parser.add_argument("--backend", default="aot_eager")
    args = parser.parse_args()

    torch.manual_seed(0)
    model = Classifier()
    server = Server(model, args.batch_size, args.backend)
    server.start()
    futures = [server.submit(text) for text in make_texts(args.requests)]
    server.stop()
    for number, future in enumerate(futures):
        row = future.result(timeout=60)
        print(number, row.argmax().item(), " ".join(f"{p:.4f}" for p in row.tolist()))
    print(f"{model.served} batches")


if __name__ == "__main__":
    main()
