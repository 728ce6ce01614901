#!/usr/bin/env python3
"""Computes optimiser steps of DQN with PyTorch, for tests/learner/test_dqn_torch.c.

    python3 -m venv /tmp/venv && /tmp/venv/bin/pip install torch numpy
    /tmp/venv/bin/python tests/golden/torch/dqn_update.py [CASE ...]

The committed files were made on a CPU with PyTorch 1.13.0 and NumPy 1.24.2. Nothing is shared with the C code: the n-step
returns are the textbook loop, the loss is smooth_l1_loss or mse_loss, gradients are autograd's, the optimiser is torch.optim.Adam,
the clip torch.nn.utils.clip_grad_norm_, the target network load_state_dict (tau 1) or Polyak's average. With a layer that remembers
(torch.nn.LSTM, torch.nn.GRU) units are sequences, each played by itself, step by step, from what is stored of it.

One file a case, little-endian; rows are (clock, env), clock = batch * T + t:
    char magic[8] "TTDQN\\0\\0\\2"
    u32 T, N, D, A, batches, n, units, steps, twice (double DQN), squared, masked, prioritized, parameters,
        learning_starts, train_every, target_every, length, burn, C (floats that are carried)
    f32 lr, gamma, max_grad_norm, adam_eps, tau, rescale
    f32 params [parameters]           dueling: trunk, value, advantage; before them the layer that remembers; in the order of the tensor
                                      table, weights as [in][out]
    per batch: f32 obs [T][N][D]; i32 action [T][N]; f32 reward [T][N]; u32 age [N];
        u8 terminated [T][N], truncated [T][N], mask [T][N][A] (all 1 where there is none);
        f32 last [N][D]; u8 last_mask [N][A];
        u32 finals, final_t [finals], final_env [finals]; f32 final [finals][D]; u8 final_mask [finals][A];
        f32 carry [N][C]
    f32 ret [rows], discount [rows]   discount -1: the return is not complete
    u32 next [rows]                   the clock from whose frame it goes on; 2^31 more: of what the episode was cut at there
    per optimiser step: u32 rows (inserted), step (of its update), unit [units]; f32 weight [units]
        and expected: u32 follows; f32 loss, |error|, q, target, grad_norm; f32 |error| [units] or [length][units];
        f32 gradient [parameters] (before the clip)
    f32 params [parameters], target params [parameters] after the last step
"""

import os
import struct
import sys

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

HIDDEN = (12, 8)
HERE = os.path.dirname(os.path.abspath(__file__))
SHAPE = {"T": 6, "N": 3, "D": 4, "A": 3, "batches": 4, "units": 16, "learning_starts": 18, "train_every": 9,
         "target_every": 30, "lr": 1e-2, "gamma": 0.95, "max_grad_norm": 0.5, "adam_eps": 1e-8, "tau": 1.0, "n": 1,
         "twice": 0, "squared": 0, "masked": 0, "prioritized": 0, "dueling": 0, "quantiles": 0, "atoms": 0, "v_min": 0.0, "v_max": 0.0, "rescale": 0.0, "memory": None,
         "length": 0, "burn": 0}
