#!/usr/bin/env python3
"""Computes optimiser steps of soft actor-critic with PyTorch, for tests/learner/test_twin_torch.c.

    python3 -m venv /tmp/venv && /tmp/venv/bin/pip install torch numpy
    /tmp/venv/bin/python tests/golden/torch/sac_update.py [CASE ...]

The committed files were made on a CPU with PyTorch 1.13.0 and NumPy 1.24.2, in double: what differs is the C code's rounding. Nothing
is shared with it: the n-step returns are the textbook loop, the draw is torch.distributions.Normal's with the noise of the file, log pi is
its log_prob and log_abs_det_jacobian of TanhTransform, gradients are autograd's, the optimisers are three torch.optim.Adam (critics,
actor, log alpha), targets follow by Polyak's average. As in Stable-Baselines3 actor and log alpha take their steps with one draw, alpha being
that of before; as in CleanRL the critics' step comes first. The actor's step has units of its own.

One file a case, little-endian; rows are (clock, env), clock = batch * T + t:
    char magic[8] "TTSAC\\0\\0\\2"
    u32 T, N, D, A (numbers of an action), first (of these in the first of two columns; 0: there is one), batches, n, units, steps,
        tuned, relu, encoder (units of a layer before the actor, and of one before both critics; 0: there is none), parameters
    f32 lr, critic_lr (0: lr), gamma, max_grad_norm (0: off), adam_eps, tau, target_entropy (NaN: not given)
    f32 params [parameters], target params [parameters]   at first: the actor's encoder, actor, log alpha, the critics' encoder, both critics; in
                                                          the order of the tensor table, weights as [in][out]
    per batch: f32 obs [T][N][D]; f32 action [T][N][elements] of each column, before tanh; f32 reward [T][N]; u32 age [N];
        u8 terminated [T][N], truncated [T][N]; f32 last [N][D]; u32 finals, final_t [finals], final_env [finals];
        f32 final [finals][D]
    per optimiser step, of the critics and of the actor by turns: u32 unit [units]; f32 ret [units], discount [units],
        noise [units][A]
        and expected: f32 critic loss, q, target, 0 or actor loss, loss of log alpha, alpha, entropy; f32 grad_norm;
        f32 gradient [parameters] (before the clip; 0 of what is not trained)
    f32 params [parameters], target params [parameters] after the last step
"""

import os
import struct
import sys

import numpy as np
import torch
from torch import nn
from torch.distributions import Normal, TanhTransform

HIDDEN = (12, 8)
HERE = os.path.dirname(os.path.abspath(__file__))
SHAPE = {"T": 6, "N": 3, "D": 4, "A": 3, "first": 0, "batches": 4, "units": 16, "steps": 6, "n": 1, "tuned": 1, "relu": 1, "encoder": 0, "lr": 1e-2,
         "critic_lr": 0.0, "gamma": 0.95, "max_grad_norm": 0.0, "adam_eps": 1e-8, "tau": 0.005, "target_entropy": float("nan"),
         "alpha": 1.0, "wide": 0.0}  # alpha: at first; wide: of one of the deviations
CASES = {
    "sac": {"seed": 16},
    "sac_columns": {"seed": 25, "first": 1, "n": 3, "tau": 0.25, "critic_lr": 3e-3, "target_entropy": -1.5, "alpha": 0.2, "wide": 1.85},
    "sac_held": {"seed": 5, "A": 1, "tuned": 0, "alpha": 0.05, "relu": 0, "tau": 1.0},
    "sac_clipped": {"seed": 2, "A": 6, "first": 4, "n": 2, "max_grad_norm": 0.5},
    "sac_encoder": {"seed": 7, "encoder": 10, "tau": 0.5, "n": 2, "critic_lr": 3e-3},
}


def hidden(o, *sizes):
    return [layer for a, b in zip(sizes, sizes[1:]) for layer in (nn.Linear(a, b), nn.ReLU() if o["relu"] else nn.Tanh())]


def layers(o, inputs, outputs):
    return nn.Sequential(*hidden(o, inputs, *HIDDEN), nn.Linear(HIDDEN[-1], outputs))


def encoder(o):
    """What comes before an actor, or before both critics, and how many numbers it gives them."""
    return (nn.Sequential(*hidden(o, o["D"], o["encoder"])), o["encoder"]) if o["encoder"] else (nn.Identity(), o["D"])


