"""Several turns of a chat with a small Llama of transformers; the cache grows from turn to turn.

After https://github.com/huggingface/transformers/pull/40328 (`torch.compile` and `DynamicCache`) and
https://github.com/Lightning-AI/litgpt/pull/1583 (the cache of a chat grows with each turn).
"""

import argparse

import torch
from transformers import DynamicCache, LlamaConfig, LlamaForCausalLM


def make_model(seed):
    torch.manual_seed(seed)
    config = LlamaConfig(
        vocab_size=64,
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=1,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=256,
    )
    return LlamaForCausalLM(config).eval()


class Chat:
    """Keeps the cache between turns, so that only new tokens are computed."""

    def __init__(self, model, backend):
        self.model = model
        self.forward = torch.compile(model.forward, backend=backend)
        self.cache = DynamicCache(config=model.config)
        self.tokens = 0

    def step(self, tokens):
        positions = torch.arange(self.tokens, self.tokens + tokens.shape[1]).unsqueeze(0)
        out = self.forward(input_ids=tokens, position_ids=positions, past_key_values=self.cache, use_cache=True)
        self.tokens += tokens.shape[1]
        return out.logits[:, -1]

    @torch.inference_mode()
    def answer(self, prompt, count, penalty):
        """Greedy, but a token that was just used is less likely."""
        logits = self.step(prompt)
        answer = []
        for _ in range(count):
            for token in answer[-3:]:
                logits[0, token] -= penalty
            token = logits.argmax(-1, keepdim=True)
            answer.append(token.item())
            logits = self.step(token)
        return answer


def encode(text):
    return torch.tensor([[ord(letter) % 64 for letter in text]])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--count", type=int, default=6)
    parser.add_argument("--penalty", type=float, default=0.5)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--backend", default="aot_eager")
    args = parser.parse_args()

    chat = Chat(make_model(args.seed), args.backend)
    for turn, text in enumerate(["hello", "how are you today?", "and why?", "tell me more about it"]):
        answer = chat.answer(encode(text), args.count, args.penalty)
        print(turn, chat.tokens, *answer)


if __name__ == "__main__":
    main()
