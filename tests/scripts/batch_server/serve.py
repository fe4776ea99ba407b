"""Serve embeddings from a thread pool: requests are padded to one shape, and the model is warmed up before it serves.

After https://github.com/pytorch/pytorch/issues/188150 (pad to a fixed length) and
https://github.com/Nerogar/OneTrainer/pull/1495 (each thread has its own settings of Dynamo).
"""

import argparse
import queue
import threading
from concurrent.futures import Future, ThreadPoolExecutor

import torch
from torch import nn
from torch.nn import functional as F

PAD = 0


class Encoder(nn.Module):
    def __init__(self, vocabulary=128, width=24, depth=2, max_length=16):
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, width, padding_idx=PAD)
        self.positions = nn.Parameter(torch.randn(max_length, width) * 0.02)
        self.layers = nn.ModuleList(nn.Linear(width, width) for _ in range(depth))
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(depth))

    def forward(self, tokens):
        mask = tokens.ne(PAD).unsqueeze(-1)
        x = self.embedding(tokens) + self.positions
        for layer, norm in zip(self.layers, self.norms, strict=True):
            context = (x * mask).sum(1, keepdim=True) / mask.sum(1, keepdim=True).clamp(min=1)
            x = x + F.gelu(layer(norm(x + context)))
        pooled = (x * mask).sum(1) / mask.sum(1).clamp(min=1)
        return F.normalize(pooled, dim=-1)


class Batcher:
    """Collects requests until a batch is full or a moment has passed, and pads to (batch_size, max_length)."""

    def __init__(self, model, batch_size, max_length, backend):
        self.model = torch.compile(model.eval(), backend=backend, fullgraph=True)
        self.shape = (batch_size, max_length)
        self.queue = queue.Queue()
        self.batches = 0
        self.lock = threading.Lock()
        self.thread = threading.Thread(target=self.loop, daemon=True)

    def __enter__(self):
        self.run([])  # warm up with the shape that is served
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.queue.put(None)
        self.thread.join()

    def embed(self, tokens):
        future = Future()
        self.queue.put((tokens, future))
        return future.result(timeout=60)

    def loop(self):
        while (first := self.queue.get()) is not None:
            batch = [first]
            while len(batch) < self.shape[0]:
                try:
                    item = self.queue.get(timeout=0.01)
                except queue.Empty:
                    break
                if item is None:
                    self.queue.put(None)
                    break
                batch.append(item)
            rows = self.run([tokens for tokens, _ in batch])
            for (_, future), row in zip(batch, rows, strict=False):
                future.set_result(row)

    @torch.inference_mode()
    def run(self, requests):
        padded = torch.full(self.shape, PAD)
        for row, tokens in enumerate(requests):
            length = min(len(tokens), self.shape[1])
            padded[row, :length] = torch.tensor(tokens[:length])
        with self.lock:
            self.batches += bool(requests)
            return self.model(padded)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--clients", type=int, default=6)
    parser.add_argument("--requests", type=int, default=30)
    parser.add_argument("--backend", default="aot_eager")
    args = parser.parse_args()

    torch.manual_seed(0)
    requests = [[1 + (i * 7 + j * 3) % 127 for j in range(2 + i % 13)] for i in range(args.requests)]
    with (
        Batcher(Encoder(), batch_size=4, max_length=16, backend=args.backend) as batcher,
        ThreadPoolExecutor(args.clients) as clients,
    ):
        vectors = list(clients.map(batcher.embed, requests))
    for number, vector in enumerate(vectors):
        print(number, " ".join(f"{value:.4f}" for value in vector[:4].tolist()))


if __name__ == "__main__":
    main()
