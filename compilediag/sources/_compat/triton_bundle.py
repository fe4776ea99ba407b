"""The bundles of compiled triton kernels within FxGraphCache's entries. Read in torch 2.11.0 and 2.13.0."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

from . import class_with


def bundler() -> type:
    """The class whose `collect()` makes a bundle and whose `read_and_emit(bundle)` puts its files in place."""
    names = ("collect", "load_autotuners", "read_and_emit")
    return class_with("torch._inductor.triton_bundler", "TritonBundler", *names)


def kernel_columns(artifacts: list[Any]) -> dict[str, int]:
    """kernels, files and bytes of the kernels of a bundle."""
    files = [artifact for kernel in artifacts for artifact in kernel.artifacts]
    return {
        "kernels": len(artifacts),
        "files": len(files),
        "bytes": sum(len(artifact.payload) for artifact in files),
    }


def put_in_place(bundle: Any, metadata: Any) -> list[Any]:
    """The kernels of a bundle whose files were written; those of the others were there.

    torch gives the names of what it wrote, one for each file of machine code, in the order of the bundle.
    """
    names = Counter(metadata.cached_kernel_names)
    found = []
    for kernel in bundle.kernel_artifacts:
        stems = {Path(artifact.filename).stem for artifact in kernel.artifacts}
        written = next((stem for stem in stems if names[stem]), None)
        if written is not None:
            names[written] -= 1
            found.append(kernel)
    return found
