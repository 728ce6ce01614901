#!/usr/bin/env python3
"""An environment with every kind of space and a mask (tests/collector/zoo.c), through whole runs: the same bits whoever plays and
learns, whoever dies, and over lives."""

import json
import os
import signal
import sys

sys.dont_write_bytecode = True
from rig import BATCH, ENDLESS, JOB, check, equal, main, steps, wait_for

ZOO = os.path.join(os.environ["TT_BUILD_DIR"], "tests", "collector", "plugins", "zoo.so")
MANY = ["collector.replicas=3", "learner.replicas=2"]
MORE = steps(40_000)


def s_config(world, *lines):
    return world.config(JOB.replace("env: CartPole-v1", "\n".join([f"env: {ZOO}", "normalize: {obs: true, reward: true}", *lines])))


def s_whole(summary):
    equal([summary["transitions"][key] for key in ("duplicated", "lost")], [0, 0], "duplicated, lost")


def s_same_bits(world, *sets):
    config = s_config(world)
    alone, many = world.train(config, *sets, seed=3), world.train(config, *sets, *MANY, seed=3)
    for key in ("weights_sha256", "updates", "episodes", "return_mean"):
        equal(many[key], alone[key], f"{key}, {sets}")
    s_whole(many)
    return alone


def test_same_bits_lag_0(world):
    s_same_bits(world, "lag=0")


def test_same_bits_lag_1(world):
    s_same_bits(world, "lag=1")


def test_same_bits_a2c(world):
    config = world.config(f"env: {ZOO}\nnum_envs: 8\nnum_steps: 16\nalgorithm: {{name: a2c}}\nlearner: {{shards: 4}}\nstop: {{env_steps: 20480}}\n")
    alone, many = world.train(config, seed=3), world.train(config, *MANY, seed=3)
    equal(many["weights_sha256"], alone["weights_sha256"], "weights")


def test_squashed(world):
    """Numbers through tanh onto their bounds: the same bits whoever plays, other ones than without, and an evaluation plays so, too."""
    for name in ("ppo", "a2c"):
        config = world.config("env: Pendulum-v1\nnum_envs: 8\nnum_steps: 32\nlearner: {shards: 4}\nstop: {env_steps: 10240}\n"
                              f"algorithm: {{name: {name}, squash: true, log_std0: 1}}\n", name=f"{name}.yaml")
        alone, many = world.train(config, seed=3), world.train(config, *MANY, seed=3)
        for key in ("weights_sha256", "return_mean"):
            equal(many[key], alone[key], f"{key} of {name}")
        check(world.train(config, "algorithm.squash=false", seed=3)["return_mean"] != alone["return_mean"], "squash changes nothing")
        said = world.tutti("eval", alone["run_dir"], "--episodes", "4", "--output", "json")
        equal(said.returncode, 0, said.stderr)
        other = world.tutti("resume", alone["run_dir"], "--set", "algorithm.squash=false", "--set", "stop.env_steps=20k")
        check(other.returncode == 78 and "algorithm.squash" in other.stderr, f"a resume that changes it: {other.stderr}")
    refused = world.tutti("check", s_config(world), "--set", "algorithm.squash=true")
    check(refused.returncode == 78 and "algorithm.squash: element 0 of a box of Zoo-v0's action has no bounds" in refused.stderr, refused.stderr)


def test_asynchronous(world):
    s_whole(world.train(s_config(world), "lag=4", *MANY, seed=3))


def test_killed(world):
    """A collector and a learner die; what they had is played and learned again, to the bit."""
    config = s_config(world)
    process, run_dir = world.start_run(config, *MANY, ENDLESS, seed=5)
    for role, index in (("collector", 1), ("learner", 1), ("collector", 0)):
        status = world.await_steps(run_dir, 1, process)
        pid = world.replica(role, index)
        os.kill(pid, signal.SIGKILL)
        wait_for(lambda: world.replica(role, index) != pid, f"another process of {role}/{index}")
        world.await_steps(run_dir, status["env_steps"] + MORE, process)
    summary = world.stop(process, run_dir)
    world.check_same(summary, config, *MANY, seed=5, what="after kills")
    s_whole(summary)


def test_lives(world):
    """From a snapshot on, and judged by eval."""
    config = s_config(world)
    first = world.train(config, f"stop.env_steps={20 * BATCH}", seed=7)
    second = world.resume(first["run_dir"], f"stop.env_steps={40 * BATCH}")
    equal(second["weights_sha256"], world.train(config, f"stop.env_steps={40 * BATCH}", seed=7)["weights_sha256"], "weights")
    done = world.tutti("eval", first["run_dir"], "--episodes", "20", "--output", "json")
    equal(done.returncode, 0, done.stderr)
    check(json.loads(done.stdout)["length_mean"] < 11.5, done.stdout)  # its time limit


def test_what_check_says(world):
    done = world.tutti("check", s_config(world), "--output", "json")
    equal(done.returncode, 0, done.stderr)
    said = json.loads(done.stdout)["comes_to"]
    names = [column["name"] for column in said["columns"]]
    equal(names[:10], ["obs.bits", "obs.bool", "obs.choice", "obs.image", "obs.long", "obs.near", "obs.pair.0", "obs.pair.1", "obs.wide",
                       "mask"], "columns of an observation")
    equal(names[10:15], ["action.bits", "action.force", "action.go", "action.moves", "action.push"], "of an action")
    equal((said["mask"], said["flat"], said["row_bytes"]), (True, 39, 114), "mask, flat, row_bytes")
    equal(said["row_bytes"], sum(column["bytes"] for column in said["columns"]), "row_bytes")
    text = world.tutti("check", s_config(world)).stdout
    check("39 -> 64 tanh -> 64 tanh -> 18 (15 logits, 3 means)" in text, text)
    envs = json.loads(world.tutti("envs", ZOO, "--output", "json").stdout)["envs"][0]
    equal(envs["observation"]["parts"]["pair"]["parts"][0]["n"], [3, 4], "parts of envs")
    equal((envs["action"]["parts"]["go"]["start"], envs["mask"]), (-1, True), "start of a choice, mask")


main(test_same_bits_lag_0, test_same_bits_lag_1, test_same_bits_a2c, test_squashed, test_asynchronous, test_killed, test_lives, test_what_check_says)
