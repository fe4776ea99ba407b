"""Train a small BERT of transformers on padded batches of one size; validation uses the eager model.

After https://github.com/pytorch/pytorch/issues/188150 (dynamic padding compiles again at each batch: pad to one length)
and https://github.com/saforem2/ezpz/pull/190 (`drop_last=True` for a compiled model).
"""

import argparse
from functools import partial

import torch
from torch import nn
from torch.utils.data import DataLoader
from transformers import BertConfig, BertForSequenceClassification

VOCABULARY = 60
PAD = 0


def make_sentences(count, seed):
    """Sentences of random lengths; the label says whether the token 7 occurs."""
    generator = torch.Generator().manual_seed(seed)
    sentences = []
    for index in range(count):
        length = int(torch.randint(4, 15, (1,), generator=generator))
        tokens = torch.randint(8, VOCABULARY, (length,), generator=generator)
        if index % 2:
            tokens[int(torch.randint(0, length, (1,), generator=generator))] = 7
        sentences.append((tokens, index % 2))
    return sentences


def pad_batch(batch, max_length):
    """Pads each batch to `max_length`, not to its longest sentence."""
    tokens = torch.full((len(batch), max_length), PAD)
    for row, (sentence, _) in enumerate(batch):
        tokens[row, : len(sentence)] = sentence
    return {
        "input_ids": tokens,
        "attention_mask": tokens.ne(PAD).long(),
        "labels": torch.tensor([label for _, label in batch]),
    }


def make_model(max_length):
    config = BertConfig(
        vocab_size=VOCABULARY,
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=64,
        max_position_embeddings=max_length,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
        problem_type="single_label_classification",
        num_labels=2,
    )
    return BertForSequenceClassification(config)


def learning_rate(step, warmup, total):
    if step < warmup:
        return (step + 1) / warmup
    return max(0.0, (total - step) / (total - warmup))


@torch.no_grad()
def validate(model, loader):
    model.eval()
    right = count = 0
    for batch in loader:
        logits = model(**batch).logits
        right += (logits.argmax(-1) == batch["labels"]).sum().item()
        count += len(logits)
    model.train()
    return right / count


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--batch-size", type=int, default=16)
    parser.add_argument("--max-length", type=int, default=16)
    parser.add_argument("--lr", type=float, default=5e-3)
    parser.add_argument("--backend", default="aot_eager")
    args = parser.parse_args()

    torch.manual_seed(0)
    collate = partial(pad_batch, max_length=args.max_length)
    train_loader = DataLoader(
        make_sentences(70, seed=1), args.batch_size, shuffle=True, drop_last=True, collate_fn=collate
    )
    valid_loader = DataLoader(make_sentences(24, seed=2), args.batch_size, collate_fn=collate)
    model = make_model(args.max_length).train()
    train_model = torch.compile(model, backend=args.backend)
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr, weight_decay=0.01)
    total = args.epochs * len(train_loader)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, partial(learning_rate, warmup=2, total=total))
    for epoch in range(args.epochs):
        losses = []
        for batch in train_loader:
            loss = train_model(**batch).loss
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad()
            schedule.step()
            losses.append(loss.item())
        print(f"epoch {epoch} loss {sum(losses) / len(losses):.4f} accuracy {validate(model, valid_loader):.4f}")


if __name__ == "__main__":
    main()
