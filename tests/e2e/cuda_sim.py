#!/usr/bin/env python3
"""Whole runs on a simulated card: the weights of the CPU, to the bit, for each algorithm, with an encoder, and whoever learns."""

import glob
import os
import sys

sys.dont_write_bytecode = True
from rig import check, equal, main

PLUGINS = os.path.join(os.environ["TT_BUILD_DIR"], "tests", "collector", "plugins")
PPO = "{name: ppo, epochs: 2, minibatch_size: 64}"
A2C = "{name: a2c}"
DQN = "{name: dqn, double: true, dueling: true, learning_starts: 128, train_every: 32}\nreplay: {capacity: 1k, prioritized: true}"


def s_check(world, env, algorithm, network, *sets):
    text = (f"env: {env}\nnum_envs: 8\nnum_steps: 16\nalgorithm: {algorithm}\nnetwork: {network}\nlearner: {{shards: 4}}\n"
            "stop: {env_steps: 384}\n")
    config = world.config(text)
    cpu, card = (world.train(config, *sets, seed=3, env={"TT_DEVICE": device}) for device in ("cpu", "cuda-sim"))
    for key in ("weights_sha256", "episodes", "return_mean"):
        equal(card[key], cpu[key], f"{key} of {env}, {algorithm}, {' '.join(sets)}")
    logs = "".join(open(path, encoding="utf-8").read() for path in glob.glob(os.path.join(card["run_dir"], "logs", "learner*")))
    check("cuda-sim:0" in logs, f"no learner says that it computes on cuda-sim: {logs}")


def test_ppo(world):
    s_check(world, "CartPole-v1", PPO, "{hidden: [16, 16]}")


def test_ppo_box(world):
    s_check(world, "Pendulum-v1", PPO, "{hidden: [16], shared: true}")


def test_a2c(world):
    s_check(world, "CartPole-v1", A2C, "{hidden: [16, 16]}")


def test_dqn(world):
    s_check(world, "CartPole-v1", DQN, "{hidden: [16, 16]}")


def test_encoder(world):
    s_check(world, f"{PLUGINS}/catch.so", PPO, "{encoder: [conv 4 3x3 pad 1, max_pool 2x2, layer_norm, dense 8 relu]}")


def test_two_learners(world):
    s_check(world, "CartPole-v1", PPO, "{hidden: [16, 16]}", "learner.replicas=2", "collector.replicas=2")


main(test_ppo, test_ppo_box, test_a2c, test_dqn, test_encoder, test_two_learners)