MEMORY, FINAL = 6, 1 << 31
SEQUENCES = {"batches": 5, "units": 5, "learning_starts": 60, "target_every": 18}
CASES = {
    "dqn": {"seed": 1},
    "dqn_nstep": {"seed": 2, "n": 3, "squared": 1, "max_grad_norm": 10.0},
    "dqn_double": {"seed": 3, "n": 3, "twice": 1, "prioritized": 1},
    "dqn_masked": {"seed": 4, "n": 5, "masked": 1, "prioritized": 1, "squared": 1, "tau": 0.25},
    "dqn_double_masked": {"seed": 5, "n": 2, "twice": 1, "masked": 1},
    "dqn_dueling": {"seed": 6, "n": 3, "twice": 1, "masked": 1, "prioritized": 1, "tau": 0.5, "dueling": 1},
    "dqn_quantile": {"seed": 7, "n": 2, "quantiles": 7},
    "dqn_quantile_double_masked": {"seed": 8, "n": 3, "quantiles": 5, "twice": 1, "masked": 1, "prioritized": 1, "tau": 0.5},
    "dqn_quantile_dueling": {"seed": 14, "n": 2, "quantiles": 4, "dueling": 1},
    "dqn_atoms": {"seed": 15, "n": 2, "atoms": 7, "v_min": -2.0, "v_max": 3.0},
    "dqn_rainbow": {"seed": 16, "n": 3, "atoms": 11, "v_min": -1.5, "v_max": 1.5, "twice": 1, "masked": 1, "prioritized": 1, "tau": 0.5,
                    "dueling": 1},
    "dqn_rescaled": {"seed": 9, "n": 2, "rescale": 0.01, "prioritized": 1},
    "dqn_lstm": {"seed": 10, "memory": "lstm", "n": 1, "length": 5, "burn": 4, **SEQUENCES},
    "dqn_lstm_double_masked": {"seed": 11, "memory": "lstm", "n": 3, "length": 9, "burn": 6, "twice": 1, "masked": 1, "prioritized": 1,
                               "rescale": 1e-3, "squared": 1, **SEQUENCES},
    "dqn_gru_dueling": {"seed": 12, "memory": "gru", "n": 7, "length": 8, "burn": 0, "twice": 1, "dueling": 1, "prioritized": 1,
                        "tau": 0.5, **SEQUENCES},
    "dqn_lstm_quantile": {"seed": 13, "memory": "lstm", "n": 2, "length": 12, "burn": 1, "quantiles": 5, "twice": 1, "masked": 1,
                          "rescale": 0.01,
                          **SEQUENCES},
}


def stack(*sizes):
    layers = []
    for a, b in zip(sizes, sizes[1:]):
        layers += [nn.Linear(a, b), nn.ReLU()]
    return layers


def numbers(o):
    """Of a choice."""
    return max(1, o["quantiles"], o["atoms"])


class Dueling(nn.Module):
    """The last hidden layer is each stream's own."""

    def __init__(self, o):
        super().__init__()
        *common, last = (o["into"], *HIDDEN)
        self.trunk = nn.Sequential(*stack(*common))
        self.shape = (o["A"], numbers(o))
        self.value, self.advantage = (nn.Sequential(*stack(common[-1], last), nn.Linear(last, n * numbers(o))) for n in (1, o["A"]))

    def forward(self, obs):
        z = self.trunk(obs)
        advantage = self.advantage(z).view(len(z), *self.shape)
        return (self.value(z)[:, None] + advantage - advantage.mean(1, keepdim=True)).flatten(1)


class Remembering(nn.Module):
    """A layer that remembers, before the rest. What is carried: h and, of an lstm, c side by side."""

    def __init__(self, o):
        super().__init__()
        self.layer = (nn.LSTM if o["memory"] == "lstm" else nn.GRU)(o["D"], MEMORY)
        self.behind = heads(dict(o, into=MEMORY))

    def ordered(self):
        layer = self.layer
        return [layer.weight_ih_l0, layer.bias_ih_l0, layer.weight_hh_l0, layer.bias_hh_l0, *self.behind.parameters()]

    def step(self, obs, carry):
        """One step of one env."""
        own = tuple(c[None, None].contiguous() for c in carry.split(MEMORY))
        seen, own = self.layer(torch.tensor(obs)[None, None], own if len(own) > 1 else own[0])
        return self.behind(seen[0])[0], torch.cat([c[0, 0] for c in (own if isinstance(own, tuple) else [own])])


def heads(o):
    return Dueling(o) if o["dueling"] else nn.Sequential(*stack(o["into"], *HIDDEN), nn.Linear(HIDDEN[-1], o["A"] * numbers(o)))


def network(o):
    return Remembering(o) if o["memory"] else heads(dict(o, into=o["D"]))


def ordered(q):
    return q.ordered() if isinstance(q, Remembering) else list(q.parameters())


def carried(o):
    return {None: 0, "lstm": 2 * MEMORY, "gru": MEMORY}[o["memory"]]


def flat(tensors):
    """Weights as [in][out]."""
    return np.concatenate([(t.detach().T if t.dim() == 2 else t.detach()).contiguous().numpy().ravel() for t in tensors])


def some_mask(rng, o, *shape):
    """One choice at least."""
    mask = rng.random((*shape, o["A"])) < 0.5
    np.put_along_axis(mask, rng.integers(0, o["A"], (*shape, 1)), True, -1)
    return (mask | (not o["masked"])).astype(np.uint8)


