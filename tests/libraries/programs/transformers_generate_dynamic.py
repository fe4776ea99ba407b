"""Generates text from prompts of several lengths, with the cache that generate uses by default, which grows."""

import torch
from transformers import LlamaConfig, LlamaForCausalLM

model = LlamaForCausalLM(
    LlamaConfig(
        vocab_size=64,
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=2,
        pad_token_id=0,
    )
).eval()
model.forward = torch.compile(model.forward)

results = []
for length in (5, 9, 14):
    prompt = torch.randint(1, 64, (2, length))
    results.append(model.generate(prompt, max_new_tokens=4, do_sample=False))
