#!/usr/bin/env python3
"""Record what PyTorch computes for a shared trunk with two optimisers, and for a step of double DQN with a target network, plain,
dueling, and dueling with noisy streams, and for an actor and two critics that see pictures, as tests/nn/test_torch_nets.c reads it.

    python3 -m venv /tmp/venv && /tmp/venv/bin/pip install torch numpy safetensors
    /tmp/venv/bin/python tests/golden/torch/record_nets.py      # writes nn-shared, nn-dqn, nn-dueling, nn-noisy and nn-critics.safetensors

nn-shared: <tensor> (parameters, [out][in]), obs, target (actor), target_value (critic), target_aux, head, value, aux, loss
(summed over rows), grad.<tensor>, norm.<group>, and stepped.<tensor> after one step of each group's optimiser.
nn-dqn, nn-dueling, nn-noisy: <tensor>, target.<tensor>, obs, next, action, reward, discount, q, loss, td (absolute errors), grad.<tensor>,
stepped.<tensor>, blended.<tensor> (the target network after it). The noise of nn-noisy is that of tests/nn/fixture.h, fixture_noise:
Philox and Box-Muller in numpy.
nn-critics: <tensor>, target.<tensor>, obs, next (pictures, channels first), action, noise, reward, discount, head (the actor's), and of
two losses, summed over rows, loss.critic, loss.actor, critic.<tensor> and actor.<tensor>: their gradients, 0 of what they do not train."""
import os
import sys

import numpy as np
import torch
from safetensors.numpy import save_file

OBS, ROWS = 5, 43


def layers(units, hidden, activation, out):
    parts = []
    for h in hidden:
        parts += [torch.nn.Linear(units, h), activation()]
        units = h
    return torch.nn.Sequential(*parts, *([torch.nn.Linear(units, out)] if out else []))


def write(name, out):
    arrays = {k: np.ascontiguousarray(v.detach().numpy()) for k, v in out.items()}
    path = os.path.join(os.path.dirname(os.path.abspath(sys.argv[0])), f"nn-{name}.safetensors")
    save_file(arrays, path, metadata={"torch": torch.__version__, "seed": "5", "script": "record_nets.py"})
    print(path, len(arrays), "arrays", os.path.getsize(path), "bytes")


def named(prefix, module, of=lambda p: p):
    return {prefix + n: of(p).detach().clone() for n, p in module.named_parameters()}


def shared():
    net = torch.nn.Module()
    net.trunk = layers(OBS, (18, 12), torch.nn.Tanh, 0)
    net.actor = layers(12, (), None, 3)
    net.actor.log_std = torch.nn.Parameter(torch.randn(3) * 0.2 - 0.3)
    net.critic = layers(12, (7,), torch.nn.ReLU, 1)
    net.aux = layers(12, (), None, 2)
    out = named("", net)
    obs, target, target_value, target_aux = (torch.randn(ROWS, n) for n in (OBS, 3, 1, 2))
    z = net.trunk(obs)
    head, value, aux = net.actor(z), net.critic(z), net.aux(z)
    scale = torch.exp(-net.actor.log_std)
    off = (scale * (head - target) ** 2).sum() + ((value - target_value) ** 2).sum() + ((aux - target_aux) ** 2).sum()
    loss = 0.5 * off
    loss.backward()
    out.update(obs=obs, target=target, target_value=target_value, target_aux=target_aux, head=head, value=value, aux=aux,
               loss=loss)
    out.update(named("grad.", net, lambda p: p.grad))
    groups = [list(net.trunk.parameters()) + list(net.actor.parameters()),
              list(net.critic.parameters()) + list(net.aux.parameters())]
    optimisers = [torch.optim.Adam(groups[0], lr=1e-3, eps=1e-5), torch.optim.RMSprop(groups[1], lr=1e-2, eps=1e-5)]
    for g, (parameters, optimiser, max_norm) in enumerate(zip(groups, optimisers, (0.5, 40.0))):
        out[f"norm.{g}"] = torch.nn.utils.clip_grad_norm_(parameters, max_norm)
        optimiser.step()
    out.update(named("stepped.", net))
    write("shared", out)


