#!/usr/bin/env python3
"""Computes whole PPO updates with PyTorch, for tests/learner/test_ppo_torch.c.

    python3 -m venv /tmp/venv && /tmp/venv/bin/pip install torch numpy
    /tmp/venv/bin/python tests/golden/torch/ppo_update.py [CASE ...]

mixture_states: deviations of floats are the last numbers of the actor's head.

lstm*, gru*: a layer that remembers (torch.nn.LSTM, torch.nn.GRU) before the others, one for both towers where the name has "shared", else one
each; hidden layers behind it where it has "hidden". Minibatches are envs with all their steps.

vtrace_*: advantages and targets by V-trace (Espeholt et al. 2018, equation 1), the advantages with a deviation of 1 over the batch before they weigh
rho. impala*: the same of one step of all rows, whose loss has log-probabilities in place of ratios, and advantages as they are.

groups*: actor and critic have optimisers of their own (tests/learner/pair.c); each minibatch is two steps, of the critic's and then of the actor's.

The committed files were made on a CPU: discrete* and continuous* with PyTorch 2.15.0 and NumPy 2.4.6, the others
with PyTorch 1.13.0 and NumPy 1.24.2. Nothing is shared with the C code: losses and
gradients are autograd's over the formulas of CleanRL's ppo.py and ppo_continuous_action.py, the optimiser is
torch.optim.Adam, the clip torch.nn.utils.clip_grad_norm_, the advantages the textbook recursion, the shuffle Philox
4x32-10 written anew.

One file a case, little-endian:
    char magic[8] "TTPPO\\0\\0\\2"
    u32 T, N, D, A, kind (0 one choice, 1 one box, 2 any), clip_value, stale, cleanrl, epochs, minibatches, finals,
        parameters; u64 seed, update
    f32 lr, gamma, lambda, clip, entropy, value_coef, max_grad_norm, adam_eps
    kind 2: char action [64] (the space in words), u32 masked
    f32 params [parameters]           in the order of the tensor table, weights as [in][out]
    f32 obs [T*N][D], last [N][D], final_obs [finals][D]; u32 final_row [finals]
    action: i32 [T*N], or f32 [T*N][A], or of each part in order i32 (choices), u8 (bits) or f32 (box) [T*N][elements];
            masked: u8 mask [T*N][choices of all elements]
    f32 reward [T*N]; u8 terminated [T*N], truncated [T*N] (T*N a multiple of 4)
    f32 log_prob [T*N], value [T*N], last_value [N], final_value [finals]     of the behaviour version
    lstm*, gru*: f32 carry [N][C], for each layer that remembers h and, of an lstm, c; u8 begins [T*N]
    and expected:
    per optimiser step: f32 policy_loss, value_loss, entropy, approx_kl, old_approx_kl, clipfrac, grad_norm;
                        u32 first_row; f32 gradient [parameters] (before the clip)
    f32 params [parameters] after the update; f32 explained_variance
"""

import os
import struct
import sys

import numpy as np
import torch
from torch import nn

HIDDEN = (12, 8)
MEMORY = 6  # units of a layer that remembers
HERE = os.path.dirname(os.path.abspath(__file__))
RHO, C = 1.05, 0.95  # of V-trace
SHUFFLE = 5  # TT_STREAM_SHUFFLE


def philox(counter, key):
    """Philox 4x32-10 (Salmon et al. 2011)."""
    c, k = list(counter), list(key)
    for _ in range(10):
        p0, p1 = c[0] * 0xD2511F53, c[2] * 0xCD9E8D57
        c = [(p1 >> 32) ^ c[1] ^ k[0], p1 & 0xFFFFFFFF, (p0 >> 32) ^ c[3] ^ k[1], p0 & 0xFFFFFFFF]
        k = [(k[0] + 0x9E3779B9) & 0xFFFFFFFF, (k[1] + 0xBB67AE85) & 0xFFFFFFFF]
    return c