def play(rng, o):
    """Everything that happened; frame [clock] is before the step of that clock, final [clock] after one that was cut."""
    clocks, N, D = o["batches"] * o["T"], o["N"], o["D"]
    w = {
        "frame": rng.standard_normal((clocks + 1, N, D)).astype(np.float32),
        "final": rng.standard_normal((clocks, N, D)).astype(np.float32),
        "mask": some_mask(rng, o, clocks + 1, N), "final_mask": some_mask(rng, o, clocks, N),
        "reward": rng.standard_normal((clocks, N)).astype(np.float32),
        "terminated": (rng.random((clocks, N)) < 0.12).astype(np.uint8),
        "truncated": (rng.random((clocks, N)) < 0.12).astype(np.uint8),
        "age": np.zeros((clocks + 1, N), np.uint32),
    }
    w["action"] = (rng.random((clocks, N, o["A"])) * w["mask"][:-1]).argmax(-1).astype(np.int32)
    for c in range(clocks):
        w["age"][c + 1] = np.where(w["terminated"][c] | w["truncated"][c], 0, w["age"][c] + 1)
    if o["memory"]:
        carry = rng.standard_normal((o["batches"], N, carried(o))).astype(np.float32)
        w["carry"] = np.where(w["age"][:-1:o["T"], :, None] > 0, carry, np.float32(0))
    return w


def reach(w, o, clock, env):
    """Return, discount, and from which frame it goes on, of which kind; None: not complete."""
    ret, discount = 0.0, 1.0
    for at in range(clock, clock + o["n"]):
        if at >= len(w["reward"]):
            return None
        ret += discount * float(w["reward"][at, env])
        discount *= o["gamma"]
        if w["terminated"][at, env]:
            return ret, 0.0, at, "frame"
        if w["truncated"][at, env]:
            return ret, discount, at, "final"
    return ret, discount, clock + o["n"], "frame"


def bootstrap(w, o, clock, env):
    """Return, discount, and the frame and mask from which it goes on; None: not complete."""
    found = reach(w, o, clock, env)
    return found and (*found[:2], w[found[3]][found[2], env], mask_at(w, env, *found[2:]))


def mask_at(w, env, at, kind):
    return w["mask" if kind == "frame" else "final_mask"][at, env]


def write_batch(out, w, o, b):
    T, end = o["T"], (b + 1) * o["T"]
    of = slice(b * T, end)
    for name in ("frame", "action", "reward"):
        out.write(w[name][of].tobytes())
    out.write(w["age"][b * T].tobytes())
    for name in ("terminated", "truncated", "mask"):
        out.write(w[name][of].tobytes())
    out.write(w["frame"][end].tobytes() + w["mask"][end].tobytes())
    t, env = np.nonzero(w["truncated"][of])
    out.write(struct.pack("<I", len(t)) + t.astype("<u4").tobytes() + env.astype("<u4").tobytes())
    out.write(w["final"][of][t, env].tobytes() + w["final_mask"][of][t, env].tobytes())
    out.write(w["carry"][b].tobytes() if "carry" in w else b"")


def schedule(o):
    """(rows, step of the update, follows) of each step: what is owed, and a copy after the first step that is made once a
    multiple of target_every was passed."""
    batch, made, copied, steps = o["T"] * o["N"], 0, 0, []
    for rows in range(batch, o["batches"] * batch + 1, batch):
        owed = max(0, rows - o["learning_starts"]) // o["train_every"]
        for step in range(owed - made):
            follows = rows // o["target_every"] > copied
            copied = rows // o["target_every"]
            steps.append((rows, step, int(follows)))
        made = owed
    return steps


def h(x, e):
    return torch.sign(x) * (torch.sqrt(x.abs() + 1) - 1) + e * x if e else x


def h_back(x, e):
    """In double: e is small, and what is subtracted nearly equal."""
    x = x.double()
    return (torch.sign(x) * (((torch.sqrt(1 + 4 * e * (x.abs() + 1 + e)) - 1) / (2 * e)) ** 2 - 1) if e else x).float()


def target_of(o, ret, discount, value):
    return h(ret + discount * h_back(value, o["rescale"]), o["rescale"])