class Networks(nn.Module):
    def __init__(self, o):
        super().__init__()
        before, seen = encoder(o)
        self.actor = nn.Sequential(before, layers(o, seen, 2 * o["A"]))
        self.log_alpha = nn.Parameter(torch.tensor([o["alpha"]]).log())
        self.seen, seen = encoder(o)
        self.q1, self.q2 = (layers(o, seen + o["A"], 1) for _ in range(2))
        with torch.no_grad():
            self.actor[-1][-1].bias[-1] += o["wide"]  # some rows' deviation is beyond its limit
            for q in (self.q1, self.q2):  # now the one, now the other is the lesser
                q[-1].weight *= 3
                q[-1].bias.zero_()
            for p in self.parameters():
                p.copy_(p.float())  # as the file has it

    def draw(self, obs, noise):
        """An action, and its log pi."""
        mean, log_std = self.actor(obs).chunk(2, dim=-1)
        normal, squash = Normal(mean, log_std.clamp(-20, 2).exp()), TanhTransform()
        u = normal.mean + normal.stddev * noise  # rsample()
        y = squash(u)
        return y, (normal.log_prob(u) - squash.log_abs_det_jacobian(u, y)).sum(-1)

    def both(self, obs, action):
        x = torch.cat([self.seen(obs), action], -1)
        return self.q1(x)[:, 0], self.q2(x)[:, 0]

    def critics(self):
        return [*self.seen.parameters(), *self.q1.parameters(), *self.q2.parameters()]

    def in_order(self):
        """actor, log alpha, critics."""
        return [*self.actor.parameters(), self.log_alpha, *self.critics()]


def flat(tensors):
    """Weights as [in][out]."""
    return np.concatenate([(t.detach().T if t.dim() == 2 else t.detach()).contiguous().numpy().ravel() for t in tensors]).astype("<f4")


def play(rng, o):
    """Everything that happened; frame [clock] is before the step of that clock, final [clock] after one that was cut."""
    clocks, N, D = o["batches"] * o["T"], o["N"], o["D"]
    w = {
        "frame": rng.standard_normal((clocks + 1, N, D)).astype(np.float32),
        "final": rng.standard_normal((clocks, N, D)).astype(np.float32),
        "action": (1.5 * rng.standard_normal((clocks, N, o["A"]))).astype(np.float32),
        "reward": rng.standard_normal((clocks, N)).astype(np.float32),
        "terminated": (rng.random((clocks, N)) < 0.12).astype(np.uint8),
        "truncated": (rng.random((clocks, N)) < 0.12).astype(np.uint8),
        "age": np.zeros((clocks + 1, N), np.uint32),
    }
    for c in range(clocks):
        w["age"][c + 1] = np.where(w["terminated"][c] | w["truncated"][c], 0, w["age"][c] + 1)
    return w


def bootstrap(w, o, clock, env):
    """Return, discount, and the frame from which it goes on; None: not complete."""
    ret, discount = 0.0, 1.0
    for at in range(clock, clock + o["n"]):
        if at >= len(w["reward"]):
            return None
        ret += discount * float(w["reward"][at, env])
        discount *= o["gamma"]
        if w["terminated"][at, env]:
            return ret, 0.0, w["frame"][at, env]
        if w["truncated"][at, env]:
            return ret, discount, w["final"][at, env]
    return ret, discount, w["frame"][clock + o["n"], env]


def write_batch(out, w, o, b):
    T, end = o["T"], (b + 1) * o["T"]
    of = slice(b * T, end)
    out.write(w["frame"][of].tobytes())
    for column in np.split(w["action"][of], [o["first"]], axis=2):
        out.write(column.tobytes())
    out.write(w["reward"][of].tobytes() + w["age"][b * T].tobytes())
    for name in ("terminated", "truncated"):
        out.write(w[name][of].tobytes())
    out.write(w["frame"][end].tobytes())
    t, env = np.nonzero(w["truncated"][of])
    out.write(struct.pack("<I", len(t)) + t.astype("<u4").tobytes() + env.astype("<u4").tobytes())
    out.write(w["final"][of][t, env].tobytes())


