"""Record a vision transformer that is tuned, on a GPU: `python notebooks/record_vit.py OUT.cdiag`.

It is one of transformers, with random weights, in mode "max-autotune". The last batch is smaller than the others.
The session is in the documentation's gallery (`make gallery`).
"""

from pathlib import Path

import torch
from transformers import ViTConfig, ViTModel

import compilediag as cd

CONFIG = ViTConfig(hidden_size=384, num_hidden_layers=4, num_attention_heads=6, intermediate_size=1536, image_size=96)
#: Sizes of the batches.
SIZES = (16, 16, 16, 5)


def record(path):
    """Record the calls in the session file `path`."""
    torch.manual_seed(0)
    model = ViTModel(CONFIG).cuda().to(torch.bfloat16).eval()
    encode = torch.compile(model, mode="max-autotune")
    with cd.watch(path, detail="lean") as session, torch.no_grad():
        for size in SIZES:
            images = torch.randn(size, 3, 96, 96, device="cuda", dtype=torch.bfloat16)
            torch.compiler.cudagraph_mark_step_begin()
            encode(pixel_values=images)
    print(session.summary())
    print(f"{path}: {Path(path).stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    from recording import main

    main(__file__, __doc__)
