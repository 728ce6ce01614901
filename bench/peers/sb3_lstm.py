#!/usr/bin/env python3
"""sb3-contrib's RecurrentPPO with RL Baselines3 Zoo's CartPoleNoVel-v1 settings (DLR-RM/rl-baselines3-zoo, hyperparams/ppo_lstm.yml at
038ab16); the network and the normaliser, which that does not name, are those of the run beside it."""
from probe import prepare

ARGS = prepare("sb3", __doc__, 100_000)

import gymnasium  # noqa: E402
import numpy  # noqa: E402
from sb3_contrib import RecurrentPPO  # noqa: E402
from stable_baselines3.common.vec_env import VecNormalize  # noqa: E402
from torch import nn  # noqa: E402

from sb3_common import linear, train  # noqa: E402

MASK = numpy.array([1, 0, 1, 0], dtype=numpy.float32)  # as Zoo's MaskVelocityWrapper


class NoVelocities(gymnasium.ObservationWrapper):
    """CartPole-v1 that shows zeros for how fast cart and pole move."""

    def observation(self, observation):
        return observation * MASK


train("sb3-contrib's RecurrentPPO, Zoo's settings", ARGS, 8, algorithm=RecurrentPPO, policy="MlpLstmPolicy", wrapper=NoVelocities,
      around=lambda envs: VecNormalize(envs, gamma=0.98), n_steps=32, batch_size=256, gae_lambda=0.8, gamma=0.98, n_epochs=20, ent_coef=0.0,
      learning_rate=linear(1e-3), clip_range=linear(0.2),
      policy_kwargs=dict(ortho_init=False, activation_fn=nn.ReLU, lstm_hidden_size=64, enable_critic_lstm=True,
                         net_arch=dict(pi=[64], vf=[64])))
