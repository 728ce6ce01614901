#!/usr/bin/env python3
"""Stable-Baselines3's SAC on an environment whose actions are numbers, with settings in its own words; then what its policy does greedily."""
import json

from probe import prepare


def more(parser):
    parser.add_argument("--env", default="Pendulum-v1", help="one of Gymnasium's (default %(default)s)")
    parser.add_argument("--settings", type=json.loads, default={}, metavar="JSON", help="SAC's arguments by their names")
    parser.add_argument("--episodes", type=int, default=100, help="greedy ones afterwards (default %(default)s)")


ARGS = prepare("sb3", __doc__, 8000, more)

import torch  # noqa: E402
from sb3_common import greedy, train  # noqa: E402
from stable_baselines3 import SAC  # noqa: E402


def told(model):
    """What it was run with, as the model has it, and what came of it."""
    settings = {name: getattr(model, name) for name in ("n_envs", "gradient_steps", "learning_rate", "batch_size", "learning_starts", "buffer_size",
                                                        "gamma", "tau", "ent_coef", "target_entropy")}
    settings.update({"train_freq": model.train_freq.frequency, "net_arch": model.policy.net_arch, "activation_fn": model.policy.activation_fn.__name__,
                     "torch threads": torch.get_num_threads()})
    return {"settings": settings, "greedy": greedy(model, ARGS.env, ARGS.seed, ARGS.episodes)}


train("Stable-Baselines3's SAC", ARGS, 1, algorithm=SAC, env=ARGS.env, after=told, **ARGS.settings)
