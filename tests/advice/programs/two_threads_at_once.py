import threading

import torch


@torch.compile
def scale(x):
    for _ in range(200):
        x = x * 2
    return x


start = threading.Barrier(2)
results = []


def serve():
    x = torch.ones(4)
    start.wait()
    results.append(scale(x))


threads = [threading.Thread(target=serve) for _ in range(2)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
