import torch


@torch.compile
def project(x):
    return x @ x


x = torch.ones(4, 4)
results = [project(x)]
torch.backends.cuda.matmul.allow_tf32 = not torch.backends.cuda.matmul.allow_tf32
results.append(project(x))
torch.backends.cuda.matmul.allow_tf32 = not torch.backends.cuda.matmul.allow_tf32
