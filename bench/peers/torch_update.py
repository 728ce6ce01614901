#!/usr/bin/env python3
"""What PyTorch takes for a learner's minibatch, as people write it: one JSON line with the microseconds of each case and way.

torch_update.py CASES.json DEVICE    a list as `tutti bench update --output json` has it; cpu (one thread) or cuda

Forward, PPO's, DQN's, SAC's or TD3's losses, backward, clip by norm where ours does, Adam, on rows drawn from a batch that lies on the device; as many
minibatches before the host waits as `tutti bench update` has. Ways: eager; compiled (torch.compile with CUDA graphs where there is a card); on a card each
in FP32 and in TF32. The median of seven runs.
"""
import copy
import json
import math
import statistics
import sys
import time
import warnings

import torch
from torch import nn

warnings.filterwarnings("ignore")
ROUND, RUNS, SECONDS = 8, 7, 0.5
SIDES = {"nature": (84, 255.0), "impala": (84, 255.0), "minatar": (10, 1.0)}
CHANNELS = 4


class Residual(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.inner = nn.Sequential(nn.ReLU(), nn.Conv2d(channels, channels, 3, padding=1), nn.ReLU(), nn.Conv2d(channels, channels, 3, padding=1))

    def forward(self, x):
        return x + self.inner(x)


def encoder(name):
    """Layers from a picture to a vector, and how long that is."""
    if name == "nature":
        return [nn.Conv2d(CHANNELS, 32, 8, 4), nn.ReLU(), nn.Conv2d(32, 64, 4, 2), nn.ReLU(), nn.Conv2d(64, 64, 3), nn.ReLU(), nn.Flatten(),
                nn.Linear(3136, 512), nn.ReLU()], 512
    if name == "minatar":
        return [nn.Conv2d(CHANNELS, 16, 3), nn.ReLU(), nn.Flatten(), nn.Linear(1024, 128), nn.ReLU()], 128
    layers, channels = [], CHANNELS
    for width in (16, 32, 32):
        layers += [nn.Conv2d(channels, width, 3, padding=1), nn.MaxPool2d(3, 2, 1), Residual(width), Residual(width)]
        channels = width
    return [*layers, nn.ReLU(), nn.Flatten(), nn.Linear(3872, 256), nn.ReLU()], 256


class Net(nn.Module):
    """Heads of `outs` on one encoder, or with two layers of their own each."""

    def __init__(self, case, outs):
        super().__init__()
        self.picture, self.divisor = case["net"] != "mlp", SIDES.get(case["net"], (0, 1.0))[1]
        if self.picture:
            layers, width = encoder(case["net"])
            self.trunk = nn.Sequential(*layers)
            self.heads = nn.ModuleList(nn.Linear(width, out) for out in outs)
            return
        act = nn.Tanh if case["algorithm"] == "ppo" else nn.ReLU
        self.trunk = nn.Identity()
        self.heads = nn.ModuleList(nn.Sequential(nn.Linear(case["obs"], case["hidden"]), act(), nn.Linear(case["hidden"], case["hidden"]), act(),
                                                 nn.Linear(case["hidden"], out)) for out in outs)

    def forward(self, obs):
        x = self.trunk(obs.float() / self.divisor if self.picture else obs)
        return [head(x) for head in self.heads]


class Beside(nn.Module):
    """Heads with two layers each, of an observation or of what an encoder makes of it, and of `numbers` of an action behind that."""

    def __init__(self, case, outs, numbers):
        super().__init__()
        self.picture, self.divisor = case["net"] != "mlp", SIDES.get(case["net"], (0, 1.0))[1]
        layers, width = encoder(case["net"]) if self.picture else ([], case["obs"])
        hidden = case["hidden"]
        self.trunk = nn.Sequential(*layers)
        self.heads = nn.ModuleList(nn.Sequential(nn.Linear(width + numbers, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU(),
                                                 nn.Linear(hidden, out)) for out in outs)

    def forward(self, obs, *action, heads=2):
        x = torch.cat([self.trunk(obs.float() / self.divisor) if self.picture else obs, *action], -1)
        return [head(x) for head in self.heads[:heads]]


def observations(case, count, device):
    if case["net"] == "mlp":
        return torch.rand(count, case["obs"], device=device) * 2 - 1
    side, divisor = SIDES[case["net"]]
    return torch.randint(0, 2 if divisor == 1.0 else 256, (count, CHANNELS, side, side), dtype=torch.uint8, device=device)


class Step:
    """A loss of a batch, whose gradients train `params`; then `after`, if there is something to do."""

    def __init__(self, loss, params, max_norm=0.5, after=None):
        self.loss, self.params, self.max_norm, self.after = loss, list(params), max_norm, after

    def prepare(self, cuda, compiled):
        self.optimizer = torch.optim.Adam(self.params, 1e-5, eps=1e-5, **({"fused": True} if cuda else {}))
        if compiled:
            self.loss = torch.compile(self.loss, mode="reduce-overhead" if cuda else "default")

    def make(self, batch):
        self.optimizer.zero_grad(set_to_none=True)
        self.loss(*batch).backward()
        if self.max_norm:
            nn.utils.clip_grad_norm_(self.params, self.max_norm)
        self.optimizer.step()
        if self.after:
            self.after()


def ppo(case, device):
    """(batch, steps of a minibatch), as in CleanRL's ppo.py."""
    net, count = Net(case, [case["out"], 1]).to(device), case["batch"]
    batch = (observations(case, count, device), torch.arange(count, device=device) % case["out"], *(torch.rand(count, device=device) * 2 - 1 for _ in range(4)))

    def loss(obs, action, advantage, target, old, value):
        logits, new = net(obs)
        log = logits.log_softmax(-1)
        log_prob = log.gather(1, action[:, None])[:, 0]
        ratio = (log_prob - old).exp()
        policy = torch.max(-advantage * ratio, -advantage * ratio.clamp(0.8, 1.2)).mean()
        new = new[:, 0]
        clipped = value + (new - value).clamp(-0.2, 0.2)
        value_loss = 0.5 * torch.max((new - target) ** 2, (clipped - target) ** 2).mean()
        entropy = -(log.exp() * log).sum(-1).mean()
        return policy - 0.01 * entropy + 0.5 * value_loss

    return batch, [Step(loss, net.parameters())]


def dqn(case, device):
    net, target, count = Net(case, [case["out"]]).to(device), Net(case, [case["out"]]).to(device), case["batch"]
    batch = (observations(case, count, device), observations(case, count, device), torch.arange(count, device=device) % case["out"],
             *(torch.rand(count, device=device) for _ in range(3)))

    def loss(obs, after, action, reward, discount, weight):
        with torch.no_grad():
            wanted = reward + discount * target(after)[0].max(1).values
        value = net(obs)[0].gather(1, action[:, None])[:, 0]
        return (weight * nn.functional.smooth_l1_loss(value, wanted, reduction="none")).mean()

    return batch, [Step(loss, net.parameters())]


def same_memory(net):
    """The network without gradients of its own, on the parameters of the first."""
    other = copy.deepcopy(net).requires_grad_(False)
    for mine, its in zip(other.parameters(), net.parameters()):
        mine.data = its.data
    return other


def twins(case, device, outs):
    """An actor, critics, their targets and what the actor goes through, and a batch: rows, what follows them, actions, noise, returns, discounts."""
    numbers, count = case["out"], case["batch"]
    actor, critics = Beside(case, [outs], 0).to(device), Beside(case, [1, 1], numbers).to(device)
    batch = (observations(case, count, device), observations(case, count, device), torch.rand(count, numbers, device=device) * 2 - 1,
             torch.randn(count, numbers, device=device), *(torch.rand(count, device=device) for _ in range(2)))
    return actor, critics, copy.deepcopy(critics).requires_grad_(False), same_memory(critics), batch


def least(nets, obs, action):
    q1, q2 = nets(obs, action)
    return torch.min(q1, q2)[:, 0]


def critics_error(critics, obs, action, wanted):
    return sum(0.5 * nn.functional.mse_loss(q[:, 0], wanted) for q in critics(obs, action))


def follow(followers, leaders):
    def step():
        with torch.no_grad():
            torch._foreach_mul_(followers, 1 - 0.005)
            torch._foreach_add_(followers, leaders, alpha=0.005)
    return step


def sac(case, device):
    """As in Stable-Baselines3's sac.py, but that the noise is given, as ours is; the entropy's weight has its place beside the actor in one
    optimizer, what the actor goes through has no gradients of its parameters, and all targets follow at once: each takes less."""
    numbers = case["out"]
    actor, critics, targets, through, batch = twins(case, device, 2 * numbers)
    log_alpha = nn.Parameter(torch.zeros(1, device=device))
    leaders = list(critics.parameters())

    def draw(obs, noise):
        mean, log_std = actor(obs)[0].chunk(2, -1)
        log_std = log_std.clamp(-20, 2)
        u = mean + log_std.exp() * noise
        log_normal = -0.5 * noise ** 2 - log_std - 0.5 * math.log(2 * math.pi)
        log_slope = 2 * (math.log(2) - u - nn.functional.softplus(-2 * u))
        return u.tanh(), (log_normal - log_slope).sum(-1)

    def critics_loss(obs, after, action, noise, reward, discount):
        with torch.no_grad():
            drawn, log_prob = draw(after, noise)
            wanted = reward + discount * (least(targets, after, drawn) - log_alpha.exp() * log_prob)
        return critics_error(critics, obs, action, wanted)

    def actor_loss(obs, after, action, noise, reward, discount):
        drawn, log_prob = draw(obs, noise)
        weight = -(log_alpha * (log_prob.detach() - numbers)).mean()
        return (log_alpha.detach().exp() * log_prob - least(through, obs, drawn)).mean() + weight

    return batch, [Step(critics_loss, leaders, 0, follow(list(targets.parameters()), leaders)),
                   Step(actor_loss, [*actor.parameters(), log_alpha], 0)]


def td3(case, device):
    """As in Stable-Baselines3's td3.py, with policy_delay 1 and the same liberties: given noise, and a way through the first critic without its
    gradients."""
    actor, critics, targets, through, batch = twins(case, device, case["out"])
    target_actor = copy.deepcopy(actor).requires_grad_(False)
    leaders = list(critics.parameters())

    def critics_loss(obs, after, action, noise, reward, discount):
        with torch.no_grad():
            drawn = (target_actor(after)[0].tanh() + (0.2 * noise).clamp(-0.5, 0.5)).clamp(-1, 1)
            wanted = reward + discount * least(targets, after, drawn)
        return critics_error(critics, obs, action, wanted)

    def actor_loss(obs, after, action, noise, reward, discount):
        return -through(obs, actor(obs)[0].tanh(), heads=1)[0].mean()

    return batch, [Step(critics_loss, leaders, 0),
                   Step(actor_loss, actor.parameters(), 0, follow([*targets.parameters(), *target_actor.parameters()], [*leaders, *actor.parameters()]))]


def measure(case, device, compiled):
    torch.manual_seed(1)
    batch, steps = {"ppo": ppo, "dqn": dqn, "sac": sac, "td3": td3}[case["algorithm"]](case, device)
    if sum(p.numel() for step in steps for p in step.params) != case["parameters"]:
        raise SystemExit("torch_update: %s has other parameters than ours" % case["net"])
    cuda, whole = device == "cuda", case["algorithm"] != "ppo"
    for step in steps:
        step.prepare(cuda, compiled)

    def minibatches():
        for _ in range(ROUND):
            rows = torch.randint(0, case["batch"], (case["rows"],), device=device)
            drawn = batch if whole else [column[rows] for column in batch]
            for step in steps:
                step.make(drawn)
        if cuda:
            torch.cuda.synchronize()

    for _ in range(3):
        minibatches()
    began = time.perf_counter()
    minibatches()
    times = max(1, int(SECONDS / RUNS / (time.perf_counter() - began)))
    runs = []
    for _ in range(RUNS):
        began = time.perf_counter()
        for _ in range(times):
            minibatches()
        runs.append((time.perf_counter() - began) / times / ROUND * 1e6)
    return statistics.median(runs)


def ways(device):
    """{name: (compiled, TF32)}"""
    compiles = hasattr(torch, "compile")
    found = {"eager": (False, False), **({"compiled": (True, False)} if compiles else {})}
    if device == "cuda":
        found |= {"eager, TF32": (False, True), **({"compiled, TF32": (True, True)} if compiles else {})}
    return found


def measure_ways(case, device):
    """Microseconds by way, None where it does not run."""
    took = {}
    for name, (compiled, tf32) in ways(device).items():
        torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = tf32
        torch.backends.cudnn.benchmark = True
        try:
            took[name] = measure(case, device, compiled)
        except RuntimeError as error:  # no compiler for torch.compile, memory: the others count
            took[name] = None
            print("torch_update: %s, %s: %.300s" % (case["net"], name, error), file=sys.stderr)
        if hasattr(torch, "_dynamo"):
            torch._dynamo.reset()
    return took


def main():
    with open(sys.argv[1]) as file:
        cases = json.load(file)
    device = sys.argv[2]
    torch.set_num_threads(1)
    results, known = [], {}
    for case in cases:
        same = tuple(case.get(key) for key in ("algorithm", "net", "obs", "hidden", "out", "rows", "batch"))  # however precise ours is
        if same not in known:
            known[same] = measure_ways(case, device)
        results.append(known[same])
    card = torch.cuda.get_device_properties(0) if device == "cuda" else None
    print(json.dumps({"torch": torch.__version__, "results": results,
                      "card": card and {"name": card.name, "multiprocessors": card.multi_processor_count, "memory": card.total_memory,
                                        "capability": [card.major, card.minor]}}))


if __name__ == "__main__":
    main()