def walk(q, w, o, start, env):
    """Heads of a sequence by (clock, kind), without gradient but from the first row that is trained on."""
    carry, seen = torch.from_numpy(w["carry"][start // o["T"], env].copy()), {}
    for clock in range(start, start + o["burn"] + o["length"] + o["n"]):
        with torch.set_grad_enabled(clock >= start + o["burn"]):
            if w["age"][clock, env] == 0:
                carry = torch.zeros_like(carry)
            seen[clock, "frame"], carry = q.step(w["frame"][clock, env], carry)
            if clock < len(w["final"]):
                seen[clock, "final"] = q.step(w["final"][clock, env], carry)[0]
    return seen


def sequences_step(q, target, optimizer, w, o, picks, weight):
    """Rows in the order (step, sequence)."""
    taken_at, values, chooser, ret, discount, mask, action = [], [], [], [], [], [], []
    mine = [walk(q, w, o, *pick) for pick in picks]
    with torch.no_grad():
        other = [walk(target, w, o, *pick) for pick in picks]
    for t in range(o["burn"], o["burn"] + o["length"]):
        for u, (start, env) in enumerate(picks):
            *numbers, at, kind = reach(w, o, start + t, env)
            ret.append(numbers[0])
            discount.append(numbers[1])
            mask.append(mask_at(w, env, at, kind))
            action.append(int(w["action"][start + t, env]))
            taken_at.append(mine[u][start + t, "frame"])
            values.append(other[u][at, kind])
            chooser.append((mine if o["twice"] else other)[u][at, kind].detach())
    weights, lists = np.tile(weight, o["length"]), (ret, discount)
    ret, discount = (torch.tensor(x, dtype=torch.float32) for x in lists)
    chosen = torch.stack(taken_at), torch.stack(values), torch.stack(chooser), ret, discount
    return learn(q, optimizer, o, chosen, torch.tensor(np.stack(mask)), torch.tensor(action), weights)


def learn(q, optimizer, o, heads, mask, action, weight):
    """heads: at, target's next, the chooser's next, returns, discounts."""
    at, values, chooser, ret, discount = heads
    rows, n = torch.arange(len(action)), numbers(o)
    at, values, chooser = (x.reshape(len(action), o["A"], n) for x in (at, values, chooser))
    if o["atoms"]:
        return descend(q, optimizer, o, *atoms_loss(o, at, values, chooser, ret, discount, mask, action, weight))
    best = chooser.mean(2).masked_fill(mask == 0, -torch.inf).argmax(1)
    wanted, taken = target_of(o, ret[:, None], discount[:, None], values[rows, best]), at[rows, action]
    if o["quantiles"]:
        return descend(q, optimizer, o, quantile_loss(n, taken, wanted), weight, taken.mean(1), wanted.mean(1))
    loss = (F.mse_loss if o["squared"] else F.smooth_l1_loss)(taken[:, 0], wanted[:, 0], reduction="none")
    return descend(q, optimizer, o, loss, weight, taken[:, 0], wanted[:, 0])


def step_of(q, target, optimizer, w, o, picks, weight):
    units = [bootstrap(w, o, *pick) for pick in picks]
    at = torch.tensor(np.stack([w["frame"][pick] for pick in picks]))
    ret, discount = (torch.tensor([u[k] for u in units], dtype=torch.float32) for k in (0, 1))
    following, mask = torch.tensor(np.stack([u[2] for u in units])), torch.tensor(np.stack([u[3] for u in units]))
    action = torch.tensor([int(w["action"][pick]) for pick in picks])
    with torch.no_grad():
        values = target(following)
        chooser = q(following) if o["twice"] else values
    return learn(q, optimizer, o, (q(at), values, chooser, ret, discount), mask, action, weight)


def quantile_loss(n, taken, wanted):
    """Quantile regression (arXiv:1710.10044) with kappa 1: a sum over the trained quantiles, a mean over the targets."""
    apart = wanted[:, None, :] - taken[:, :, None]
    level = (torch.arange(n) + 0.5) / n
    huber = torch.where(apart.abs() <= 1, 0.5 * apart ** 2, apart.abs() - 0.5)
    return ((level[None, :, None] - (apart.detach() < 0).float()).abs() * huber).mean(2).sum(1)


def atoms_loss(o, at, values, chooser, ret, discount, mask, action, weight):
    """Algorithm 1 of arXiv:1707.06887: an atom's share of the target goes to its two neighbours."""
    rows, z = torch.arange(len(action)), torch.linspace(o["v_min"], o["v_max"], o["atoms"])
    best = (chooser.softmax(2) @ z).masked_fill(mask == 0, -torch.inf).argmax(1)
    place = (target_of(o, ret[:, None], discount[:, None], z[None]).clamp(o["v_min"], o["v_max"]) - o["v_min"]) / (z[1] - z[0])
    place = place.clamp(0, o["atoms"] - 1)
    shares, low, wanted = values[rows, best].softmax(1), place.floor(), torch.zeros(len(action), o["atoms"])
    wanted.scatter_add_(1, low.long(), shares * (1 - (place - low)))
    wanted.scatter_add_(1, place.ceil().long(), shares * (place - low))
    chosen = at[rows, action]
    loss = -(wanted * chosen.log_softmax(1)).sum(1)
    return loss, weight, chosen.softmax(1) @ z, wanted @ z, loss


def descend(q, optimizer, o, loss, weight, taken, wanted, surprise=None):
    """surprise: what rides, where it is not the error."""
    total = (loss * torch.tensor(weight)).mean()
    optimizer.zero_grad()
    total.backward()
    gradient = flat([p.grad for p in ordered(q)])
    norm = nn.utils.clip_grad_norm_(q.parameters(), o["max_grad_norm"])
    optimizer.step()
    error = (taken - wanted).abs().detach()
    rides = error if surprise is None else surprise.detach()
    return [float(x.detach()) for x in (total, error.mean(), taken.mean(), wanted.mean(), norm)], rides.numpy(), gradient


def follow(q, target, tau):
    if tau == 1:
        target.load_state_dict(q.state_dict())
        return
    with torch.no_grad():
        for mine, other in zip(target.parameters(), q.parameters()):
            mine.mul_(1 - tau).add_(tau * other)


def record(name):
    o = dict(SHAPE, **CASES[name])
    torch.manual_seed(o["seed"])
    rng = np.random.default_rng(o["seed"])
    q, target, w, steps = network(o), network(o), play(rng, o), schedule(o)
    target.load_state_dict(q.state_dict())
    optimizer = torch.optim.Adam(q.parameters(), lr=o["lr"], eps=o["adam_eps"])
    everything = [(c, e) for c in range(o["batches"] * o["T"]) for e in range(o["N"])]
    whole = [pick for pick in everything if bootstrap(w, o, *pick)]
    if o["memory"]:
        reaches = o["burn"] + o["length"] + o["n"] - 1
        whole = [(c, e) for c, e in everything if c % o["T"] == 0 and c + reaches <= o["batches"] * o["T"]]
    one_step = sequences_step if o["memory"] else step_of
    with open(os.path.join(HERE, name + ".bin"), "wb") as out:
        params = flat(ordered(q))
        out.write(struct.pack("<8s19I6f", b"TTDQN\0\0\2", *(o[k] for k in (
            "T", "N", "D", "A", "batches", "n", "units")), len(steps), *(o[k] for k in (
                "twice", "squared", "masked", "prioritized")), len(params), *(o[k] for k in (
                    "learning_starts", "train_every", "target_every", "length", "burn")), carried(o), *(o[k] for k in (
                        "lr", "gamma", "max_grad_norm", "adam_eps", "tau", "rescale"))))
        out.write(params.tobytes())
        for b in range(o["batches"]):
            write_batch(out, w, o, b)
        table = [reach(w, o, *pick) or (0.0, -1.0, 0, "frame") for pick in everything]
        out.write(np.array([[u[k] for u in table] for k in (0, 1)], "<f4").tobytes())
        out.write(np.array([u[2] | (FINAL if u[3] == "final" else 0) for u in table], "<u4").tobytes())
        for rows, step, follows in steps:
            picks = [whole[i] for i in rng.integers(0, len(whole), o["units"])]
            weight = (0.5 + rng.random(o["units"])).astype(np.float32)
            stats, error, gradient = one_step(q, target, optimizer, w, o, picks, weight)
            if follows:
                follow(q, target, o["tau"])
            out.write(struct.pack("<2I", rows, step))
            out.write(np.array([c * o["N"] + e for c, e in picks], "<u4").tobytes() + weight.tobytes())
            out.write(struct.pack("<I5f", follows, *stats) + error.tobytes() + gradient.tobytes())
        out.write(flat(ordered(q)).tobytes() + flat(ordered(target)).tobytes())


if __name__ == "__main__":
    for case in sys.argv[1:] or CASES:
        record(case)
