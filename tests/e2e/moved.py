#!/usr/bin/env python3
"""Environments that move to another collector and cannot be saved begin anew there. Nothing glues the episode that they were in to the
next: every episode of this environment has 10 steps and a return of 10, and so has every mean that is ever reported."""

import json
import os
import signal
import sys

sys.dont_write_bytecode = True
from rig import PATIENT, check, equal, main, wait_for

UNSAVED = os.path.join(os.environ["TT_BUILD_DIR"], "tests", "collector", "plugins", "unsaved.so")
JOB = f"""\
env: {UNSAVED}
num_envs: 8
num_steps: 16
lag: 1
algorithm: {{name: ppo, minibatches: 2, epochs: 1}}
normalize: {{reward: true}}
collector: {{replicas: 2}}
learner: {{replicas: 2}}
stop: {{env_steps: 1000000000}}
"""


def s_lines(run_dir):
    with open(os.path.join(run_dir, "metrics.jsonl"), encoding="utf-8") as file:
        return [json.loads(line) for line in file if line.endswith("\n")]  # the last one may be on its way


def s_check_means(run_dir):
    lines = s_lines(run_dir)
    for line in lines:
        for name in ("return_mean", "length_mean"):
            check(line.get(name) in (None, 10), f"update {line['updates']}: {name} {line.get(name)} of episodes of 10")
    return lines


def s_kill(world, run_dir, role, index):
    pid = world.replica(role, index)
    os.kill(pid, signal.SIGKILL)
    wait_for(lambda: world.replica(role, index) != pid, f"another process of {role}/{index}")
    return world.look(run_dir)["env_steps"]


def test_killed_and_scaled(world):
    process, run_dir = world.start_run(world.config(JOB))
    reached = 0
    for kill in range(30):
        world.await_steps(run_dir, reached + 20_000, process)
        reached = s_kill(world, run_dir, "collector", 1 - kill % 2)
        broken = [line["broken_trajectories"] for line in s_lines(run_dir)]
        if kill > 0 and any(broken):  # between two episodes, once in five times, there is none to break
            break
    world.await_steps(run_dir, reached + 20_000, process)
    equal(world.tutti("scale", run_dir, "collector=3").returncode, 0, "scale")
    world.await_steps(run_dir, world.look(run_dir, process)["env_steps"] + 40_000, process)
    summary = world.stop(process, run_dir)
    equal(summary["transitions"]["lost"], 0, "lost")
    last = s_check_means(run_dir)[-1]
    check(last["broken_trajectories"] > 0, f"nothing broke: {last}")
    check(last["episodes"] > 1000, f"{last['episodes']} episodes")


def test_a_run_that_is_left_alone(world):
    """By all from its beginning on: to a collector that comes later environments move."""
    summary = world.train_together(world.config(JOB), PATIENT, "stop.env_steps=50000")
    last = s_check_means(summary["run_dir"])[-1]
    equal(last["broken_trajectories"], 0, "broken trajectories")


def test_resumed(world):
    """The snapshot has no states of these environments: they begin anew."""
    summary = world.train(world.config(JOB), "stop.env_steps=30016")
    world.resume(summary["run_dir"], "stop.env_steps=60032")
    last = s_check_means(summary["run_dir"])[-1]
    check(last["broken_trajectories"] > 0, f"nothing broke: {last}")


main(test_killed_and_scaled, test_a_run_that_is_left_alone, test_resumed)
