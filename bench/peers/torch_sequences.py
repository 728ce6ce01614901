#!/usr/bin/env python3
"""What PyTorch takes for an optimiser step of a Q-network with an LSTM on sequences, as people write R2D2: one JSON line with the microseconds of a step.

One thread. Both networks go through whole sequences in one call of nn.LSTM each, without a gradient through the burn-in; double Q, Huber's loss with weights, clip by
norm, Adam, priorities of sequences. In favour of PyTorch, no episode ends in a sequence (who resets a state in one cannot make one call of it), the sequences lie in
memory as they are read, and there is no replay and no environment."""
import json
import time

from probe import prepare


def more(parser):
    for name, value in (("sequences", 16), ("burn-in", 20), ("length", 40), ("n-step", 3), ("obs", 2), ("units", 64), ("hidden", 64), ("choices", 2)):
        parser.add_argument("--" + name, type=int, default=value, help="default %(default)s")


ARGS = prepare("sb3", __doc__, 0, more)

import torch  # noqa: E402
from torch import nn  # noqa: E402

WARM, SECONDS, ROUNDS = 10, 1.0, 5


class Q(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(ARGS.obs, ARGS.units)
        self.head = nn.Sequential(nn.Linear(ARGS.units, ARGS.hidden), nn.ReLU(), nn.Linear(ARGS.hidden, ARGS.choices))

    def forward(self, obs, carry):
        return self.head(self.lstm(obs, carry)[0])


class Step:
    def __init__(self):
        torch.manual_seed(ARGS.seed)
        self.q, self.target = Q(), Q()
        self.optimizer = torch.optim.Adam(self.q.parameters(), lr=5e-4)
        steps, rows = ARGS.burn_in + ARGS.length + ARGS.n_step, (ARGS.length, ARGS.sequences)
        self.obs = torch.randn(steps, ARGS.sequences, ARGS.obs)
        self.carry = tuple(torch.randn(1, ARGS.sequences, ARGS.units) for _ in range(2))
        self.action = torch.randint(0, ARGS.choices, rows)
        self.ret, self.discount, self.weight = torch.randn(rows), torch.full(rows, 0.97), torch.rand(ARGS.sequences)

    def wanted(self, obs, carry, chooser):
        best = chooser.argmax(2, keepdim=True)
        return self.ret + self.discount * self.target(obs, carry)[ARGS.n_step:].gather(2, best)[..., 0]

    def __call__(self):
        burn, obs = self.obs[:ARGS.burn_in], self.obs[ARGS.burn_in:]
        with torch.no_grad():
            mine, other = (net.lstm(burn, self.carry)[1] for net in (self.q, self.target))
        values = self.q(obs, mine)
        with torch.no_grad():
            wanted = self.wanted(obs, other, values[ARGS.n_step:])
        error = values[:ARGS.length].gather(2, self.action[..., None])[..., 0] - wanted
        loss = (nn.functional.huber_loss(error, torch.zeros_like(error), reduction="none") * self.weight).mean()
        self.optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(self.q.parameters(), 10)
        self.optimizer.step()
        size = error.detach().abs()
        return 0.9 * size.max(0)[0] + 0.1 * size.mean(0)


def measured(step):
    """Microseconds of this process's processor time; the best of some rounds."""
    best = None
    for _ in range(ROUNDS):
        begun, steps = time.process_time(), 0
        while time.process_time() - begun < SECONDS:
            step()
            steps += 1
        us = (time.process_time() - begun) / steps * 1e6
        best = us if best is None else min(best, us)
    return best


torch.set_num_threads(1)
STEP = Step()
for _ in range(WARM):
    STEP()
print(json.dumps({"peer": "PyTorch", "versions": {"torch": torch.__version__}, "us": measured(STEP)}))
