"""Generates text from prompts of several lengths with a static cache; generate compiles the decoding by itself."""

import torch
from transformers import CompileConfig, LlamaConfig, LlamaForCausalLM

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
compiling = CompileConfig(backend="eager", mode=None, fullgraph=False)
compiling._compile_all_devices = True  # generate compiles on a GPU by itself, and on a CPU only if asked

results = []
for new_tokens in (4, 6, 9):
    prompt = torch.randint(1, 64, (2, 5))
    results.append(
        model.generate(
            prompt,
            max_new_tokens=new_tokens,
            do_sample=False,
            cache_implementation="static",
            compile_config=compiling,
        )
    )
