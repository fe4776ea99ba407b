import torch


@torch.compile
def project(x):
    return x @ x


x = torch.ones(4, 4)
matmul = torch.backends.cuda.matmul
results = [project(x)]
matmul.allow_bf16_reduced_precision_reduction = False
results.append(project(x))
matmul.allow_bf16_reduced_precision_reduction = True
