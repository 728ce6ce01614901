#!/usr/bin/env python3
"""Stable-Baselines3's PPO with its CnnPolicy (Nature's network) on frames of noise; settings of CleanRL's ppo_atari.py. Two threads."""
import os
import sys

from probe import Probe, prepare

ARGS = prepare("sb3", __doc__, 8192)
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import frames_env  # noqa: E402
import gymnasium  # noqa: E402
import stable_baselines3  # noqa: E402
import torch  # noqa: E402
from sb3_common import Watch, linear  # noqa: E402
from stable_baselines3 import PPO  # noqa: E402
from stable_baselines3.common.vec_env import DummyVecEnv  # noqa: E402

torch.set_num_threads(2)
probe = Probe("Stable-Baselines3", {"stable-baselines3": stable_baselines3.__version__, "torch": torch.__version__,
                                    "gymnasium": gymnasium.__version__}, ARGS.wall_s)
model = PPO("CnnPolicy", DummyVecEnv([frames_env.Frames] * 8), seed=ARGS.seed, device="cpu", n_steps=128, batch_size=256, n_epochs=4,
            gamma=0.99, gae_lambda=0.95, clip_range=0.1, clip_range_vf=0.1, ent_coef=0.01, vf_coef=0.5, max_grad_norm=0.5,
            learning_rate=linear(2.5e-4))
model.learn(total_timesteps=ARGS.steps, callback=Watch(probe))
probe.finish()
