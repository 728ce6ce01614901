#!/usr/bin/env python3
"""Stable-Baselines3's DQN with RL Baselines3 Zoo's CartPole-v1 settings (DLR-RM/rl-baselines3-zoo, hyperparams/dqn.yml), at the
learning rate of configs/cartpole-dqn.yaml."""
from probe import prepare

ARGS = prepare("sb3", __doc__, 50_000)

from sb3_common import train  # noqa: E402
from stable_baselines3 import DQN  # noqa: E402

train("Stable-Baselines3's DQN, Zoo's settings", ARGS, 1, algorithm=DQN, learning_rate=5e-4, batch_size=64, buffer_size=100_000,
      learning_starts=1000, gamma=0.99, target_update_interval=10, train_freq=256, gradient_steps=128,
      exploration_fraction=0.16, exploration_final_eps=0.04, policy_kwargs={"net_arch": [256, 256]})
