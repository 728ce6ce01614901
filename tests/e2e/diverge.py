#!/usr/bin/env python3
"""A run that diverges ends with one code and one text, whoever sees it first, and leaves nothing that is no number."""

import sys

sys.dont_write_bytecode = True
from rig import check, equal, main

DIVERGED = 79
ADVICE = ("; lower algorithm.learning_rate, set or lower algorithm.max_grad_norm, switch on normalize.obs and "
          "normalize.reward, or have the env give smaller rewards")
# Steps so large that no network survives them. What it is acted by changes within an update as well.
JOB = """
name: diverges
env: Pendulum-v1
num_envs: 8
num_steps: 32
lag: 1
algorithm:
  name: ppo
  learning_rate: 1
  max_grad_norm: 0
  epochs: 2
  minibatch_size: 64
network:
  activation: relu
learner:
  shards: 4
stop:
  env_steps: 100000000
"""


def s_diverges(world, begins, *sets):
    summary = world.train(world.config(JOB), *sets, code=DIVERGED)
    equal(summary["status"], "failed", "status")
    said = summary["reason"]
    check(begins in said and said.endswith(ADVICE), f"the reason is not that: {said}")
    equal(said.count("training has diverged"), 1, f"said once: {said}")
    return summary


def test_one_learner(world):
    summary = s_diverges(world, "learner/0: training has diverged: update ")
    check("(learning rate 1): " in summary["reason"], summary["reason"])


def test_two_learners(world):
    s_diverges(world, ": training has diverged: update ", "learner.replicas=2")


def test_a_policy_that_no_gradient_tells_of(world):
    """One step an update, whose clipped gradient raises the deviation of actions until it is no number: the collector
    sees that first, and the environment is not blamed for an action that is none."""
    s_diverges(world, "collector/0: training has diverged: batch ", "lag=0", "algorithm.entropy_coef=10",
               "algorithm.max_grad_norm=0.5", "algorithm.epochs=1", "algorithm.minibatch_size=256")


main(test_one_learner, test_two_learners, test_a_policy_that_no_gradient_tells_of)
