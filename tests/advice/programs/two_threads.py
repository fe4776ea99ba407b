import threading

import torch


@torch.compile
def scale(x):
    return x * 2


results = []


def serve():
    results.append(scale(torch.ones(4)))


with torch.no_grad():
    serve()
    thread = threading.Thread(target=serve)
    thread.start()
    thread.join()