class Learner:
    def __init__(self, o):
        self.o, self.net, self.target = o, Networks(o), Networks(o)  # which begins elsewhere: what follows is seen
        rate = {"lr": o["lr"], "eps": o["adam_eps"]}
        self.of_critics = torch.optim.Adam(self.net.critics(), **dict(rate, lr=o["critic_lr"] or o["lr"]))
        self.of_actor = torch.optim.Adam(self.net.actor.parameters(), **rate)
        self.of_alpha = torch.optim.Adam([self.net.log_alpha], **rate)
        self.wanted = -o["A"] if np.isnan(o["target_entropy"]) else o["target_entropy"]

    def descend(self, losses, params, optimizers):
        """Gradient, and norm, of one group."""
        o, net = self.o, self.net
        net.zero_grad(set_to_none=True)
        for p, d in zip(params, torch.autograd.grad(sum(losses), params, allow_unused=True)):
            p.grad = torch.zeros_like(p) if d is None else d
        gradient = flat([torch.zeros_like(p) if p.grad is None else p.grad for p in net.in_order()])
        norm = nn.utils.clip_grad_norm_(params, o["max_grad_norm"] or float("inf"))
        for optimizer in optimizers:
            optimizer.step()
        return float(norm), gradient

    def train_critics(self, at, action, ret, discount, following, noise):
        net = self.net
        with torch.no_grad():
            drawn, log_prob = net.draw(following, noise)
            soft = torch.min(*self.target.both(following, drawn)) - net.log_alpha.exp() * log_prob
            wanted = ret + discount * soft
        q1, q2 = net.both(at, action)
        loss = 0.5 * (nn.functional.mse_loss(q1, wanted) + nn.functional.mse_loss(q2, wanted))
        norm, gradient = self.descend([loss], net.critics(), [self.of_critics])
        with torch.no_grad():
            for mine, other in zip(self.target.critics(), net.critics()):
                mine.mul_(1 - self.o["tau"]).add_(self.o["tau"] * other)
        return [float(x.detach()) for x in (loss, (q1 + q2).mean() / 2, wanted.mean())] + [0.0, norm], gradient

    def train_actor(self, at, noise):
        net, o = self.net, self.o
        drawn, log_prob = net.draw(at, noise)
        alpha = net.log_alpha.exp().detach()
        loss = (alpha * log_prob - torch.min(*net.both(at, drawn))).mean()
        alpha_loss = -(net.log_alpha * (log_prob + self.wanted).detach()).mean()
        params, optimizers, losses = [*net.actor.parameters(), net.log_alpha], [self.of_actor], [loss]
        if o["tuned"]:
            optimizers, losses = optimizers + [self.of_alpha], losses + [alpha_loss]
        stats = [float(x.detach()) for x in (loss, alpha_loss, alpha, -log_prob.mean())]
        norm, gradient = self.descend(losses, params, optimizers)
        return stats + [norm], gradient

    def step(self, w, picks, noise, critics):
        at = torch.tensor(np.stack([w["frame"][pick] for pick in picks]), dtype=torch.float64)
        noise = torch.tensor(noise, dtype=torch.float64)
        if not critics:
            return self.train_actor(at, noise)
        units = [bootstrap(w, self.o, *pick) for pick in picks]
        ret, discount = (torch.tensor([u[k] for u in units]) for k in (0, 1))
        following = torch.tensor(np.stack([u[2] for u in units]), dtype=torch.float64)
        action = torch.tensor(np.stack([w["action"][pick] for pick in picks]), dtype=torch.float64).tanh()
        return self.train_critics(at, action, ret, discount, following, noise)


def experience(w, o):
    """The picks from which whole returns go on."""
    return [pick for pick in ((c, e) for c in range(o["batches"] * o["T"]) for e in range(o["N"])) if bootstrap(w, o, *pick)]


def record(name, o, learner, head, critics):
    """A file. head(parameters): its first bytes; critics(step): does it train them, and does it draw noise?"""
    rng = np.random.default_rng(o["seed"])
    w = play(rng, o)
    whole = experience(w, o)
    with open(os.path.join(HERE, name + ".bin"), "wb") as out:
        params = [flat(x.in_order()) for x in (learner.net, learner.target)]
        out.write(head(len(params[0])) + params[0].tobytes() + params[1].tobytes())
        for b in range(o["batches"]):
            write_batch(out, w, o, b)
        for step in range(o["steps"]):
            picks = [whole[i] for i in rng.integers(0, len(whole), o["units"])]
            trains, draws = critics(step)
            noise = rng.standard_normal((o["units"], o["A"])).astype(np.float32) if draws else np.zeros((0, o["A"]), np.float32)
            stats, gradient = learner.step(w, picks, noise, trains)
            units = [bootstrap(w, o, *pick) for pick in picks]
            out.write(np.array([c * o["N"] + e for c, e in picks], "<u4").tobytes())
            out.write(np.array([[u[k] for u in units] for k in (0, 1)], "<f4").tobytes() + noise.tobytes())
            out.write(np.array(stats, "<f4").tobytes() + gradient.tobytes())
        out.write(flat(learner.net.in_order()).tobytes() + flat(learner.target.in_order()).tobytes())


def head(magic, o, parameters):
    return struct.pack("<8s13I7f", magic, *(o[k] for k in (
        "T", "N", "D", "A", "first", "batches", "n", "units", "steps", "tuned", "relu", "encoder")), parameters, *(o[k] for k in (
            "lr", "critic_lr", "gamma", "max_grad_norm", "adam_eps", "tau", "target_entropy")))


if __name__ == "__main__":
    torch.set_default_dtype(torch.float64)
    for case in sys.argv[1:] or CASES:
        settings = dict(SHAPE, **CASES[case])
        torch.manual_seed(settings["seed"])
        record(case, settings, Learner(settings), lambda parameters: head(b"TTSAC\0\0\2", settings, parameters),
               lambda step: (step % 2 == 0, True))
