#!/usr/bin/env python3
"""Stable-Baselines3 with RL Baselines3 Zoo's CartPole-v1 settings (DLR-RM/rl-baselines3-zoo, hyperparams/ppo.yml)."""
from probe import prepare

ARGS = prepare("sb3", __doc__, 100_000)

from sb3_common import linear, train  # noqa: E402

train("Stable-Baselines3, Zoo's settings", ARGS, 8, n_steps=32, batch_size=256, gae_lambda=0.8, gamma=0.98, n_epochs=20,
      ent_coef=0.0, learning_rate=linear(1e-3), clip_range=linear(0.2))
