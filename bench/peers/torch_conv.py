#!/usr/bin/env python3
"""PyTorch's convolutions (oneDNN) on one thread: one JSON line with the microseconds a picture of each product of each layer.

torch_conv.py LAYERS.json, a list as `tutti bench conv --output json` has it. Of a batch of 32 pictures, as [N][C][H][W] and as channels
last, whichever is faster; the median of seven runs.
"""
import json
import statistics
import sys
import time

import torch

ROWS = 32
RUNS = 7
SECONDS = 0.3


def median_us(work):
    """Of one call, in as many calls a run as fill its time."""
    work()
    start = time.perf_counter()
    work()
    count = max(1, int(SECONDS / RUNS / max(time.perf_counter() - start, 1e-7)))
    runs = []
    for _ in range(RUNS):
        start = time.perf_counter()
        for _ in range(count):
            work()
        runs.append((time.perf_counter() - start) / count * 1e6)
    return statistics.median(runs)


def layer_us(layer, memory_format):
    side, pad, stride = layer["side"], layer["pad"], layer["stride"]
    x = torch.randn(ROWS, layer["channels"], side, side).relu().contiguous(memory_format=memory_format)
    weight = torch.randn(layer["out"], layer["channels"], layer["kernel"], layer["kernel"])
    weight = weight.contiguous(memory_format=memory_format)
    bias = torch.randn(layer["out"])
    d = torch.randn_like(torch.conv2d(x, weight, bias, stride, pad)).contiguous(memory_format=memory_format)

    def back(mask):
        return torch.ops.aten.convolution_backward(d, x, weight, [layer["out"]], [stride, stride], [pad, pad], [1, 1],
                                                   False, [0, 0], 1, mask)

    works = {"forward_us": lambda: torch.conv2d(x, weight, bias, stride, pad).relu_(),
             "weights_us": lambda: back([False, True, True]),
             "input_us": lambda: back([True, False, False])}
    return {name: median_us(work) / ROWS for name, work in works.items()}


def main():
    torch.set_num_threads(1)
    torch.manual_seed(1)
    with open(sys.argv[1]) as file:
        layers = json.load(file)
    out = []
    with torch.no_grad():
        for layer in layers:
            both = [layer_us(layer, memory) for memory in (torch.contiguous_format, torch.channels_last)]
            out.append(dict(name=layer["name"], **{name: min(one[name] for one in both) for name in both[0]}))
    print(json.dumps({"torch": torch.__version__, "mkldnn": torch.backends.mkldnn.is_available(), "results": out}))


if __name__ == "__main__":
    main()
