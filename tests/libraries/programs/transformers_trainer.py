"""Fine-tunes a classifier with transformers' Trainer: texts of several lengths, and a short last batch."""

import math
import tempfile

import torch
from transformers import BertConfig, BertForSequenceClassification, PrinterCallback, Trainer, TrainingArguments

LENGTHS = [12, 12, 12, 12, 20, 20, 20, 20, 28, 28, 28, 28, 36, 36, 36, 36, 44, 44]


def make_text(length):
    return {"input_ids": torch.randint(1, 64, (length,)).tolist(), "label": length % 2}


def pad(texts):
    longest = max(len(text["input_ids"]) for text in texts)
    ids = torch.zeros(len(texts), longest, dtype=torch.long)
    for row, text in enumerate(texts):
        ids[row, : len(text["input_ids"])] = torch.tensor(text["input_ids"])
    labels = torch.tensor([text["label"] for text in texts])
    return {"input_ids": ids, "attention_mask": (ids != 0).long(), "labels": labels}


model = BertForSequenceClassification(
    BertConfig(
        vocab_size=64,
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        max_position_embeddings=128,
        intermediate_size=64,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
    )
)
arguments = TrainingArguments(
    output_dir=tempfile.mkdtemp(),
    torch_compile=True,
    torch_compile_backend="aot_eager",
    per_device_train_batch_size=4,
    num_train_epochs=1,
    train_sampling_strategy="sequential",
    save_strategy="no",
    logging_strategy="no",
    report_to="none",
    disable_tqdm=True,
    use_cpu=True,
)
trainer = Trainer(
    model=model,
    args=arguments,
    train_dataset=[make_text(length) for length in LENGTHS],
    data_collator=pad,
)
trainer.remove_callback(PrinterCallback)
results = [math.isfinite(trainer.train().training_loss)]
