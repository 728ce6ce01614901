#!/usr/bin/env python3
"""Stable-Baselines3's A2C with RL Baselines3 Zoo's CartPole-v1 settings (DLR-RM/rl-baselines3-zoo, hyperparams/a2c.yml)."""
from probe import prepare

ARGS = prepare("sb3", __doc__, 500_000)

from sb3_common import train  # noqa: E402
from stable_baselines3 import A2C  # noqa: E402

train("Stable-Baselines3's A2C, Zoo's settings", ARGS, 8, algorithm=A2C, ent_coef=0.0)
