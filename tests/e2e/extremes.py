#!/usr/bin/env python3
"""Small and odd jobs: whatever `check` accepts runs to its end, and at lag 0 and 1 with the same bits whoever takes part.

The jobs are drawn from a seed. TT_EXTREMES=COUNT or COUNT,SEED draws others, as many as there is time for."""

import json
import os
import random
import sys
import time

sys.dont_write_bytecode = True
from rig import ENDLESS, SLOW, check, equal, main, wait_for

COUNT, SEED = (int(word) for word in (os.environ.get("TT_EXTREMES", "8") + ",1").split(",")[:2])

# All limits of episodes are passed.
UPDATES = 420 // SLOW if SLOW > 1 else 220


def s_draw(rng):
    """The settings of a job, and those of two ways to run it."""
    envs, steps = rng.choice((1, 1, 2, 3, 5, 8)), rng.choice((1, 1, 2, 3, 4, 16))
    rows = envs * steps
    shards = rng.choice((1, 2, 4, 8, 32, 256))
    job = {
        "env": rng.choice(("CartPole-v1", "Pendulum-v1", "Pendulum-v1", "MountainCar-v0", "Acrobot-v1",
                           "MountainCarContinuous-v0")),
        "num_envs": envs,
        "num_steps": steps,
        "seed": rng.choice((0, 1, 2**63)),
        "lag": rng.choice((0, 0, 1, 1, 1, 2, 5)),
        "network.hidden": rng.choice(("[]", "[1]", "[3]", "[17]", "[64, 64]", "[5, 1, 7]")),
        "network.activation": rng.choice(("tanh", "relu")),
        "network.init": rng.choice(("orthogonal", "uniform")),
        "network.rnn": rng.choice(("none", "none", "lstm", "gru")),
        "network.rnn_size": 16,  # 256 shards of the default's are 256 times 100,000 numbers to be added up in each step
        "network.shared": rng.choice(("true", "false")),
        "normalize.obs": rng.choice(("true", "false")),
        "normalize.reward": rng.choice(("true", "false")),
        "algorithm.epochs": rng.choice((1, 1, 2, 3)),
        "learner.shards": shards,
        "stop.env_steps": rows * max(3, min(UPDATES, 3000 // rows)),
        "checkpoint.every_s": rng.choice(("null", "0.05")),
    }
    if rng.random() < 0.5:
        job["algorithm.minibatches"] = rng.choice((1, 2, rows, max(1, rows // 2), rows + 1))
    else:
        job["algorithm.minibatch_size"] = rng.choice((1, 2, rows, 4096))
    if job["env"] in ("Pendulum-v1", "MountainCarContinuous-v0"):
        job["algorithm.state_std"] = rng.choice(("true", "false"))
    ways = [{"collector.replicas": rng.randint(1, envs), "learner.replicas": rng.choice((1, 1, 2, 3)),
             "aggregator.replicas": rng.choice((0, 0, 1, 2)), "learner.threads": rng.choice((1, 1, 3))}
            for _ in range(2)]
    return job, ways


def s_sets(settings):
    return [f"{key}={value}" for key, value in settings.items() if key != "env"]


def s_run(world, number, job, way):
    """The summary; None when `check` does not accept the job."""
    config = world.config(f"name: extreme\nenv: {job['env']}\nalgorithm: {{name: ppo}}\n")
    sets = s_sets({**job, **way})
    asked = world.tutti("check", config, *(word for item in sets for word in ("--set", item)))
    what = f"job {number} of seed {SEED}: {job['env']} {' '.join(sets)}"
    if asked.returncode != 0:
        check(asked.returncode in (64, 78) and asked.stderr.strip(), f"{what}: check ends with {asked.returncode}: "
                                                                      f"{asked.stderr}")
        apart = any(words in asked.stderr for words in ("divide", "divisor", "needs a shard", "no layers to share"))  # each by itself is a good value
        check(apart, f"{what}: check says {asked.stderr}")
        return None
    try:
        summary = world.train(config, *sets)
    except Exception as error:
        raise type(error)(f"{what}: {error}") from error
    equal(summary["transitions"]["duplicated"], 0, f"{what}: duplicated")
    equal(summary["transitions"]["lost"], 0, f"{what}: lost")
    check(summary["lag_max"] <= job["lag"], f"{what}: lag_max {summary['lag_max']}")
    return summary


def test_extremes(world):
    rng = random.Random(SEED)
    runs = number = 0
    while runs < COUNT:
        number += 1
        job, ways = s_draw(rng)
        results = [s_run(world, number, job, way) for way in ways]
        done = [result for result in results if result]
        runs += bool(done)
        check(number < 20 * COUNT, f"only {runs} of {number} jobs were accepted")
        if len(done) == 2 and job["lag"] <= 1:
            equal(done[0]["weights_sha256"], done[1]["weights_sha256"], f"weights of job {number}: {job} {ways}")


def test_a_batch_that_is_all_truncations(world):
    """Pendulum's episodes are 200 steps: all envs are truncated in the same one, which is a whole batch here; lag 0 and 1, with a memory and without."""
    envs = 8
    for lag, rnn in ((0, "none"), (1, "none"), (1, "gru")):
        job = {"env": "Pendulum-v1", "num_envs": envs, "num_steps": 1, "lag": lag, "seed": 3, "network.hidden": "[8]", "network.rnn": rnn,
               "network.rnn_size": 8, "normalize.obs": "true", "normalize.reward": "true", "algorithm.epochs": 1, "algorithm.minibatches": 1,
               "learner.shards": 4, "stop.env_steps": envs * 205}
        ways = [{}, {"collector.replicas": 3, "learner.replicas": 2, "aggregator.replicas": 1}]
        one, other = [s_run(world, 0, job, way) for way in ways]
        equal((one["episodes"], other["episodes"]), (envs, envs), f"episodes, {job}")
        equal(one["weights_sha256"], other["weights_sha256"], f"weights, {job}")


def test_a_batch_and_an_update_longer_than_a_stall(world):
    """Each waits for the other, longer than anybody may stand still; the other gets on, so nobody is stuck. The batch is one of 8000 steps
    of half a millisecond, and the update is longer than anyone looks at it."""
    stall_s = 3
    plugin = os.path.join(os.environ["TT_BUILD_DIR"], "tests", "collector", "plugins", "catch.so")
    config = world.config(f"name: long\nenv: {plugin}\nalgorithm: {{name: ppo}}\n")
    sets = s_sets({"num_envs": 8, "num_steps": 1000, "lag": 0, "network.hidden": "[512, 512]", "algorithm.epochs": 1000,
                   "algorithm.minibatch_size": 100, "net.stall_s": stall_s, "net.beat_ms": 100})
    process, run_dir = world.start_run(config, *sets, ENDLESS, env={"CATCH_QUICK": "0"})

    def updates():
        return any((member["state"] or "").startswith("update 0:") for member in world.look(run_dir, process)["members"])
    wait_for(updates, "a batch of 4 s")
    begun = time.monotonic()
    wait_for(lambda: not updates() or time.monotonic() - begun > stall_s + 1, "the first update to last longer than a stall")
    check(updates(), "the first update is over already")
    equal(world.tutti("stop", "--now", run_dir).returncode, 0, "tutti stop --now")
    equal(world.finish(process)[0], 143, "its exit code")


def s_step_s(world, run_dir, process):
    """What a step of the first update took, as the learner says, whenever somebody looks; None while there is none."""
    world.look(run_dir, process)
    path = os.path.join(run_dir, "metrics.jsonl")
    if not os.path.exists(path):
        return None
    with open(path, encoding="utf-8") as file:
        line = file.readline()
    if not line.endswith("\n"):
        return None
    first = json.loads(line)
    return sum(first[f"time/{stage}_us"] for stage in ("gradients", "wait_sum", "apply")) * 1e-6 / first["charts/optimizer_steps"]


def test_a_step_longer_than_a_stall(world):
    """One optimiser step lasts longer than anybody may stand still: of a batch, on a thread that is not the learner's own (there is one shard
    for two of them), and of a replay."""
    stall_s, rows = 2, 40960
    shape = {"network.hidden": "[1024, 1024]", "network.init": "uniform", "lag": 0, "learner.shards": 1, "net.stall_s": stall_s, "net.beat_ms": 100}
    a2c = {"num_envs": 64, "num_steps": rows // 64, "learner.threads": 2}
    dqn = {"num_envs": 8, "num_steps": 16, "algorithm.batch_size": rows, "algorithm.learning_starts": 64, "algorithm.train_every": 64}
    for name, job in (("a2c", a2c), ("dqn", dqn)):
        config = world.config(f"name: long\nenv: CartPole-v1\nalgorithm: {{name: {name}}}\n")
        process, run_dir = world.start_run(config, *s_sets({**shape, **job}), ENDLESS, name=name)

        took_s = wait_for(lambda: s_step_s(world, run_dir, process), f"an update of {name}")
        check(took_s > stall_s, f"a step of {name} is over too soon to tell: {took_s:.2f} s")
        equal(world.tutti("stop", "--now", run_dir).returncode, 0, "tutti stop --now")
        equal(world.finish(process)[0], 143, "its exit code")


main(test_extremes, test_a_batch_that_is_all_truncations, test_a_batch_and_an_update_longer_than_a_stall,
     *([test_a_step_longer_than_a_stall] if SLOW == 1 else []))  # sanitized, a single env step of its network takes half as long as that
