"""The worker of tests/advice for programs of real libraries: without network, and where torchvision can be imported."""

from __future__ import annotations

import os
import warnings

import torch

from tests.advice.worker import main

#: Operators that torchvision describes to torch when it is imported.
TORCHVISION_OPERATORS = ("nms", "qnms")


def define_torchvision_operators() -> torch.library.Library | None:
    """Let torchvision be imported beside a CPU build of torch; None if torch has CUDA.

    The torchvision of PyPI is built for CUDA. Its operators do not load without, and then its import fails, because it
    describes two of them to torch. No program here uses them.
    """
    if torch.version.cuda:
        return None
    library = torch.library.Library("torchvision", "FRAGMENT")
    for name in TORCHVISION_OPERATORS:
        library.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
    return library


if __name__ == "__main__":
    os.environ |= {"HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false"}
    warnings.simplefilter("ignore")
    operators = define_torchvision_operators()
    main()
