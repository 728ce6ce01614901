#!/usr/bin/env python3
"""Stable-Baselines3's SAC or TD3 on an environment whose actions are numbers, with settings in its own words; then what its policy does greedily."""
import json

from probe import prepare


def more(parser):
    parser.add_argument("--algorithm", choices=("sac", "td3"), default="sac", help="default %(default)s")
    parser.add_argument("--env", default="Pendulum-v1", help="one of Gymnasium's (default %(default)s)")
    parser.add_argument("--settings", type=json.loads, default={}, metavar="JSON",
                        help="the algorithm's arguments by their names; action_noise is the deviation of a NormalActionNoise")
    parser.add_argument("--episodes", type=int, default=100, help="greedy ones afterwards (default %(default)s)")


ARGS = prepare("sb3", __doc__, 8000, more)

import gymnasium  # noqa: E402
import numpy as np  # noqa: E402
import torch  # noqa: E402
from sb3_common import greedy, train  # noqa: E402
from stable_baselines3 import SAC, TD3  # noqa: E402
from stable_baselines3.common.noise import NormalActionNoise  # noqa: E402

PLAIN = ("n_envs", "gradient_steps", "learning_rate", "batch_size", "learning_starts", "buffer_size", "gamma", "tau")
OWN = {"sac": ("ent_coef", "target_entropy"), "td3": ("policy_delay", "target_policy_noise", "target_noise_clip")}


def noise(sigma):
    numbers = gymnasium.make(ARGS.env).action_space.shape[0]
    return NormalActionNoise(np.zeros(numbers), np.full(numbers, sigma))


def told(model):
    """What it was run with, as the model has it, and what came of it."""
    settings = {name: getattr(model, name) for name in PLAIN + OWN[ARGS.algorithm]}
    settings.update({"train_freq": model.train_freq.frequency, "net_arch": model.policy.net_arch, "activation_fn": model.policy.activation_fn.__name__,
                     "torch threads": torch.get_num_threads()})
    if model.action_noise:
        settings["action_noise"] = float(model.action_noise._sigma[0])
    return {"settings": settings, "greedy": greedy(model, ARGS.env, ARGS.seed, ARGS.episodes)}


if "action_noise" in ARGS.settings:
    ARGS.settings["action_noise"] = noise(ARGS.settings["action_noise"])
train("Stable-Baselines3's %s" % ARGS.algorithm.upper(), ARGS, 1, algorithm={"sac": SAC, "td3": TD3}[ARGS.algorithm], env=ARGS.env, after=told,
      **ARGS.settings)
