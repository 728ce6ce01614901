#!/usr/bin/env python3
"""Record what PyTorch computes for a small pair of networks and for its optimisers, as tests/nn/test_torch.c reads it.

    python3 -m venv /tmp/venv && /tmp/venv/bin/pip install torch numpy safetensors
    /tmp/venv/bin/python tests/golden/torch/record_nn.py        # writes nn-tanh.safetensors and nn-relu.safetensors

Arrays: <tensor> (parameters, [out][in]), grad.<tensor>, obs, target, target_value, head, value, loss (summed over rows);
g.<k>.<tensor> gradients of three optimiser steps; <optimiser>.<tensor> parameters after them; norm.<optimiser> the norm
before clipping of the last step."""
import os
import sys

import numpy as np
import torch
from safetensors.numpy import save_file

OBS, HIDDEN, OUT, ROWS, STEPS = 5, (18, 12), 3, 43, 3


def tower(out, activation):
    layers, units = [], OBS
    for h in HIDDEN:
        layers += [torch.nn.Linear(units, h), activation()]
        units = h
    return torch.nn.Sequential(*layers, torch.nn.Linear(units, out))


class Networks(torch.nn.Module):
    def __init__(self, activation):
        super().__init__()
        self.actor = tower(OUT, activation)
        self.actor.log_std = torch.nn.Parameter(torch.randn(OUT) * 0.2 - 0.3)
        self.critic = tower(1, activation)


OPTIMISERS = {  # name: (make, max_norm, learning rates of the steps)
    "adam": (lambda p: torch.optim.Adam(p, lr=1e-3, eps=1e-5), 0.5),
    "adam_free": (lambda p: torch.optim.Adam(p, lr=1e-2, betas=(0.8, 0.99), eps=1e-8), 0.0),
    "sgd": (lambda p: torch.optim.SGD(p, lr=1e-2), 0.0),
    "sgd_momentum": (lambda p: torch.optim.SGD(p, lr=1e-2, momentum=0.9), 1.0),
    "rmsprop": (lambda p: torch.optim.RMSprop(p, lr=1e-3, alpha=0.99, eps=1e-5), 40.0),
    "rmsprop_momentum": (lambda p: torch.optim.RMSprop(p, lr=1e-3, alpha=0.95, eps=1e-8, momentum=0.9), 0.5),
}


def record(name, activation):
    torch.manual_seed(3)
    net = Networks(activation)
    names = [n for n, _ in net.named_parameters()]
    out = {n: p.detach().clone() for n, p in net.named_parameters()}
    obs, target, target_value = torch.randn(ROWS, OBS), torch.randn(ROWS, OUT), torch.randn(ROWS)
    head, value = net.actor(obs), net.critic(obs)[:, 0]
    scale = torch.exp(-net.actor.log_std)
    loss = 0.5 * (scale * (head - target) ** 2).sum() + 0.5 * ((value - target_value) ** 2).sum()
    loss.backward()
    out.update(obs=obs, target=target, target_value=target_value, head=head.detach(), value=value.detach(),
               loss=loss.detach())
    out.update({"grad." + n: p.grad for n, p in net.named_parameters()})
    for k in range(STEPS):
        out.update({f"g.{k}.{n}": torch.randn_like(p) * (0.1 if k else 1.0) for n, p in net.named_parameters()})
    for opt_name, (make, max_norm) in OPTIMISERS.items():
        for n, p in net.named_parameters():
            p.data = out[n].clone()
        opt = make(list(net.parameters()))
        for k in range(STEPS):
            for n, p in net.named_parameters():
                p.grad = out[f"g.{k}.{n}"].clone()
            norm = torch.nn.utils.clip_grad_norm_(net.parameters(), max_norm if max_norm else float("inf"))
            opt.step()
        out[f"norm.{opt_name}"] = norm
        out.update({f"{opt_name}.{n}": p.detach().clone() for n, p in net.named_parameters()})
    arrays = {k: np.ascontiguousarray(v.detach().numpy()) for k, v in out.items()}
    path = os.path.join(os.path.dirname(os.path.abspath(sys.argv[0])), f"nn-{name}.safetensors")
    save_file(arrays, path, metadata={"torch": torch.__version__, "seed": "3", "script": "record_nn.py"})
    print(path, len(names), "tensors", os.path.getsize(path), "bytes")


record("tanh", torch.nn.Tanh)
record("relu", torch.nn.ReLU)
