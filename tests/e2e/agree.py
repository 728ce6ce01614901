#!/usr/bin/env python3
"""What `tutti check` accepts `tutti run` carries out: small jobs made at random (seeded), with every role. In-process and
by the thousand, at the limits: tests/cli/test_agree.c."""

import random
import sys

sys.dont_write_bytecode = True
from rig import check, equal, main

# How many jobs of each are run: what they share is asked by all of them.
JOBS = {"ppo": 3, "a2c": 1, "impala": 1, "dqn": 1, "sac": 1, "td3": 1}
BAD_CONFIG = {64, 65, 78}
CHOICES, NUMBERS = ("CartPole-v1", "Acrobot-v1"), ("MountainCarContinuous-v0", "Pendulum-v1")


def s_common(rng, envs, steps):
    return {
        "num_envs": envs,
        "num_steps": steps,
        "lag": rng.choice([0, 1, 2, 64]),
        "env.stack": rng.choice([1, 1, 1, 3]),
        "network.hidden": rng.choice(["[]", "[1]", "[8]", "[5, 3]", "[4, 4, 4, 4, 4, 4, 4, 4]"]),
        "network.activation": rng.choice(["tanh", "relu"]),
        "network.init": rng.choice(["orthogonal", "uniform"]),
        "normalize.obs": rng.choice(["true", "false"]),
        "collector.replicas": rng.randint(1, 3),
        "learner.replicas": rng.randint(1, 2),
        "learner.shards": rng.choice([1, 2, 4, 256]),
        "learner.threads": rng.choice([0, 1, 3]),
        "aggregator.replicas": rng.choice([0, 1, 2]),
        "checkpoint.every_s": rng.choice(["null", 0.01]),
        "algorithm.optimizer": rng.choice(["adam", "sgd", "rmsprop"]),
        "coordinator.http": rng.choice(['""', "localhost:0", "0.0.0.0:0"]),
        "env.args": rng.choice(["{}", "{}", "{}", "{g: 9.81}", "{goal_velocity: 0.01}"]),
    }


def s_on_policy(rng, name):
    job = {
        "env": rng.choice(CHOICES + NUMBERS),
        "network.rnn": rng.choice(["none", "none", "lstm", "gru"]),
        "network.shared": rng.choice(["true", "false"]),
        "normalize.reward": rng.choice(["true", "false"]),
        "algorithm.truncation": rng.choice(["bootstrap", "cleanrl"]),
    }
    if name == "ppo":
        job.update({
            "algorithm.minibatches": rng.choice([0, 1, 2]),
            "algorithm.epochs": rng.choice([1, 3]),
            "algorithm.recompute": rng.choice(["true", "false"]),
            "algorithm.vtrace": rng.choice(["true", "false", "false"]),
        })
    elif name == "impala":
        job.update({"algorithm.vtrace_rho": rng.choice([1, 1e-6, 2]), "algorithm.vtrace_c": rng.choice([0, 1])})
    return job


def s_off_policy(rng, name, rows):
    job = {
        "env": rng.choice(CHOICES if name == "dqn" else NUMBERS),
        "algorithm.batch_size": rng.choice([1, 4, 32, 256]),
        "algorithm.n_step": rng.choice([1, 1, 3, 256]),
        "algorithm.tau": rng.choice([1e-6, 0.005, 1]),
        "algorithm.learning_starts": rng.choice([0, 1, rows, 4 * rows]),
        "algorithm.train_every": rng.choice([1, 3, rows, 2 * rows]),
        "algorithm.gradient_steps": rng.choice([1, 2]),
        "replay.capacity": rng.choice([rows, 2 * rows, 3 * rows + 1, 4096]),
        "replay.save": rng.choice(["true", "false"]),
        "replay.memory": rng.choice(["auto", "host", "host", "both"]),
    }
    if name == "dqn":
        job.update({
            "network.rnn": rng.choice(["none", "none", "lstm"]),
            "algorithm.sequence_length": rng.choice([1, 2, 8]),
            "algorithm.burn_in": rng.choice([0, 1, 4]),
            "algorithm.double": rng.choice(["true", "false"]),
            "algorithm.dueling": rng.choice(["true", "false"]),
            "algorithm.quantiles": rng.choice([0, 0, 1, 5]),
            "algorithm.atoms": rng.choice([0, 0, 1, 2, 51]),
            "algorithm.v_max": rng.choice([10, -10, 1e6]),
            "algorithm.noisy": rng.choice(["true", "false"]),
            "algorithm.target_every": rng.choice([1, 7, 10000]),
            "replay.prioritized": rng.choice(["true", "false"]),
            "replay.priority_delay": rng.choice([0, 1, 64]),
        })
    elif name == "sac":
        job.update({"algorithm.tune_entropy": rng.choice(["true", "false"]), "algorithm.target_entropy": rng.choice(["null", -1, 3])})
    else:
        job.update({"algorithm.policy_delay": rng.choice([1, 2, 1000]), "algorithm.target_noise": rng.choice([0, 0.2, 10])})
    return job


def s_job(rng, name):
    """--set assignments; many do not fit each other, and check says so."""
    envs, steps = rng.choice([1, 2, 3, 5, 8]), rng.choice([1, 2, 3, 7, 32])
    rows = envs * steps
    own = s_on_policy(rng, name) if name in ("ppo", "a2c", "impala") else s_off_policy(rng, name, rows)
    return {"algorithm.name": name, **s_common(rng, envs, steps), **own, "stop.env_steps": 5 * rows}


def s_run_those_accepted(world, rng, path, name):
    ran = 0
    for _ in range(200):
        sets = [word for key, value in s_job(rng, name).items() for word in ("--set", f"{key}={value}")]
        checked = world.tutti("check", path, *sets)
        if checked.returncode != 0:
            equal(checked.returncode, 78, f"check {sets}: {checked.stderr}")
            continue
        done = world.tutti("run", path, *sets, "--quiet")
        what = f"run {' '.join(sets)}\n{done.stderr}"
        check(done.returncode not in BAD_CONFIG, f"check accepts what run refuses: {what}")
        equal(done.returncode, 0, what)
        ran += 1
        if ran == JOBS[name]:
            return
    check(False, f"only {ran} jobs of {name} were accepted")


def test_what_is_accepted_runs(world):
    rng = random.Random(8)
    path = world.file("job.yaml", "env: CartPole-v1\n")
    for name in JOBS:
        s_run_those_accepted(world, rng, path, name)


main(test_what_is_accepted_runs)
