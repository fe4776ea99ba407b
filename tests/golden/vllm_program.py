"""A program that vLLM compiles in pieces, on CPU and without vLLM's kernels: see `make_vllm_log.py`.

It has two parts, each with attention-like operators at which vLLM cuts the graph. vLLM switches CUDA graphs off where
there is no GPU; here they are switched on again, because it writes that into its log, and captures none while it
compiles.
"""

import torch
from vllm.compilation.backends import set_model_tag
from vllm.compilation.decorators import support_torch_compile
from vllm.config import VllmConfig, set_current_vllm_config
from vllm.config.compilation import CompilationConfig, CompilationMode, CUDAGraphMode, PassConfig
from vllm.config.device import DeviceConfig
from vllm.config.scheduler import SchedulerConfig
from vllm.forward_context import set_forward_context

#: Passes that need vLLM's own kernels.
NEED_KERNELS = {name: False for name in PassConfig.__dataclass_fields__ if name.startswith(("fuse_", "enable_"))}


@torch.library.custom_op("example::attention", mutates_args=["out"])
def attention(x: torch.Tensor, out: torch.Tensor) -> None:
    out.copy_(x.softmax(-1))


class Layers(torch.nn.Module):
    def __init__(self, count: int):
        super().__init__()
        self.layers = torch.nn.ModuleList(torch.nn.Linear(64, 64) for _ in range(count))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            x = layer(x).relu()
            out = torch.empty_like(x)
            torch.ops.example.attention(x, out)
            x = out * 2
        return x


@support_torch_compile
class Backbone(Layers):
    def __init__(self, *, vllm_config: VllmConfig, prefix: str = ""):
        super().__init__(3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return super().forward(x)


@support_torch_compile
class Head(Layers):
    def __init__(self, *, vllm_config: VllmConfig, prefix: str = ""):
        super().__init__(1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return super().forward(x).tanh()


def main() -> None:
    config = VllmConfig(
        device_config=DeviceConfig(device="cpu"),
        compilation_config=CompilationConfig(
            mode=CompilationMode.VLLM_COMPILE,
            backend="eager",
            compile_sizes=[1, 8],
            compile_ranges_endpoints=[64],
            splitting_ops=["example::attention"],
            pass_config=PassConfig(**NEED_KERNELS),
        ),
        scheduler_config=SchedulerConfig(
            max_num_seqs=8, max_model_len=256, max_num_batched_tokens=256, is_encoder_decoder=False
        ),
    )
    config.compilation_config.cudagraph_mode = CUDAGraphMode.FULL
    with set_current_vllm_config(config), torch.no_grad(), set_forward_context({}, vllm_config=config):
        backbone = Backbone(vllm_config=config)
        with set_model_tag("eagle_head"):
            head = Head(vllm_config=config)
        for size in (16, 8, 100):
            x = torch.randn(size, 64)
            expected = Layers.forward(backbone, x)
            torch.testing.assert_close(backbone(x), expected)
            with set_model_tag("eagle_head"):
                head(expected)


if __name__ == "__main__":
    main()
