"""Serves a small language model with three LoRA adapters, one after the other."""

import torch
from peft import LoraConfig, get_peft_model
from transformers import GPT2Config, GPT2LMHeadModel

base = GPT2LMHeadModel(GPT2Config(vocab_size=64, n_positions=64, n_embd=32, n_layer=2, n_head=2)).eval()
config = LoraConfig(r=4, target_modules=["c_attn"], fan_in_fan_out=True, init_lora_weights=False)
model = get_peft_model(base, config, adapter_name="english")
model.add_adapter("french", config)
model.add_adapter("german", config)
answer = torch.compile(model)

ids = torch.randint(0, 64, (2, 16))
results = []
with torch.no_grad():
    for language in ("english", "french", "german"):
        model.set_adapter(language)
        results.append(answer(input_ids=ids).logits)
