#!/usr/bin/env python3
"""Computes optimiser steps of twin delayed DDPG with PyTorch, for tests/learner/test_twin_torch.c.

    python3 -m venv /tmp/venv && /tmp/venv/bin/pip install torch numpy
    /tmp/venv/bin/python tests/golden/torch/td3_update.py [CASE ...]

The committed files were made on a CPU with PyTorch 1.13.0 and NumPy 1.24.2, in double: what differs is the C code's rounding. Nothing
is shared with it: gradients are autograd's, the optimisers are two torch.optim.Adam, targets follow by Polyak's average, all of them behind
the actor's step, and the lines of both losses are those of Stable-Baselines3's td3.py, but that the noise is the file's, that the critics'
loss is half of it, and that the actor's step has units of its own.

One file a case, as sac_update.py's, whose experience and returns these are, but for
    char magic[8] "TTTD3\\0\\0\\2"; u32 tuned is policy_delay; f32 target_entropy is the deviation of a target's noise, and behind
        it stands one more, f32 noise_clip
    params: the actor's encoder, actor, the critics' encoder, both critics
    per optimiser step, policy_delay of the critics to one of the actor: noise of the critics' steps alone
        and expected: f32 critic loss, q, target or actor loss, 0, 0; f32 grad_norm
"""

import struct
import sys

import torch
from torch import nn

from sac_update import SHAPE, Learner as Other, encoder, head, layers, record

CASES = {
    "td3": {"seed": 21},
    "td3_columns": {"seed": 12, "first": 1, "n": 3, "tau": 0.25, "critic_lr": 3e-3, "tuned": 3, "steps": 8, "target_entropy": 0.8, "clip": 0.9},
    "td3_ddpg": {"seed": 4, "A": 1, "relu": 0, "tau": 1.0, "tuned": 1, "target_entropy": 0.0},
    "td3_clipped": {"seed": 6, "A": 6, "first": 4, "n": 2, "max_grad_norm": 0.05},
    "td3_encoder": {"seed": 9, "encoder": 10, "tau": 0.5, "critic_lr": 3e-3},
}


class Networks(nn.Module):
    def __init__(self, o):
        super().__init__()
        before, seen = encoder(o)
        self.actor = nn.Sequential(before, layers(o, seen, o["A"]), nn.Tanh())
        self.seen, seen = encoder(o)
        self.q1, self.q2 = (layers(o, seen + o["A"], 1) for _ in range(2))
        with torch.no_grad():
            for q in (self.q1, self.q2):  # now the one, now the other is the lesser
                q[-1].weight *= 3
                q[-1].bias.zero_()
            self.actor[1][-1].weight *= 4  # some actions are near their bounds
            for p in self.parameters():
                p.copy_(p.float())  # as the file has it

    def both(self, obs, action):
        x = torch.cat([self.seen(obs), action], -1)
        return self.q1(x)[:, 0], self.q2(x)[:, 0]

    def critics(self):
        return [*self.seen.parameters(), *self.q1.parameters(), *self.q2.parameters()]

    def in_order(self):
        return [*self.actor.parameters(), *self.critics()]


class Learner(Other):
    def __init__(self, o):
        self.o, self.net, self.target = o, Networks(o), Networks(o)  # which begins elsewhere: what follows is seen
        self.of_critics = torch.optim.Adam(self.net.critics(), lr=o["critic_lr"] or o["lr"], eps=o["adam_eps"])
        self.of_actor = torch.optim.Adam(self.net.actor.parameters(), lr=o["lr"], eps=o["adam_eps"])

    def train_critics(self, at, action, ret, discount, following, noise):
        net, o = self.net, self.o
        with torch.no_grad():
            noise = (noise * o["target_entropy"]).clamp(-o["clip"], o["clip"])
            next_actions = (self.target.actor(following) + noise).clamp(-1, 1)
            wanted = ret + discount * torch.min(*self.target.both(following, next_actions))
        q1, q2 = net.both(at, action)
        loss = 0.5 * (nn.functional.mse_loss(q1, wanted) + nn.functional.mse_loss(q2, wanted))
        norm, gradient = self.descend([loss], net.critics(), [self.of_critics])
        return [float(x.detach()) for x in (loss, (q1 + q2).mean() / 2, wanted.mean())] + [norm], gradient

    def train_actor(self, at, _):
        net = self.net
        loss = -net.both(at, net.actor(at))[0].mean()
        norm, gradient = self.descend([loss], [*net.actor.parameters()], [self.of_actor])
        with torch.no_grad():
            for mine, other in zip(self.target.in_order(), net.in_order()):
                mine.mul_(1 - self.o["tau"]).add_(self.o["tau"] * other)
        return [float(loss.detach()), 0.0, 0.0, norm], gradient


if __name__ == "__main__":
    torch.set_default_dtype(torch.float64)
    for case in sys.argv[1:] or CASES:
        settings = dict(SHAPE, tuned=2, target_entropy=0.2, clip=0.5)
        settings.update(CASES[case])
        torch.manual_seed(settings["seed"])
        delay = settings["tuned"]
        record(case, settings, Learner(settings),
               lambda parameters: head(b"TTTD3\0\0\2", settings, parameters) + struct.pack("<f", settings["clip"]),
               lambda step: (step % (delay + 1) < delay,) * 2)
