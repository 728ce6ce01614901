#!/usr/bin/env python3
"""Lag 3: collectors may be three versions behind, so copies of a segment differ and no two runs have the same bits; but
nothing is trained twice or left out, no policy is older than it may be, and all learners hold the same weights."""

import os
import re
import signal
import sys

sys.dont_write_bytecode = True
from rig import BATCH, ENDLESS, JOB, Failed, all_took_part, check, equal, main, rosters, steps, wait_for

LAG, STEPS = 3, steps(200_000)
HELD = re.compile(r"this learner's weights: ([0-9a-f]{64}), version (\d+)")


def s_sets(learners, *more):
    return [f"lag={LAG}", "collector.replicas=2", f"learner.replicas={learners}", *more]


def s_held(run_dir):
    """{learner: (sha256, version)} as each said last."""
    held = {}
    folder = os.path.join(run_dir, "logs")
    for name in sorted(os.listdir(folder)):
        if name.startswith("learner-"):
            with open(os.path.join(folder, name), encoding="utf-8") as file:
                found = HELD.findall(file.read())
            if found:
                held[name] = found[-1]
    return held


def s_check_weights(world, summary, run_dir, least):
    """A learner that was told to end while it waited for the last sum is one version behind, and says so."""
    held = s_held(run_dir)
    for name, (sha, version) in held.items():
        if int(version) == summary["updates"]:
            equal(sha, summary["weights_sha256"], f"weights of {name}")
        else:
            equal(int(version), summary["updates"] - 1, f"version of {name}")
    check(len(held) >= least, f"only {held} say what they hold")


def s_check(world, summary, run_dir, learners, status="succeeded"):
    equal(summary["status"], status, "status")
    check(summary["lag_max"] <= LAG, f"lag_max {summary['lag_max']}")
    equal(summary["transitions"]["trained"], summary["updates"] * BATCH, "trained")
    equal(summary["transitions"]["duplicated"], 0, "duplicated")
    equal(summary["transitions"]["lost"], 0, "lost")
    s_check_weights(world, summary, run_dir, learners)
    world.await_empty()


def s_undisturbed(world, learners):
    summary = world.train_together(world.config(JOB), *s_sets(learners, f"stop.env_steps={STEPS}"), seed=4)
    s_check(world, summary, summary["run_dir"], learners)


def test_one_learner(world):
    s_undisturbed(world, 1)


def test_two_learners(world):
    s_undisturbed(world, 2)


def s_killed(world, role, index, least):
    process, run_dir = world.start_run(world.config(JOB), *s_sets(2, ENDLESS), seed=4)
    status = world.await_steps(run_dir, 1, process)
    wait_for(lambda: len([m for m in world.look(run_dir, process)["members"] if m.get("holds")]) == 2, "two learners with weights")
    pid = world.replica(role, index)
    os.kill(pid, signal.SIGKILL)
    wait_for(lambda: world.replica(role, index) != pid, f"another {role}/{index}")
    world.await_steps(run_dir, status["env_steps"] + STEPS, process)
    s_check(world, world.stop(process, run_dir), run_dir, least, "stopped")


def test_a_collector_is_killed(world):
    s_killed(world, "collector", 1, 2)


def test_rank_0_is_killed(world):
    s_killed(world, "learner", 0, 1)


def s_resumed(world, number):
    """A run that was interrupted and goes on to another end: (summary, run directory, rosters of its first life)."""
    process, run_dir = world.start_run(world.config(JOB), *s_sets(2, ENDLESS), name=f"run-{number}", seed=4)
    world.await_steps(run_dir, 10_000, process)
    process.send_signal(signal.SIGINT)
    stopped = world.summary(process, 130)
    equal(stopped["status"], "stopped", "status")
    world.await_empty()
    before = len(rosters(run_dir))
    return world.resume(run_dir, f"stop.env_steps={stopped['env_steps'] + STEPS}"), run_dir, before


def test_resume(world):
    """A learner that is late for the second life may not be in it: once more then."""
    for number in range(5):
        summary, run_dir, before = s_resumed(world, number)
        if all_took_part(run_dir, before):
            s_check(world, summary, run_dir, 2)
            return
    raise Failed(f"a learner was late for each life: {rosters(run_dir)}")


main(test_one_learner, test_two_learners, test_a_collector_is_killed, test_rank_0_is_killed, test_resume)