def shuffled(rows, seed, update, epoch):
    order, words = list(range(rows)), []
    for k, left in enumerate(range(rows, 1, -1)):
        if k % 4 == 0:
            words = philox([k // 4, epoch, update & 0xFFFFFFFF, SHUFFLE], [seed & 0xFFFFFFFF, seed >> 32])
        pick = words[k % 4] * left >> 32
        order[left - 1], order[pick] = order[pick], order[left - 1]
    return order


def shuffled_envs(o, epoch):
    """The same of envs, each with all its steps."""
    order = shuffled(o["N"], o["seed"], o["update"], epoch)
    return [t * o["N"] + env for env in order for t in range(o["T"])]


def mlp(inputs, outputs, hidden=HIDDEN):
    sizes, layers = (inputs, *hidden), []
    for a, b in zip(sizes, sizes[1:]):
        layers += [nn.Linear(a, b), nn.Tanh()]
    return nn.Sequential(*layers, nn.Linear(sizes[-1], outputs))


def wide_of(parts):
    return sum(size for kind, size in parts if kind == "box")


class Parts:
    """Any space of actions: an independent distribution for each element. A bit is a Bernoulli, which is what two
    logits are; masked choices have a logit of -inf."""

    def __init__(self, parts, head, log_std, mask):
        self.dists, at, wide, bit = [], 0, 0, 0
        if log_std is None:  # each row's own, at the end of its head
            log_std = head[:, len(head[0]) - wide_of(parts):].clamp(-20, 2)
        for kind, size in parts:
            if kind == "box":
                deviation = log_std[..., wide:wide + size].exp().expand(len(head), size)
                self.dists.append([torch.distributions.Normal(head[:, at:at + size], deviation)])
                at, wide = at + size, wide + size
                continue
            self.dists.append([])
            for n in [2] * size if kind == "bits" else size:
                logits = head[:, at:at + n]
                if mask is not None:
                    logits = logits.masked_fill(mask[:, bit:bit + n] == 0, -torch.inf)
                at, bit = at + n, bit + n
                if kind == "bits" and mask is None:
                    self.dists[-1].append(torch.distributions.Bernoulli(logits=logits[:, 1] - logits[:, 0]))
                else:
                    self.dists[-1].append(torch.distributions.Categorical(logits=logits))

    def sample(self):
        return [torch.stack([d.sample() for d in dists], 1).reshape(len(dists[0].sample()), -1) for dists in self.dists]

    def log_prob(self, action):
        total = 0
        for dists, a in zip(self.dists, action):
            if isinstance(dists[0], torch.distributions.Normal):
                total = total + dists[0].log_prob(a).sum(1)
            else:
                total = total + sum(d.log_prob(a[:, e].float()) for e, d in enumerate(dists))
        return total

    def entropy(self):
        flat = [d.entropy() for dists in self.dists for d in dists]
        return sum(e.sum(1) if e.dim() == 2 else e for e in flat)


class Agent(nn.Module):
    def __init__(self, obs, out, continuous, parts=None, shared=False, states=False):
        super().__init__()
        self.trunk = mlp(obs, 1)[:-1] if shared else nn.Identity()
        tower = (lambda outputs: nn.Linear(HIDDEN[-1], outputs)) if shared else (lambda outputs: mlp(obs, outputs))
        self.actor, self.critic, self.parts = tower(out), tower(1), parts
        wide = 0 if states else wide_of(parts) if parts else out * continuous
        self.log_std = nn.Parameter(torch.randn(wide) * 0.3) if wide else None

    def dist(self, obs, mask=None):
        head = self.actor(self.trunk(obs))
        if self.parts:
            return Parts(self.parts, head, self.log_std, mask)
        if self.log_std is None:
            return torch.distributions.Categorical(logits=head)
        return torch.distributions.Independent(torch.distributions.Normal(head, self.log_std.exp().expand_as(head)), 1)

    def value(self, obs):
        return self.critic(self.trunk(obs))[:, 0]

    def ordered(self):
        """Parameters in the order of the tensor table."""
        log_std = [] if self.log_std is None else [self.log_std]
        return [*self.trunk.parameters(), *self.actor.parameters(), *log_std, *self.critic.parameters()]

    def seen(self, b, rows):
        """What dist and value read of these rows."""
        return torch.from_numpy(b["obs"])[rows]

    def all_seen(self, b):
        return {key: torch.from_numpy(b[key]) for key in ("obs", "last", "final_obs")}


class Remembering(Agent):
    """What dist and value read is what the layers that remember gave: that of the actor, then that of the critic."""

    def __init__(self, o):
        super().__init__(MEMORY, o["A"], o["continuous"], o["parts"])
        kind = nn.LSTM if o["memory"] == "lstm" else nn.GRU
        hidden = HIDDEN if o["hidden"] else ()
        self.layers = nn.ModuleList(kind(o["D"], MEMORY) for _ in range(1 if o["shared"] else 2))
        self.trunk = mlp(MEMORY, 1)[:-1] if o["shared"] and hidden else nn.Identity()
        behind = () if o["shared"] else hidden
        width = hidden[-1] if o["shared"] and hidden else MEMORY
        self.actor, self.critic = mlp(width, o["A"], behind), mlp(width, 1, behind)
        self.size = MEMORY * (2 if o["memory"] == "lstm" else 1)
        self.T, self.N = o["T"], o["N"]

    def carry_size(self):
        return self.size * len(self.layers)

    def dist(self, seen, mask=None):
        return super().dist(seen[:, :MEMORY], mask)

    def value(self, seen):
        return super().value(seen[:, -MEMORY:])

    def ordered(self):
        parts = [[layer.weight_ih_l0, layer.bias_ih_l0, layer.weight_hh_l0, layer.bias_hh_l0] for layer in self.layers]
        log_std = [] if self.log_std is None else [self.log_std]
        actor, critic = [*self.trunk.parameters(), *self.actor.parameters(), *log_std], [*self.critic.parameters()]
        return [*parts[0], *actor, *(parts[1] if len(parts) > 1 else []), *critic]

    def step(self, obs, carry):
        """One step of some envs: what is seen, what is carried on."""
        seen, out = [], []
        for layer, own in zip(self.layers, carry.split(self.size, 1)):
            own = [c[None].contiguous() for c in own.split(MEMORY, 1)]
            result, own = layer(obs[None], tuple(own) if len(own) > 1 else own[0])
            seen.append(result[0])
            out += [c[0] for c in own] if isinstance(own, tuple) else [own[0]]
        return torch.cat(seen, 1), torch.cat(out, 1)

    def walk(self, b, envs):
        """All steps of some envs: [T][envs] of each of the two."""
        obs = torch.from_numpy(b["obs"]).reshape(self.T, self.N, -1)[:, envs]
        begins = torch.from_numpy(b["begins"]).reshape(self.T, self.N, 1)[:, envs].float()
        carry, seen, carried = torch.from_numpy(b["carry"])[envs], [], []
        for t in range(self.T):
            result, carry = self.step(obs[t], carry * (1 - begins[t]))
            seen.append(result)
            carried.append(carry)
        return torch.stack(seen), torch.stack(carried)

    def seen(self, b, rows):
        return self.walk(b, rows[::self.T])[0].transpose(0, 1).flatten(0, 1)

    def all_seen(self, b):
        seen, carried = self.walk(b, list(range(self.N)))
        done = torch.from_numpy(b["terminated"] | b["truncated"]).reshape(self.T, self.N, 1)[-1].float()
        final = carried.flatten(0, 1)[b["final_row"].astype(np.int64)]
        return {"obs": seen.flatten(0, 1), "last": self.step(torch.from_numpy(b["last"]), carried[-1] * (1 - done))[0],
                "final_obs": self.step(torch.from_numpy(b["final_obs"]), final)[0]}


def flat(tensors):
    """Weights as [in][out]."""
    return np.concatenate([(t.detach().T if t.dim() == 2 else t.detach()).contiguous().numpy().ravel() for t in tensors])


def advantages(b, value, last_value, final_value, o):
    T, N = o["T"], o["N"]
    out, later = np.zeros((T, N)), np.zeros(N)
    finals = dict(zip(b["final_row"].tolist(), np.asarray(final_value, dtype=np.float64)))
    for t in reversed(range(T)):
        for e in range(N):
            row = t * N + e
            cut = b["truncated"][row] and not b["terminated"][row]
            done = b["terminated"][row] or b["truncated"][row]
            if cut and not o["cleanrl"]:
                following = finals[row]
            elif done:
                following = 0.0
            else:
                following = last_value[e] if t == T - 1 else value[row + N]
            delta = b["reward"][row] + o["gamma"] * following - value[row]
            later[e] = delta + (0.0 if done else o["gamma"] * o["lambda"] * later[e])
            out[t, e] = later[e]
    return torch.tensor(out.ravel(), dtype=torch.float32)


def traced(b, ratio, value, last_value, final_value, o):
    """V-trace: targets, and what follows a step as a target of its own less its value."""
    T, N = o["T"], o["N"]
    finals = dict(zip(b["final_row"].tolist(), final_value.tolist()))
    target, advantage = np.zeros(T * N), np.zeros(T * N)
    rho, c = np.minimum(RHO, ratio), o["lambda"] * np.minimum(C, ratio)
    done = b["terminated"] | b["truncated"]
    next_value = np.zeros(T * N)
    for row in range(T * N):
        after = last_value[row % N] if row + N >= T * N else value[row + N]
        next_value[row] = 0 if b["terminated"][row] else finals[row] if b["truncated"][row] else after
    delta = rho * (b["reward"] + o["gamma"] * next_value - value)
    for row in range(T * N):  # equation 1, sum by sum
        weight, at, target[row] = 1.0, row, value[row]
        while True:
            target[row] += weight * delta[at]
            weight *= o["gamma"] * c[at]
            if done[at] or at + N >= T * N:
                break
            at += N
    for row in range(T * N):
        after = next_value[row] if done[row] or row + N >= T * N else target[row + N]
        advantage[row] = b["reward"][row] + o["gamma"] * after - value[row]
    if o["normalize"]:
        advantage = (advantage - advantage.mean()) / (advantage.std(ddof=1) + 1e-8)
    return [torch.tensor(x, dtype=torch.float32) for x in (rho * advantage, target)]


def losses(agent, o, seen, mask, action, old_log_prob, old_value, advantage, target):
    dist, value = agent.dist(seen, mask), agent.value(seen)
    log_ratio = dist.log_prob(action) - old_log_prob
    ratio = log_ratio.exp()
    if not o["vtrace"]:
        advantage = (advantage - advantage.mean()) / (advantage.std() + 1e-8)
    policy = -(advantage * dist.log_prob(action)).mean() if o["plain"] else torch.max(-advantage * ratio, -advantage * ratio.clamp(1 - o["clip"], 1 + o["clip"])).mean()
    square = (value - target) ** 2
    if o["clip_value"]:
        held = old_value + (value - old_value).clamp(-o["clip"], o["clip"])
        square = torch.max(square, (held - target) ** 2)
    value_loss, entropy = 0.5 * square.mean(), dist.entropy().mean()
    total = policy - o["entropy"] * entropy + o["value_coef"] * value_loss
    clipped = ((ratio - 1).abs() > o["clip"]).float().mean()
    if o["plain"]:
        return total, [policy, value_loss, entropy, *torch.zeros(3)]
    return total, [policy, value_loss, entropy, (ratio - 1 - log_ratio).mean(), (-log_ratio).mean(), clipped]


STORED = {"choices": np.int32, "bits": np.uint8, "box": np.float32}


def make_mask(rng, parts, rows):
    """One choice of every element at least."""
    sizes = [n for kind, size in parts if kind != "box" for n in ([2] * size if kind == "bits" else size)]
    masks = []
    for n in sizes:
        mask = rng.random((rows, n)) < 0.6
        mask[np.arange(rows), rng.integers(0, n, rows)] = True
        masks.append(mask)
    return np.concatenate(masks, 1).astype(np.uint8)


def simple_action(dist, o):
    if o["continuous"]:
        return torch.distributions.Independent(torch.distributions.Normal(dist.mean, 1.0), 1).sample()
    return dist.sample()


def masked(b):
    return [None if b["mask"] is None else torch.from_numpy(b["mask"])]


def picked(action, pick):
    return [a[pick] for a in action] if isinstance(action, list) else action[pick]


def make_batch(rng, agent, o):
    T, N, D, A = o["T"], o["N"], o["D"], o["A"]
    rows = T * N
    b = {
        "obs": rng.standard_normal((rows, D)), "last": rng.standard_normal((N, D)), "reward": rng.standard_normal(rows),
        "terminated": rng.random(rows) < 0.08, "truncated": rng.random(rows) < 0.08,
    }
    b["final_row"] = np.flatnonzero(b["truncated"]).astype(np.uint32)
    b["final_obs"] = rng.standard_normal((len(b["final_row"]), D))
    for name in ("obs", "last", "reward", "final_obs"):
        b[name] = b[name].astype(np.float32)
    for name in ("terminated", "truncated"):
        b[name] = b[name].astype(np.uint8)
    b["mask"] = make_mask(rng, o["parts"], rows) if o["masked"] else None
    if o["memory"]:
        ends = (b["terminated"] | b["truncated"]).reshape(T, N)
        b["begins"] = np.concatenate([rng.random((1, N)) < 0.4, ends[:-1]]).astype(np.uint8).ravel()
        b["carry"] = rng.uniform(-0.8, 0.8, (N, agent.carry_size())).astype(np.float32)
    with torch.no_grad():  # the behaviour policy is a neighbour of the one in training
        seen = agent.all_seen(b)
        dist = agent.dist(seen["obs"], *masked(b))
        if o["parts"]:
            action = dist.sample()
            b["action"] = [a.numpy().astype(STORED[kind]) for a, (kind, _) in zip(action, o["parts"])]
        else:
            action = simple_action(dist, o)
            b["action"] = action.numpy().astype(np.float32 if o["continuous"] else np.int32)
        shift = lambda n, by: (by * rng.standard_normal(n)).astype(np.float32)
        b["log_prob"] = dist.log_prob(action).numpy() + shift(rows, 0.2)
        for name, at in (("value", "obs"), ("last_value", "last"), ("final_value", "final_obs")):
            b[name] = agent.value(seen[at]).numpy() + shift(len(b[at]), 0.3)
    return b


def whole(agent, o):
    """[(optimizer, its parameters, the norm they are clipped to)] of a minibatch's steps."""
    return [(torch.optim.Adam(agent.ordered(), lr=o["lr"], eps=o["adam_eps"]), agent.ordered(), o["max_grad_norm"])]


def by_group(agent, o):
    """The same with optimisers of their own: as pair.c has them."""
    critic = [*agent.critic.parameters()]
    actor = [*agent.actor.parameters()] + ([] if agent.log_std is None else [agent.log_std])
    return [(torch.optim.Adam(critic, lr=3 * o["lr"], eps=1e-5), critic, 0.6),
            (torch.optim.RMSprop(actor, lr=o["lr"], alpha=0.99, eps=1e-5), actor, 0.3)]


def update(agent, b, o, out):
    rows = o["T"] * o["N"]
    mask = masked(b)[0]
    action = [torch.from_numpy(a) for a in b["action"]] if o["parts"] else torch.from_numpy(b["action"])
    log_prob, value, last, final = (torch.from_numpy(b[k]) for k in ("log_prob", "value", "last_value", "final_value"))
    if o["stale"]:
        with torch.no_grad():
            seen = agent.all_seen(b)
            log_prob = agent.dist(seen["obs"], mask).log_prob(action)
            value, last, final = (agent.value(seen[key]) for key in ("obs", "last", "final_obs"))
    estimates = [x.double().numpy() for x in (value, last, final)]
    if o["vtrace"]:
        ratio = np.exp(log_prob.double().numpy() - b["log_prob"].astype(np.float64))
        advantage, target = traced(b, ratio, *estimates, o)
    else:
        advantage = advantages(b, *estimates, o)
        target = advantage + value
    steps = (by_group if o["groups"] else whole)(agent, o)
    size = rows // o["minibatches"]
    for epoch in range(o["epochs"]):
        order = shuffled_envs(o, epoch) if o["memory"] else shuffled(rows, o["seed"], o["update"], epoch)
        for index in range(o["minibatches"]):
            pick = order[index * size:(index + 1) * size]
            for optimizer, trained, max_norm in steps:
                total, stats = losses(agent, o, agent.seen(b, pick), None if mask is None else mask[pick], picked(action, pick),
                                      log_prob[pick], value[pick], advantage[pick], target[pick])
                agent.zero_grad()
                total.backward()
                gradient = flat([p.grad for p in agent.ordered()])
                norm = nn.utils.clip_grad_norm_(trained, max_norm)
                optimizer.step()
                out.write(struct.pack("<7fI", *(float(s.detach()) for s in stats), float(norm), pick[0]))
                out.write(gradient.astype("<f4").tobytes())
    out.write(flat(agent.ordered()).astype("<f4").tobytes())
    explained = 1 - (target - value).double().numpy().var() / target.double().numpy().var()
    out.write(struct.pack("<f", explained))


def write_case(name, number, **options):
    if sys.argv[1:] and name not in sys.argv[1:]:
        return
    o = {"parts": None, "continuous": False, "masked": False, "shared": False, "groups": False, "states": False,
         "memory": None, "hidden": False, "vtrace": False, "plain": False, "normalize": True,
         "T": 16, "N": 4, "D": 3, "A": 3, "epochs": 2, "minibatches": 4, "lr": 1e-3, "gamma": 0.97, "lambda": 0.9,
         "clip": 0.15, "entropy": 0.02, "value_coef": 0.6, "max_grad_norm": 0.4, "adam_eps": 1e-5,
         "seed": 0x1234567890ABCDEF + number, "update": 7 + number, "cleanrl": False, **options}
    torch.manual_seed(number)
    rng = np.random.default_rng(number)
    agent = Remembering(o) if o["memory"] else Agent(o["D"], o["A"], o["continuous"], o["parts"], o["shared"], o["states"])
    b = make_batch(rng, agent, o)
    params = flat(agent.ordered()).astype("<f4")
    with open(os.path.join(HERE, name + ".bin"), "wb") as out:
        out.write(b"TTPPO\0\0\2")
        kind = 2 if o["parts"] else int(o["continuous"])
        out.write(struct.pack("<12I2Q", *(o[k] for k in ("T", "N", "D", "A")), kind,
                              *(int(o[k]) for k in ("clip_value", "stale", "cleanrl", "epochs", "minibatches")),
                              len(b["final_row"]), len(params), o["seed"], o["update"]))
        out.write(struct.pack("<8f", *(o[k] for k in ("lr", "gamma", "lambda", "clip", "entropy", "value_coef",
                                                       "max_grad_norm", "adam_eps"))))
        if o["parts"]:
            out.write(struct.pack("<64sI", o["space"].encode(), o["masked"]))
        out.write(params.tobytes())
        for key in ("obs", "last", "final_obs", "final_row", "action", "reward", "terminated", "truncated", "log_prob",
                    "value", "last_value", "final_value"):
            for array in b[key] if isinstance(b[key], list) else [b[key]]:
                out.write(np.ascontiguousarray(array).tobytes())
            if key == "action" and o["masked"]:
                out.write(b["mask"].tobytes())
        if o["memory"]:
            out.write(b["carry"].tobytes() + b["begins"].tobytes())
        update(agent, b, o, out)


if __name__ == "__main__":
    torch.set_num_threads(1)
    write_case("discrete_clip_value", 1, continuous=False, clip_value=True, stale=False)
    write_case("discrete_stale", 2, continuous=False, clip_value=False, stale=True)
    write_case("discrete_cleanrl", 3, continuous=False, clip_value=True, stale=False, cleanrl=True)
    write_case("continuous_clip_value", 4, continuous=True, clip_value=True, stale=True)
    write_case("continuous", 5, continuous=True, clip_value=False, stale=False)
    write_case("multi_discrete", 6, space="multi_discrete(3, 2, 4)", parts=[("choices", [3, 2, 4])], A=9,
               clip_value=True, stale=False)
    write_case("multi_binary", 7, space="multi_binary[3]", parts=[("bits", 3)], A=6, clip_value=False, stale=True)
    write_case("masked", 8, space="discrete(5)", parts=[("choices", [5])], A=5, masked=True, clip_value=False,
               stale=True)
    write_case("mixture", 9, space="(discrete(3), float32[2])", parts=[("choices", [3]), ("box", 2)], A=5,
               clip_value=False, stale=True)
    write_case("mixture_states", 21, space="(discrete(3), float32[2])", parts=[("choices", [3]), ("box", 2)], A=7,
               states=True, clip_value=False, stale=True)
    write_case("mixture_masked", 10, space="(float32, multi_discrete(2, 4), multi_binary[2], float32[2])", A=13,
               parts=[("box", 1), ("choices", [2, 4]), ("bits", 2), ("box", 2)], masked=True, clip_value=True,
               stale=False)
    write_case("mixture_masked_shared", 15, space="(float32, multi_discrete(2, 4), multi_binary[2], float32[2])", A=13,
               parts=[("box", 1), ("choices", [2, 4]), ("bits", 2), ("box", 2)], masked=True, clip_value=False,
               stale=True, shared=True)
    write_case("discrete_shared", 11, clip_value=True, stale=False, shared=True)
    write_case("groups", 13, clip_value=True, stale=False, groups=True)
    write_case("groups_continuous", 14, continuous=True, clip_value=False, stale=True, groups=True)
    write_case("continuous_shared", 12, continuous=True, clip_value=False, stale=True, shared=True)
    write_case("vtrace_discrete", 22, vtrace=True, clip_value=False, stale=True)
    write_case("vtrace_mixture_masked", 23, space="(float32, multi_discrete(2, 4), multi_binary[2], float32[2])", A=13,
               parts=[("box", 1), ("choices", [2, 4]), ("bits", 2), ("box", 2)], masked=True, vtrace=True, clip_value=True,
               stale=True)
    write_case("impala", 24, vtrace=True, plain=True, normalize=False, epochs=1, minibatches=1, clip_value=False, stale=True)
    few = {"N": 6, "minibatches": 2}
    write_case("lstm_shared", 16, memory="lstm", shared=True, clip_value=True, stale=False, **few)
    write_case("gru_shared", 17, memory="gru", shared=True, continuous=True, clip_value=False, stale=True, **few)
    write_case("lstm_hidden", 18, memory="lstm", hidden=True, clip_value=False, stale=True, **few)
    write_case("gru_hidden", 19, memory="gru", hidden=True, continuous=True, clip_value=True, stale=False, **few)
    write_case("lstm_hidden_shared", 20, memory="lstm", hidden=True, shared=True, space="(discrete(3), float32[2])", A=5,
               parts=[("choices", [3]), ("box", 2)], masked=True, clip_value=False, stale=True, **few)
