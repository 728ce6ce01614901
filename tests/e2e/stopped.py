#!/usr/bin/env python3
"""A process that stands still (SIGSTOP) for longer than its lease is killed and replaced, and that is said; the weights
keep their bits at lag 0 and 1."""

import os
import signal
import sys

sys.dont_write_bytecode = True
from rig import BATCH, ENDLESS, check, equal, main, steps, wait_for

SETS = ["collector.replicas=2", "learner.replicas=2", "net.lease_ms=1000", "net.beat_ms=100"]


def s_said(world):
    with open(os.path.join(world.path, "err.1"), encoding="utf-8") as file:
        return file.read()


def s_stopped(world, lag, role, index):
    config = world.config()
    sets = [*SETS, f"lag={lag}"]
    process, run_dir = world.start_run(config, *sets, ENDLESS, seed=5)
    status = world.await_steps(run_dir, 40 * BATCH, process)
    pid = world.replica(role, index)
    os.kill(pid, signal.SIGSTOP)
    wait_for(lambda: world.replica(role, index) != pid, f"another process of {role}/{index}")
    check(pid not in world.processes(), f"process {pid}, which stood still, is still there")
    after = world.await_steps(run_dir, status["env_steps"] + steps(100_000), process)
    name = f"{role}/{index} (process {pid}): not a word for"
    if role != "coordinator":  # another one does not know of it
        check(after["replaced"] >= 1, f"status: {after['replaced']} replaced")
        check(name in after["replaced_last"], f"status: {after['replaced_last']}")
        text = world.tutti("status", run_dir).stdout
        check("silent and replaced: " in text, f"status says nothing of it: {text}")
    summary = world.stop(process, run_dir)
    check(name in s_said(world) or role != "coordinator", f"not said: {s_said(world)}")
    world.check_same(summary, config, *sets, seed=5, what=f"after {role}/{index} stood still, lag {lag}")
    equal(summary["transitions"]["duplicated"], 0, "duplicated")
    equal(summary["transitions"]["lost"], 0, "lost")


def test_collector_lag_0(world):
    s_stopped(world, 0, "collector", 1)


def test_collector_lag_1(world):
    s_stopped(world, 1, "collector", 0)


def test_learner_lag_0(world):
    s_stopped(world, 0, "learner", 0)


def test_learner_lag_1(world):
    s_stopped(world, 1, "learner", 1)


def test_aggregator_lag_1(world):
    s_stopped(world, 1, "aggregator", 0)


def test_coordinator_lag_1(world):
    s_stopped(world, 1, "coordinator", 0)


main(test_collector_lag_0, test_collector_lag_1, test_learner_lag_0, test_learner_lag_1, test_aggregator_lag_1,
     test_coordinator_lag_1)
