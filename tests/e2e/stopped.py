#!/usr/bin/env python3
"""A process that stands still (SIGSTOP) for longer than its lease is killed and replaced, and that is said; the weights
keep their bits at lag 0 and 1."""

import os
import re
import signal
import sys

sys.dont_write_bytecode = True
from rig import BATCH, ENDLESS, check, equal, main, silent, steps, wait_for

LEADER, FOLLOWER = 0, 1  # ranks
SETS = ["collector.replicas=2", "learner.replicas=2", "net.lease_ms=1000", "net.beat_ms=100"]


def s_said(world):
    with open(os.path.join(world.path, "err.1"), encoding="utf-8") as file:
        return file.read()


def s_learners(world, run_dir):
    """Numbers of the learners that hold the weights in the order of their ranks: who leads comes first."""
    members = world.look(run_dir)["members"]
    ranks = {member["rank"]: member["index"] for member in members if member.get("holds") and member["phase"] == "active"}
    return [ranks[rank] for rank in sorted(ranks)]


def s_stopped(world, lag, role, index, *more):
    """index: the replica's number; of a learner its rank when the time has come."""
    config = world.config()
    sets = [*SETS, f"lag={lag}", *more]
    process, run_dir = world.start_run(config, *sets, ENDLESS, seed=5)
    status = world.await_steps(run_dir, 40 * BATCH, process)
    leads = role == "learner" and index == LEADER
    if role == "learner":
        def look():
            found = s_learners(world, run_dir)
            return found if len(found) == status["replicas"]["learner"]["desired"] else None
        index = wait_for(look, "all learners with weights")[index]
    pid, coordinator = world.replica(role, index), world.replica("coordinator", 0)
    os.kill(pid, signal.SIGSTOP)
    wait_for(lambda: world.replica(role, index) != pid, f"another process of {role}/{index}")
    check(pid not in world.processes(), f"process {pid}, which stood still, is still there")
    after = world.await_steps(run_dir, status["env_steps"] + steps(8_000), process)
    name = f"{role}/{index} (process {pid}): not a word for"
    if role != "coordinator":
        text, leader = world.tutti("status", run_dir).stdout, s_learners(world, run_dir)[:1]
        said, same = silent(run_dir), world.replica("coordinator", 0) == coordinator
        others = [line for line in said if not re.search(rf"process {pid}\b", line)]
        check([line for line in said if name in line], f"the coordinator's log: {said}")
        if same:  # another one does not know of it
            check(after["replaced"] >= 1, f"status: {after['replaced']} replaced")
            check([line for line in said if after["replaced_last"] in line], f"status: {after['replaced_last']}, the log: {said}")
            check("silent and replaced: " in text, f"status says nothing of it: {text}")
        if same and not others and leads and after["replicas"]["learner"]["desired"] > 1:
            check(leader and leader != [index], "who stood still leads again, though another one held the weights")
            equal(after["rolled_back"], 0, "rolled back, though another one held the weights")
    summary = world.stop(process, run_dir)
    if role == "coordinator":  # three leases of silence, in time that its controller has lived through
        check(f"{name} 3." in s_said(world), f"not said, or not after three leases: {s_said(world)}")
    world.check_same(summary, config, *sets, seed=5, what=f"after {role}/{index} stood still, lag {lag}")
    equal(summary["transitions"]["duplicated"], 0, "duplicated")
    equal(summary["transitions"]["lost"], 0, "lost")


def test_collector_lag_0(world):
    s_stopped(world, 0, "collector", 1)


def test_collector_lag_1(world):
    s_stopped(world, 1, "collector", 0)


def test_leader_lag_0(world):
    s_stopped(world, 0, "learner", LEADER)


def test_leader_lag_1(world):
    s_stopped(world, 1, "learner", LEADER)


def test_only_learner_lag_1(world):
    """Nobody else holds the weights: the run goes back to its newest snapshot."""
    s_stopped(world, 1, "learner", LEADER, "learner.replicas=1", "checkpoint.every_s=0.05")


def test_learner_lag_0(world):
    s_stopped(world, 0, "learner", FOLLOWER)


def test_learner_lag_1(world):
    s_stopped(world, 1, "learner", FOLLOWER)


def test_aggregator_lag_1(world):
    s_stopped(world, 1, "aggregator", 0)


def test_coordinator_lag_1(world):
    s_stopped(world, 1, "coordinator", 0)


main(test_collector_lag_0, test_collector_lag_1, test_leader_lag_0, test_leader_lag_1, test_only_learner_lag_1, test_learner_lag_0,
     test_learner_lag_1, test_aggregator_lag_1, test_coordinator_lag_1)