class Plain(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.q = layers(OBS, (18, 12), torch.nn.ReLU, 4)


class Dueling(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = torch.nn.Sequential(torch.nn.Linear(OBS, 18), torch.nn.ReLU())
        self.value, self.advantage = (layers(18, (12,), torch.nn.ReLU, out) for out in (1, 4))

    def q(self, obs):
        z = self.trunk(obs)
        advantage = self.advantage(z)
        return self.value(z) + advantage - advantage.mean(1, keepdim=True)


def philox(counter, key):
    """Philox 4x32-10 (Salmon et al. 2011): four words of counter[4][n] and key[2]."""
    c, k = [np.uint64(part) + np.zeros(len(counter[0]), np.uint64) for part in counter], [np.uint64(part) for part in key]
    low = np.uint64(0xFFFFFFFF)
    for _ in range(10):
        a, b = c[0] * np.uint64(0xD2511F53), c[2] * np.uint64(0xCD9E8D57)
        c = [(b >> np.uint64(32)) ^ c[1] ^ k[0], b & low, (a >> np.uint64(32)) ^ c[3] ^ k[1], a & low]
        k = [(k[0] + np.uint64(0x9E3779B9)) & low, (k[1] + np.uint64(0xBB67AE85)) & low]
    return c


def noise(who, count):
    """f(normal) of the inputs or outputs of a layer, as the trainer draws it."""
    seed, stream, clock = 31, 9, 5
    draws = np.arange((count + 3) // 4, dtype=np.uint64) + np.uint64(clock << 20)
    words = philox([draws & np.uint64(0xFFFFFFFF), draws >> np.uint64(32), [who] * len(draws), [stream] * len(draws)], (seed, 0))
    found = []
    for radius, turn in (words[:2], words[2:]):
        size = np.sqrt(-2 * np.log(((radius >> np.uint64(8)) + np.uint64(1)) / 2.0**24))
        angle = 2 * np.pi * (turn >> np.uint64(8)) / 2.0**24
        found += [size * np.cos(angle), size * np.sin(angle)]
    normal = np.stack(found, 1).reshape(-1)[:count]
    return torch.from_numpy((np.sign(normal) * np.sqrt(abs(normal))).astype(np.float32))


class NoisyLinear(torch.nn.Linear):
    """Fortunato et al. 2018, factorised. number: of the weight among all tensors; target networks draw for themselves."""

    def __init__(self, units, out, number, target):
        super().__init__(units, out)
        for name in ("weight", "bias"):
            self.register_parameter(name + "_sigma", torch.nn.Parameter(torch.rand_like(getattr(self, name)) - 0.3))
        self.inputs, self.outputs = noise(target << 16 | number, units), noise(target << 16 | number + 1, out)

    def forward(self, x):
        weight = self.weight + self.weight_sigma * torch.outer(self.outputs, self.inputs)
        return torch.nn.functional.linear(x, weight, self.bias + self.bias_sigma * self.outputs)


class Noisy(Dueling):
    """Before the tensors of the advantages stand two of the trunk and eight of the value."""

    def __init__(self, target=False):
        super().__init__()
        self.value, self.advantage = (
            torch.nn.Sequential(NoisyLinear(18, 12, number, target), torch.nn.ReLU(), NoisyLinear(12, out, number + 2, target))
            for number, out in ((2, 1), (10, 4)))


def dqn(name, kind, of_target=None):
    net, target = kind(), (of_target or kind)()
    out = {**named("", net), **named("target.", target)}
    obs, following = torch.randn(ROWS, OBS), torch.randn(ROWS, OBS)
    action = torch.randint(0, 4, (ROWS,))
    reward, discount = torch.randn(ROWS), 0.99 * (torch.rand(ROWS) < 0.8).float()
    with torch.no_grad():
        best = net.q(following).argmax(1)
        goal = reward + discount * target.q(following).gather(1, best[:, None])[:, 0]
    q = net.q(obs)
    td = q.gather(1, action[:, None])[:, 0] - goal
    loss = torch.nn.functional.smooth_l1_loss(td, torch.zeros(ROWS), reduction="sum")
    loss.backward()
    out.update(obs=obs, next=following, action=action.float(), reward=reward, discount=discount, q=q, loss=loss,
               td=td.abs())
    out.update(named("grad.", net, lambda p: p.grad))
    optimiser = torch.optim.Adam(net.parameters(), lr=1e-3, eps=1e-8)
    torch.nn.utils.clip_grad_norm_(net.parameters(), 10.0)
    optimiser.step()
    out.update(named("stepped.", net))
    with torch.no_grad():
        for p_to, p_from in zip(target.parameters(), net.parameters()):
            p_to.lerp_(p_from, 0.05)
    out.update(named("blended.", target))
    write(name, out)


class Critics(torch.nn.Module):
    """An encoder for the actor, and one for both critics, which read the action behind it."""

    def __init__(self):
        super().__init__()
        for name, out in (("actor", 4), ("critics", 1)):
            setattr(self, name + "_encoder", torch.nn.Sequential(torch.nn.Conv2d(2, 5, (3, 2)), torch.nn.ReLU(), torch.nn.Flatten()))
            if out > 1:
                self.actor = layers(5 * 4 * 4, (13,), torch.nn.ReLU, out)
                self.actor.log_alpha = torch.nn.Parameter(torch.tensor([-1.5]))
        self.q1, self.q2 = (layers(5 * 4 * 4 + 2, (12,), torch.nn.ReLU, 1) for _ in range(2))

    def act(self, obs, noise):
        head = self.actor(self.actor_encoder(obs))
        mean, log_std = head.chunk(2, 1)
        return torch.tanh(mean + log_std.exp() * noise), log_std

    def values(self, obs, action):
        z = torch.cat([self.critics_encoder(obs), action], 1)
        return torch.cat([self.q1(z), self.q2(z)], 1)


def critics():
    net, target = Critics(), Critics()
    out = {**named("", net), **named("target.", target)}
    obs, following = torch.randn(ROWS, 2, 6, 5), torch.randn(ROWS, 2, 6, 5)
    action, noise = torch.rand(ROWS, 2) * 2 - 1, torch.randn(ROWS, 2)
    reward, discount = torch.randn(ROWS), 0.99 * (torch.rand(ROWS) < 0.8).float()
    with torch.no_grad():
        goal = reward + discount * target.values(following, net.act(following, noise)[0]).amin(1)
    critic = 0.5 * ((net.values(obs, action) - goal[:, None]) ** 2).sum()
    drawn, log_std = net.act(obs, noise)
    actor = 0.1 * (log_std**2).sum() - net.actor.log_alpha.exp() * log_std.sum() - net.values(obs, drawn).amin(1).sum()
    trained = {"critic": (critic, ("critics_encoder.", "q1.", "q2.")), "actor": (actor, ("actor_encoder.", "actor."))}
    for name, (loss, prefixes) in trained.items():
        net.zero_grad()
        loss.backward(retain_graph=True)
        zeros = torch.zeros_like
        out.update({f"{name}.{n}": p.grad.clone() if n.startswith(prefixes) else zeros(p) for n, p in net.named_parameters()})
        out[f"loss.{name}"] = loss
    out.update(obs=obs, next=following, action=action, noise=noise, reward=reward, discount=discount,
               head=net.actor(net.actor_encoder(obs)))
    write("critics", out)


torch.manual_seed(5)
shared()
dqn("dqn", Plain)
torch.manual_seed(6)
dqn("dueling", Dueling)
torch.manual_seed(7)
dqn("noisy", Noisy, lambda: Noisy(True))
torch.manual_seed(8)
critics()
