"""Sample from a decoder with a cache of fixed size: prefill and decode are compiled apart, positions are tensors.

After https://github.com/huggingface/transformers/pull/29114 (static caches and `torch.compile`),
https://github.com/meta-pytorch/torchtune/pull/1663 (a cache size that is an int recompiles) and
https://github.com/WhisperSpeech/WhisperSpeech/issues/44 (temperature as a tensor).
"""

import argparse

import torch
from torch import nn
from torch.nn import functional as F


class StaticCache(nn.Module):
    def __init__(self, batch, heads, length, dim):
        super().__init__()
        self.register_buffer("keys", torch.zeros(batch, heads, length, dim))
        self.register_buffer("values", torch.zeros(batch, heads, length, dim))

    def update(self, positions, k, v):
        self.keys.index_copy_(2, positions, k)
        self.values.index_copy_(2, positions, v)
        return self.keys, self.values

    def reset(self):
        self.keys.zero_()
        self.values.zero_()


class Layer(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width))
        self.cache = None

    def forward(self, x, positions, mask):
        batch, length, width = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(batch, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        k, v = self.cache.update(positions, k, v)
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        x = x + self.out(y.transpose(1, 2).reshape(batch, length, width))
        return x + self.mlp(self.norm2(x))


class Decoder(nn.Module):
    def __init__(self, vocabulary, width=32, heads=4, depth=2, max_length=48):
        super().__init__()
        self.max_length = max_length
        self.embedding = nn.Embedding(vocabulary, width)
        self.position = nn.Embedding(max_length, width)
        self.layers = nn.ModuleList(Layer(width, heads) for _ in range(depth))
        self.head = nn.Linear(width, vocabulary)
        self.register_buffer("causal", torch.ones(max_length, max_length, dtype=torch.bool).tril())

    def setup_caches(self, batch):
        for layer in self.layers:
            width = layer.out.in_features
            layer.cache = StaticCache(batch, layer.heads, self.max_length, width // layer.heads)

    def forward(self, tokens, positions):
        x = self.embedding(tokens) + self.position(positions)
        mask = self.causal[positions][None, None]
        for layer in self.layers:
            x = layer(x, positions, mask)
        return self.head(x[:, -1])


def sample(logits, temperature, noise):
    """Gumbel sampling; all of its numbers are tensors."""
    return (logits / temperature - torch.log(-torch.log(noise))).argmax(-1, keepdim=True)


def prefill(model, tokens, positions, temperature, noise):
    return sample(model(tokens, positions), temperature, noise)


def decode_one_token(model, token, position, temperature, noise):
    return sample(model(token, position), temperature, noise)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--count", type=int, default=16)
    parser.add_argument("--prompt-length", type=int, default=8)
    parser.add_argument("--temperatures", type=float, nargs="+", default=[0.5, 0.8, 1.2])
    parser.add_argument("--backend", default="inductor")
    args = parser.parse_args()

    torch.manual_seed(0)
    vocabulary, batch = 53, 2
    model = Decoder(vocabulary).eval()
    model.setup_caches(batch)
    compiled_prefill = torch.compile(prefill, backend=args.backend, fullgraph=True)
    compiled_decode = torch.compile(decode_one_token, backend=args.backend, fullgraph=True)
    generator = torch.Generator().manual_seed(1)

    with torch.no_grad():
        for value in args.temperatures:
            temperature = torch.tensor(value)
            for layer in model.layers:
                layer.cache.reset()
            prompt = torch.randint(0, vocabulary, (batch, args.prompt_length), generator=generator)
            noise = torch.rand(args.count, batch, vocabulary, generator=generator).clamp(1e-6, 1 - 1e-6)
            token = compiled_prefill(model, prompt, torch.arange(args.prompt_length), temperature, noise[0])
            tokens = [token]
            position = torch.tensor([args.prompt_length])
            for index in range(1, args.count):
                token = compiled_decode(model, token.clone(), position, temperature, noise[index])
                tokens.append(token)
                position = position + 1
            for row in torch.cat(tokens, dim=1).tolist():
                print(value, *row)


if __name__ == "__main__":
    main()
