#!/usr/bin/env python3
"""Record what PyTorch computes for encoders, as tests/nn/test_torch_encoders.c reads it.

    python3 -m venv /tmp/venv && /tmp/venv/bin/pip install torch numpy safetensors
    /tmp/venv/bin/python tests/golden/torch/record_encoders.py      # writes nn-encoders.safetensors

Parameters, observations and targets are functions of their numbers (`numbers`), so that the file stays small: for each of the
networks below it has what the heads give (<net>.actor, <net>.critic), the loss, 1/2 the sum of the squared errors over rows and
outputs, and of the gradient of each tensor its shape, its norm and every n-th number (<net>.shape.<tensor>, .norm., .grad.). The
modules are named as Tutti names its tensors: an nn.Sequential, a residual being one of its own."""
import os
import sys

import numpy as np
import torch
from safetensors.numpy import save_file

SAMPLES = 64


def numbers(count, what):
    """`count` floats in [-1, 1): a hash of (what, index), the same in C."""
    i = (np.arange(count, dtype=np.uint64) * 2654435761 + what * 2246822519) & 0xFFFFFFFF
    i = ((i ^ (i >> 15)) * 2246822519) & 0xFFFFFFFF
    i = ((i ^ (i >> 13)) * 3266489917) & 0xFFFFFFFF
    i = i ^ (i >> 16)
    return ((i >> 8).astype(np.float32) / np.float32(1 << 23) - np.float32(1)).astype(np.float32)


class Residual(torch.nn.Sequential):
    def forward(self, x):
        return x + super().forward(x)


class Concat(torch.nn.Module):
    def forward(self, x):
        return torch.cat([x, self.part], 1)


class Embed(torch.nn.Embedding):
    """Elements of 3, 5 and 2 choices, whose tables stand one below the other."""

    def forward(self, x):
        return torch.cat([x, super().forward(self.part + torch.tensor([0, 3, 8])).flatten(1)], 1)


def nature(net):
    n = torch.nn
    return n.Sequential(n.Conv2d(4, 32, 8, 4), n.ReLU(), n.Conv2d(32, 64, 4, 2), n.ReLU(), n.Conv2d(64, 64, 3), n.ReLU(),
                        n.Flatten(), n.Linear(3136, 512), n.ReLU())


def impala(net):
    n, parts, channels = torch.nn, [], 3

    def block(c):
        return Residual(n.ReLU(), n.Conv2d(c, c, 3, padding=1), n.ReLU(), n.Conv2d(c, c, 3, padding=1))

    for c in (8, 12, 16):
        parts += [n.Conv2d(channels, c, 3, padding=1), n.MaxPool2d(3, 2, 1), block(c), block(c)]
        channels = c
    return n.Sequential(*parts, n.ReLU(), n.Flatten(), n.Linear(16 * 4 * 4, 64), n.ReLU())


def minatar(net):
    n = torch.nn
    return n.Sequential(n.Conv2d(4, 16, 3), n.ReLU(), n.Flatten(), n.Linear(1024, 128), n.ReLU())


def mixed(net):
    n = torch.nn
    net.concat = Concat()
    return n.Sequential(n.Conv2d(3, 6, (4, 3), (2, 1), (1, 0)), n.LayerNorm([6, 5, 5]), n.Tanh(), n.Flatten(), net.concat,
                        n.LayerNorm(155), n.Tanh(), n.Linear(155, 24), n.ReLU(),
                        Residual(n.Linear(24, 18), n.Tanh(), n.Linear(18, 24)), n.LayerNorm(24))


def means(net):
    n = torch.nn
    return n.Sequential(n.Conv2d(2, 5, 3), n.ReLU(), n.AvgPool2d((3, 2), (2, 1), (1, 0)), n.AvgPool2d((2, 3), (1, 2), (1, 1)), n.Flatten(),
                        n.Linear(5 * 6 * 3, 12), n.ReLU())


