"""Trains a small classifier with transformers' Trainer and TransformersCallback; a program for tests.

python transformers_training.py FOLDER [--track]

With --track, Weights & Biases and MLflow have a run each, without a server; the files are attached to both.
Prints, as JSON, what a logger that comes before the callback was given, and what the trainer's history has.
"""

import json
import os
import sys

import torch

from tests.libraries.library_worker import define_torchvision_operators

OPERATORS = define_torchvision_operators()  # transformers imports torchvision.

from transformers import (  # noqa: E402
    BertConfig,
    BertForSequenceClassification,
    Trainer,
    TrainerCallback,
    TrainingArguments,
)

from compilediag.integrations import TransformersCallback  # noqa: E402

LENGTHS = [12, 12, 20, 20, 28, 28, 36, 36] * 2


class Logger(TrainerCallback):
    """What an integration such as TensorBoard's does: it reads the logs on rank zero."""

    def __init__(self):
        self.seen = []

    def on_log(self, args, state, control, logs=None, **kwargs):
        if state.is_world_process_zero:
            self.seen.append({"step": state.global_step, **logs})


def make_text(length):
    return {"input_ids": torch.randint(1, 64, (length,)), "labels": length % 2}


def collate(texts):
    ids = torch.stack([text["input_ids"] for text in texts])
    return {"input_ids": ids, "labels": torch.tensor([text["labels"] for text in texts])}


def main(folder, *options):
    if options:
        os.environ["MLFLOW_ALLOW_FILE_STORE"] = "true"
        import mlflow
        import wandb

        wandb.init(mode="offline", dir=folder, settings=wandb.Settings(silent=True))
        mlflow.set_tracking_uri(f"file:{folder}/mlruns")
        mlflow.start_run()
    config = BertConfig(vocab_size=64, hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16)
    arguments = TrainingArguments(
        output_dir=folder,
        torch_compile=True,
        torch_compile_backend="eager",
        per_device_train_batch_size=2 // int(os.environ.get("WORLD_SIZE", "1")),
        num_train_epochs=1,
        train_sampling_strategy="sequential",
        save_strategy="no",
        logging_steps=2,
        report_to="none",
        disable_tqdm=True,
        use_cpu=True,
    )
    files = {"path": f"{folder}/run.cdiag", "report": f"{folder}/run.html"}
    callback, logger = TransformersCallback(**files, attach=bool(options)), Logger()
    trainer = Trainer(
        model=BertForSequenceClassification(config),
        args=arguments,
        train_dataset=[make_text(length) for length in LENGTHS],
        data_collator=collate,
        callbacks=[logger, callback],
    )
    trainer.train()
    result = {"seen": logger.seen, "history": trainer.state.log_history, "session": str(callback.session.path)}
    if trainer.is_world_process_zero():
        print("RESULT", json.dumps(result))


if __name__ == "__main__":
    main(*sys.argv[1:])
