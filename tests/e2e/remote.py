#!/usr/bin/env python3
"""Roles that join by hand over tcp with the job's key: they take part at once, and the weights keep their bits."""

import os
import sys

sys.dont_write_bytecode = True
from rig import ENDLESS, equal, main, steps, wait_for


def s_endpoint(world, run_dir):
    return wait_for(lambda: (world.status(run_dir) or {}).get("listen"), "the endpoint that the run listens on")


def s_join(world, role, run_dir, key=None):
    return world.start(role, "--coordinator", s_endpoint(world, run_dir), "--key", key or os.path.join(run_dir, "key"))


def s_ready(world, run_dir, role):
    return (world.status(run_dir) or {}).get("replicas", {}).get(role, {}).get("ready")


def test_a_learner_and_a_collector_join(world):
    config = world.config()
    listening = ["aggregator.replicas=1", "coordinator.listen=tcp://127.0.0.1:0"]
    process, run_dir = world.start_run(config, *listening, ENDLESS, seed=3)
    world.await_steps(run_dir, 1, process)
    roles = [s_join(world, "learner", run_dir), s_join(world, "collector", run_dir)]
    wait_for(lambda: s_ready(world, run_dir, "learner") == 2, "two learners in the roster")
    wait_for(lambda: s_ready(world, run_dir, "collector") == 2, "two collectors in the roster")
    status = world.await_steps(run_dir, 1, process)
    world.await_steps(run_dir, status["env_steps"] + steps(100_000), process)
    summary = world.stop(process, run_dir)
    world.check_same(summary, config, seed=3, what="with roles over tcp")
    for role in roles:
        equal(world.finish(role)[0], 0, "exit code of a role that joined")


def s_by_hand(world, run_dir):
    """Members that nobody but we started: their numbers begin at 10000."""
    members = (world.status(run_dir) or {}).get("members", [])
    return [member for member in members if member["index"] >= 10000]


def test_another_key_stays_outside(world):
    sets = [ENDLESS, "coordinator.listen=tcp://127.0.0.1:0"]
    process, run_dir = world.start_run(world.config(), *sets)
    other, other_dir = world.start_run(world.config(), *sets, name="other")
    world.await_steps(run_dir, 1, process)
    world.await_steps(other_dir, 1, other)
    s_join(world, "collector", run_dir, key=os.path.join(other_dir, "key"))
    s_join(world, "collector", other_dir)  # when this one is in, the first has had its time
    wait_for(lambda: s_by_hand(world, other_dir), "the one with the right key")
    equal(s_by_hand(world, run_dir), [], "members that showed another job's key")
    for at in (run_dir, other_dir):
        equal(world.tutti("stop", at).returncode, 0, "tutti stop")


main(test_a_learner_and_a_collector_join, test_another_key_stays_outside)
