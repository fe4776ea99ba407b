"""What libraries offer against recompiles, as data, and how to recognize that it applies.

Each recipe names the program whose test follows it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Recipe:
    """One way of a library to avoid recompiles. Recipes are data: adding one needs no code.

    It applies if a function in a folder of `packages` recompiled, the advice has one of `rules`, and the regular
    expressions `source` (the guarded value) and `call` (the user's own call) match. `action` is what to do, and `why`
    replaces the explanation, if it is another one. `follows` matches the guarded values that change with `source`, as a
    part of the same change. With `is_partial` it removes some of the recompiles, and a plan claims none; with
    `removes_expected` it removes those that are expected without it. `program` names the program in tests/libraries
    whose test follows it.
    """

    name: str
    packages: tuple[str, ...]
    rules: tuple[str, ...]
    action: str
    program: str
    source: str = ""
    call: str = ""
    why: str = ""
    follows: str = ""
    is_partial: bool = False
    removes_expected: bool = False

    def is_of(self, file: str | None) -> bool:
        """True if a file is in a folder of its packages."""
        path = (file or "").replace("\\", "/")
        return any(f"/{package}/" in path for package in self.packages)

    def fits(self, rule: str, source: str, call: str | None, files: tuple[str, ...]) -> bool:
        """True if it applies to a cause: the rule of its advice, its value, the user's call, and the files it is in."""
        return (
            rule in self.rules
            and self.is_about(source, files)
            and (not self.call or re.search(self.call, call or "", re.DOTALL) is not None)
        )

    def is_about(self, source: str, files: Iterable[str | None]) -> bool:
        """True if it is about a guarded value of functions in these files."""
        return any(map(self.is_of, files)) and re.search(self.source, source) is not None


_SIZES = ("size_changes", "size_zero_one", "specialized")

RECIPES: tuple[Recipe, ...] = (
    Recipe(
        name="transformers_static_cache_length",
        packages=("transformers",),
        rules=_SIZES,
        source=r"past_key_values.*\.size\(\)\[2\]",
        call=r"\bgenerate\(.*static",
        action="Give every call the same cache length, that of the longest text: generate(..., max_cache_len=length).",
        program="transformers_generate_static",
    ),
    Recipe(
        name="transformers_trainer_last_batch",
        packages=("transformers",),
        rules=_SIZES,
        source=r"\.size\(\)\[0\]",
        call=r"\btrain\(",
        action="Skip the short last batch: TrainingArguments(..., dataloader_drop_last=True).",
        program="transformers_trainer",
    ),
    Recipe(
        name="transformers_trainer_padding",
        packages=("transformers",),
        rules=_SIZES,
        source=r"\.size\(\)\[1\]",
        call=r"\btrain\(",
        action="Pad all batches to one length, or to few: DataCollatorWithPadding(tokenizer, pad_to_multiple_of=128).",
        program="transformers_trainer",
    ),
    Recipe(
        name="transformers_problem_type",
        packages=("transformers",),
        rules=("optional_argument",),
        source=r"\bconfig\.problem_type$",
        action="Set it before the first call, as the number of labels needs: "
        'model.config.problem_type = "single_label_classification".',
        why="The first call with labels sets it, so the second call is compiled again.",
        removes_expected=True,
        program="transformers_trainer",
    ),
    Recipe(
        name="peft_adapter_switch",
        packages=("peft",),
        rules=("string_changes", "value_changes"),
        source=r"active_adapter",
        follows=r"active_adapter|\.lora_\w+\.",
        action="Keep one adapter and swap its weights: peft.utils.hotswap.hotswap_adapter(model, path, adapter_name).",
        why="The name of the adapter is compiled in, and which of the adapters have gradients.",
        program="peft_adapters",
    ),
    Recipe(
        name="peft_lora_scale",
        packages=("peft", "diffusers"),
        rules=("float_changes",),
        source=r"\.scaling\[",
        action="Give the scale as a tensor at every call: set_adapters([name], [torch.tensor(scale)]).",
        program="diffusers_lora_scale",
    ),
    Recipe(
        name="diffusers_repeated_blocks",
        packages=("diffusers",),
        rules=("size_changes",),
        source=r"hidden_states",
        action="Compile one block of each kind, for all sizes: model.compile_repeated_blocks(dynamic=True).",
        program="diffusers_transformer",
    ),
    Recipe(
        name="timm_image_sizes",
        packages=("timm",),
        rules=("specialized",),
        source=r"\.size\(\)\[[23]\]",
        action="Let timm pad the images, timm.create_model(..., dynamic_img_pad=True), and mark both sizes as dynamic.",
        why="Without padding, timm writes the sizes into the message of an assertion, which needs them as numbers. The "
        "size of the model itself is still compiled on its own.",
        is_partial=True,
        program="timm_train",
    ),
    Recipe(
        name="lightning_module",
        packages=("lightning/pytorch", "pytorch_lightning"),
        rules=("compile_failed",),
        source=r"^(?:training|validation|test|predict)_step$",
        action="Compile the network, not the LightningModule: self.net = torch.compile(self.net) in its __init__.",
        why="self.log and others look at the program's functions, which torch cannot trace.",
        program="lightning_module",
    ),
    Recipe(
        name="torch_one_cycle_momentum",
        packages=("torch/optim",),
        rules=("float_changes", "optimizer_number"),
        source=r"\['betas'\]",
        action="Keep the momentum fixed, which changes the training: OneCycleLR(..., cycle_momentum=False).",
        why="The compiled step needs the momentum as a Python number, so each value is compiled on its own. A tensor "
        "is no way out: the scheduler replaces it by a float.",
        program="optimizer_one_cycle",
    ),
)


def find_recipe(rule: str, source: str, call: str | None, files: tuple[str, ...]) -> Recipe | None:
    """The first recipe that applies to a cause; None if there is none."""
    return next((recipe for recipe in RECIPES if recipe.fits(rule, source, call, files)), None)
