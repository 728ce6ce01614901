#!/usr/bin/env python3
"""Stable-Baselines3's ReplayBuffer: rows in and minibatches out, of 4 floats and of 84x84 bytes stacked four deep."""
import json
import statistics
import time

from probe import prepare

ARGS = prepare("sb3", __doc__, 0)

import numpy  # noqa: E402
import stable_baselines3  # noqa: E402
import torch  # noqa: E402
from gymnasium.spaces import Box, Discrete  # noqa: E402
from stable_baselines3.common.buffers import ReplayBuffer  # noqa: E402

ENVS, UNITS, RUNS, SECONDS = 16, 256, 5, 0.3
CASES = {  # rows, observation; images as RL Baselines3 Zoo's Atari recipes keep them: the next one is the next row's
    "vector": (1 << 20, Box(-1, 1, (4,), numpy.float32), {}),
    "image": (51200, Box(0, 255, (4, 84, 84), numpy.uint8),
              {"optimize_memory_usage": True, "handle_timeout_termination": False}),
}


def rate(once):
    """How often a second, in the median of the runs."""
    rates = []
    for _ in range(RUNS):
        times, start = 0, time.perf_counter()
        now = start
        while now - start < SECONDS:
            once()
            times += 1
            now = time.perf_counter()
        rates.append(times / (now - start))
    return statistics.median(rates)


def measure(kind):
    rows, space, options = CASES[kind]
    buffer = ReplayBuffer(rows, space, Discrete(4), device="cpu", n_envs=ENVS, **options)
    obs = numpy.stack([space.sample() for _ in range(ENVS)])
    action, reward, done = numpy.zeros((ENVS, 1), numpy.int64), numpy.zeros(ENVS, numpy.float32), numpy.zeros(ENVS, bool)
    infos = [{} for _ in range(ENVS)]

    def insert():
        buffer.add(obs, obs, action, reward, done, infos)

    while not buffer.full:
        insert()
    inserts, steps = rate(insert) * ENVS, rate(lambda: buffer.sample(UNITS))
    return {"kind": kind, "rows": rows, "inserts_per_s": inserts, "step_us": 1e6 / steps, "units_per_s": steps * UNITS}


torch.set_num_threads(1)
print(json.dumps({"peer": "Stable-Baselines3, ReplayBuffer", "results": [measure(kind) for kind in CASES],
                  "versions": {"stable-baselines3": stable_baselines3.__version__, "torch": torch.__version__,
                               "numpy": numpy.__version__}}), flush=True)
