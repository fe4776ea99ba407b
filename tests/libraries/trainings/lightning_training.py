"""Trains a small network with Lightning and LightningCallback; a program for tests.

python lightning_training.py lightning.pytorch|pytorch_lightning FOLDER DEVICES [raise]
"""

import importlib
import json
import pickle
import sys

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from tests.libraries.library_worker import define_torchvision_operators

OPERATORS = define_torchvision_operators()


def main(name, folder, devices, ending=None):
    L = importlib.import_module(name)
    CSVLogger = importlib.import_module(f"{name}.loggers").CSVLogger

    from compilediag.integrations import LightningCallback

    class Classifier(L.LightningModule):
        def __init__(self):
            super().__init__()
            self.net = torch.compile(nn.Linear(8, 3), backend="eager", dynamic=False)

        def training_step(self, batch, batch_idx):
            if ending == "raise" and batch_idx == 2:
                raise ValueError("mine")
            x, y = batch
            loss = nn.functional.cross_entropy(self.net(x[: 8 - batch_idx]), y[: 8 - batch_idx])
            self.log("train_loss", loss)
            return loss

        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), lr=0.1)

    callback = LightningCallback(f"{folder}/run.cdiag", report=f"{folder}/run.html")
    assert isinstance(callback, L.Callback) and isinstance(pickle.loads(pickle.dumps(callback)), L.Callback)
    trainer = L.Trainer(
        max_epochs=1,
        accelerator="cpu",
        devices=int(devices),
        strategy="ddp" if int(devices) > 1 else "auto",
        logger=CSVLogger(folder, name="log", version=0),
        callbacks=[callback],
        log_every_n_steps=2,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    data = TensorDataset(torch.randn(32 * int(devices), 8), torch.randint(0, 3, (32 * int(devices),)))
    try:
        trainer.fit(Classifier(), DataLoader(data, batch_size=8))
    except ValueError as error:
        assert str(error) == "mine"
    if trainer.is_global_zero:
        print("RESULT", json.dumps({"session": str(callback.session.path), "state": callback.session.state}))


if __name__ == "__main__":
    main(*sys.argv[1:])
