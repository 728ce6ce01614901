#!/usr/bin/env python3
"""Record what PyTorch's LSTM and GRU compute over sequences in which episodes begin, as tests/nn/test_torch_recurrent.c reads it.

    python3 -m venv /tmp/venv && /tmp/venv/bin/pip install torch numpy safetensors
    /tmp/venv/bin/python tests/golden/torch/record_recurrent.py      # writes nn-{lstm,gru}-{shared,separate}.safetensors

shared: a convolution, one recurrent layer behind it, an actor with a hidden layer and log_std and a critic behind that, and a head
(aux) that reads the convolution beside it. separate: an actor and a critic that have a recurrent layer of their own each.
<tensor> (parameters), obs [STEPS][ENVS][OBS], begins [STEPS][ENVS], carry [ENVS][C] before the first step and carried [ENVS][C] after
the last (h, then an LSTM's c, layer after layer), target.<head>, <head>, loss (summed over rows), grad.<tensor>."""
import os
import sys

import numpy as np
import torch
from safetensors.numpy import save_file

STEPS, ENVS, OBS = 6, 35, 5
n = torch.nn


def named(prefix, module, of=lambda p: p):
    return {prefix + name: of(p).detach().clone() for name, p in module.named_parameters()}


class Shared(n.Module):
    recurrent, shape = ("%s",), (2, 4, 5)

    def __init__(self, kind):
        super().__init__()
        self.encoder = n.Sequential(n.Conv2d(2, 4, 3), n.ReLU(), n.Flatten())
        setattr(self, kind.__name__.lower(), kind(24, 20))
        self.actor = n.Sequential(n.Linear(20, 12), n.Tanh(), n.Linear(12, 3))
        self.actor.log_std = n.Parameter(torch.randn(3) * 0.2 - 0.3)
        self.critic = n.Sequential(n.Linear(20, 1))
        self.aux = n.Sequential(n.Linear(24, 2))

    def heads(self, obs, step):
        seen = self.encoder(obs)
        h = step(0, seen)
        return {"actor": self.actor(h), "critic": self.critic(h), "aux": self.aux(seen)}


class Separate(n.Module):
    recurrent, shape = ("actor_%s", "critic_%s"), (OBS,)

    def __init__(self, kind):
        super().__init__()
        for name in self.recurrent:
            setattr(self, name % kind.__name__.lower(), kind(OBS, 17))
        self.actor = n.Sequential(n.Linear(17, 9), n.ReLU(), n.Linear(9, 3))
        self.actor.log_std = n.Parameter(torch.randn(3) * 0.2 - 0.3)
        self.critic = n.Sequential(n.Linear(17, 1))

    def heads(self, obs, step):
        return {"actor": self.actor(step(0, obs)), "critic": self.critic(step(1, obs))}


def flat(carry):
    """[ENVS][C] of the states of all layers."""
    return torch.cat([part for state in carry for part in state], 1)


def record(kind, what):
    torch.manual_seed(11)
    net = what(kind)
    layers = [getattr(net, name % kind.__name__.lower()) for name in net.recurrent]
    for layer in layers:
        for p in layer.parameters():
            p.data *= 2
    obs = torch.randn(STEPS, ENVS, *net.shape)
    begins = (torch.rand(STEPS, ENVS) < 0.2).float()
    parts = 2 if kind is n.LSTM else 1
    carry = [[torch.randn(ENVS, layer.hidden_size) * 0.7 for _ in range(parts)] for layer in layers]
    out = {**named("", net), "obs": obs.flatten(2), "begins": begins, "carry": flat(carry)}
    given = []
    for t in range(STEPS):
        goes_on = 1 - begins[t][:, None]

        def step(i, x):
            before = [(part * goes_on)[None] for part in carry[i]]
            h, after = layers[i](x[None], tuple(before) if parts == 2 else before[0])
            carry[i] = [part[0] for part in (after if parts == 2 else (after,))]
            return h[0]

        given.append(net.heads(obs[t], step))
    out["carried"] = flat(carry)
    loss = 0
    for head in given[0]:
        value = torch.stack([at[head] for at in given])
        target = torch.randn_like(value)
        scale = torch.exp(-net.actor.log_std) if head == "actor" else 1
        loss = loss + 0.5 * (scale * (value - target) ** 2).sum()
        out.update({head: value, "target." + head: target})
    loss.backward()
    out.update(loss=loss, **named("grad.", net, lambda p: p.grad))
    name = f"nn-{kind.__name__.lower()}-{what.__name__.lower()}.safetensors"
    path = os.path.join(os.path.dirname(os.path.abspath(sys.argv[0])), name)
    save_file({k: np.ascontiguousarray(v.detach().numpy()) for k, v in out.items()}, path,
              metadata={"torch": torch.__version__, "seed": "11", "script": "record_recurrent.py"})
    print(path, len(out), "arrays", os.path.getsize(path), "bytes")


for cell in (n.LSTM, n.GRU):
    for shape in (Shared, Separate):
        record(cell, shape)