def embedded(net):
    n = torch.nn
    return n.Sequential(n.Conv2d(2, 3, 3), n.ReLU(), n.Flatten(), Embed(10, 4), n.Linear(30, 14), n.Tanh())


# name, module, height, width, channels, channels first, divisor, floats behind the picture, rows
NETS = [("nature", nature, 84, 84, 4, True, 255, 0, 3, 512), ("impala", impala, 30, 27, 3, True, 255, 0, 3, 64),
        ("minatar", minatar, 10, 10, 4, False, 1, 0, 33, 128), ("mixed", mixed, 10, 7, 3, False, 255, 5, 35, 24),
        ("means", means, 11, 8, 2, True, 255, 0, 9, 12), ("embedded", embedded, 5, 4, 2, True, 255, 10, 37, 14)]


def record(out, name, module, h, w, c, first, divisor, behind, rows, width):
    net = torch.nn.Module()
    net.encoder = module(net)
    net.actor = torch.nn.Sequential(torch.nn.Linear(width, 5))
    net.critic = torch.nn.Sequential(torch.nn.Linear(width, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1))
    if hasattr(net, "concat"):
        del net.concat  # the encoder has it
    norms = {f"{m}.{p}" for m, part in net.named_modules() if isinstance(part, torch.nn.LayerNorm) for p in ("weight", "bias")}
    for t, (tensor, p) in enumerate(net.named_parameters()):
        drawn = numbers(p.numel(), 100 + t)
        if p.dim() > 1 and tensor not in norms:
            drawn *= np.float32(1.7 / np.sqrt(p[0].numel()))
        else:
            drawn *= np.float32(0.3)
        with torch.no_grad():
            p.copy_(torch.from_numpy(drawn).reshape(p.shape))
    data = np.floor((numbers(rows * h * w * c, 1) + 1) * np.float32(divisor + 1) / 2).astype(np.uint8)
    x = torch.from_numpy(data.reshape(rows, c, h, w) if first else data.reshape(rows, h, w, c).transpose(0, 3, 1, 2).copy())
    x = x.float() / divisor
    for part in net.encoder:
        if isinstance(part, Concat):
            part.part = torch.from_numpy(numbers(rows * behind, 2).reshape(rows, behind))
        if isinstance(part, Embed):
            part.part = torch.from_numpy(np.floor((numbers(rows * 3, 2).reshape(rows, 3) + 1) / 2 * [3, 5, 2]).astype(np.int64))
    z = net.encoder(x)
    actor, critic = net.actor(z), net.critic(z)
    targets = [torch.from_numpy(numbers(rows * n, 3 + i).reshape(rows, n)) for i, n in enumerate((5, 1))]
    loss = 0.5 * ((actor - targets[0]) ** 2).sum() + 0.5 * ((critic - targets[1]) ** 2).sum()
    loss.backward()
    out[f"{name}.actor"], out[f"{name}.critic"], out[f"{name}.loss"] = (v.detach().numpy() for v in (actor, critic, loss))
    for tensor, p in net.named_parameters():
        grad = p.grad.detach().numpy()
        out[f"{name}.shape.{tensor}"] = np.array(grad.shape, dtype=np.int64)
        out[f"{name}.norm.{tensor}"] = np.array(np.sqrt((grad.astype(np.float64) ** 2).sum()), dtype=np.float32)
        out[f"{name}.grad.{tensor}"] = np.ascontiguousarray(grad.reshape(-1)[::max(1, grad.size // SAMPLES)])


torch.set_num_threads(1)
arrays = {}
for net in NETS:
    record(arrays, *net)
path = os.path.join(os.path.dirname(os.path.abspath(sys.argv[0])), "nn-encoders.safetensors")
save_file(arrays, path, metadata={"torch": torch.__version__, "script": "record_encoders.py"})
print(path, len(arrays), "arrays", os.path.getsize(path), "bytes")
