"""Settings of torch.compile for all services."""

import torch
import torch._dynamo

torch._dynamo.config.specialize_int = True
torch._dynamo.config.recompile_limit = 8
BACKEND = "aot_eager"
