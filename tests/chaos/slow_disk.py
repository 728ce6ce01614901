#!/usr/bin/env python3
"""A disk that takes longer than a lease for each sync and rename (slow_disk.c): nothing is rolled back, and the bits are those of a run on
a fast one; so, too, when a learner dies while it waits for the disk."""

import os
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "e2e"))
from disturbed import check_like, silent  # noqa: E402
from rig import check, equal, main, steps  # noqa: E402

SLOW = {"LD_PRELOAD": os.environ["SLOW_DISK"], "SLOW_DISK_MS": "1200"}


def sets(lag, *more):
    return [f"lag={lag}", f"stop.env_steps={steps(50_000)}", "net.beat_ms=100", "net.lease_ms=1000", "checkpoint.every_s=1",
            "collector.replicas=2", "learner.replicas=2", *more]


def s_slow(world, lag):
    still = world.train(world.config(), *sets(lag), seed=7)
    for again in (True, False):
        summary = world.train(world.config(), *sets(lag), seed=7, env=SLOW)
        check_like(summary, still, lag)
        if not again or summary["rolled_back"] == 0 or not silent(summary["run_dir"]):
            break
    equal(summary["rolled_back"], 0, "rolled_back")


def test_lag_0(world):
    s_slow(world, 0)


def test_lag_1(world):
    s_slow(world, 1)


def test_killed_while_it_waits(world):
    still = world.train(world.config(), *sets(1), seed=7)
    killed = os.path.join(world.path, "killed")
    summary = world.train(world.config(), *sets(1), seed=7, env={**SLOW, "SLOW_DISK_KILLS": killed})
    check(os.path.exists(killed), "nobody waited for a checkpoint")
    check_like(summary, still, 1)


main(test_lag_0, test_lag_1, test_killed_while_it_waits)
