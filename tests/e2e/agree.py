#!/usr/bin/env python3
"""What `tutti check` accepts `tutti run` carries out: small jobs made at random (seeded), with every role. In-process and
by the thousand, at the limits: tests/cli/test_agree.c."""

import random
import sys

sys.dont_write_bytecode = True
from rig import check, equal, main

JOBS = 8
BAD_CONFIG = {64, 65, 78}


def s_job(rng):
    """--set assignments; many do not fit each other, and check says so."""
    envs, steps = rng.choice([1, 2, 3, 5, 8]), rng.choice([1, 2, 3, 7, 32])
    return {
        "env": rng.choice(["CartPole-v1", "Acrobot-v1", "MountainCarContinuous-v0", "Pendulum-v1"]),
        "num_envs": envs,
        "num_steps": steps,
        "lag": rng.choice([0, 1, 2, 64]),
        "network.hidden": rng.choice(["[]", "[1]", "[8]", "[5, 3]", "[4, 4, 4, 4, 4, 4, 4, 4]"]),
        "network.activation": rng.choice(["tanh", "relu"]),
        "network.init": rng.choice(["orthogonal", "uniform"]),
        "network.rnn": rng.choice(["none", "none", "lstm", "gru"]),
        "network.shared": rng.choice(["true", "false"]),
        "normalize.obs": rng.choice(["true", "false"]),
        "normalize.reward": rng.choice(["true", "false"]),
        "collector.replicas": rng.randint(1, 3),
        "learner.replicas": rng.randint(1, 2),
        "learner.shards": rng.choice([1, 2, 4, 256]),
        "learner.threads": rng.choice([0, 1, 3]),
        "aggregator.replicas": rng.choice([0, 1, 2]),
        "checkpoint.every_s": rng.choice(["null", 0.01]),
        "algorithm.minibatches": rng.choice([0, 1, 2]),
        "algorithm.epochs": rng.choice([1, 3]),
        "algorithm.optimizer": rng.choice(["adam", "sgd", "rmsprop"]),
        "algorithm.recompute": rng.choice(["true", "false"]),
        "algorithm.vtrace": rng.choice(["true", "false", "false"]),
        "algorithm.truncation": rng.choice(["bootstrap", "cleanrl"]),
        "coordinator.http": rng.choice(['""', "localhost:0", "0.0.0.0:0"]),
        "env.args": rng.choice(["{}", "{}", "{}", "{g: 9.81}", "{goal_velocity: 0.01}"]),
        "stop.env_steps": 5 * envs * steps,
    }


def test_what_is_accepted_runs(world):
    rng = random.Random(8)
    path = world.file("job.yaml", "env: CartPole-v1\n")
    ran = 0
    for _ in range(40 * JOBS):
        sets = [word for key, value in s_job(rng).items() for word in ("--set", f"{key}={value}")]
        checked = world.tutti("check", path, *sets)
        if checked.returncode != 0:
            equal(checked.returncode, 78, f"check {sets}: {checked.stderr}")
            continue
        done = world.tutti("run", path, *sets, "--quiet")
        what = f"run {' '.join(sets)}\n{done.stderr}"
        check(done.returncode not in BAD_CONFIG, f"check accepts what run refuses: {what}")
        equal(done.returncode, 0, what)
        ran += 1
        if ran == JOBS:
            return
    check(False, f"only {ran} jobs were accepted")


main(test_what_is_accepted_runs)
