#!/usr/bin/env python3
"""Scaling a running job, up and down, collectors and learners: nothing restarts, and the weights keep their bits."""

import sys

sys.dont_write_bytecode = True
from rig import BATCH, ENDLESS, PATIENT, check, equal, main, steps, wait_for


def s_counts(world, run_dir):
    status = world.status(run_dir)
    counts = (status or {}).get("replicas", {})
    return {role: (count["ready"], count["desired"]) for role, count in counts.items()}


def s_await_counts(world, run_dir, **wanted):
    def look():
        counts = s_counts(world, run_dir)
        return all(counts.get(role) == (n, n) for role, n in wanted.items())
    wait_for(look, lambda: f"{wanted} (now {s_counts(world, run_dir)})")


def s_scale(world, run_dir, **wanted):
    done = world.tutti("scale", run_dir, *[f"{role}={n}" for role, n in wanted.items()])
    equal(done.returncode, 0, f"tutti scale: {done.stderr}")
    for role, n in wanted.items():
        check(any(line.split()[0] == role and line.endswith(f" of {n}") for line in done.stdout.splitlines()),
              f"tutti scale does not say {role} {n}: {done.stdout!r}")
    s_await_counts(world, run_dir, **wanted)


def s_scaled(world, lag):
    config = world.config()
    process, run_dir = world.start_run(config, f"lag={lag}", PATIENT, ENDLESS, seed=3)  # that nothing waits for a lease is asked below
    world.await_steps(run_dir, 1, process)
    pids = [world.replica("collector", 0), world.replica("learner", 0)]
    s_scale(world, run_dir, collector=3)
    s_scale(world, run_dir, learner=2)
    s_scale(world, run_dir, collector=1, learner=4)
    s_scale(world, run_dir, collector=2, learner=1)
    status = world.await_steps(run_dir, 1, process)
    world.await_steps(run_dir, status["env_steps"] + steps(20_000), process)
    equal([world.replica("collector", 0), world.replica("learner", 0)], pids, "processes of the first replicas")
    summary = world.stop(process, run_dir)
    world.check_same(summary, config, f"lag={lag}", seed=3, what=f"of the scaled run, lag {lag}")
    equal(summary["rolled_back"], 0, "rolled back")
    equal(summary["transitions"]["duplicated"], 0, "duplicated")


def test_lag_0(world):
    s_scaled(world, 0)


def test_lag_1(world):
    s_scaled(world, 1)


def test_nothing_waits_for_a_lease(world):
    """What anyone lacks after a roster it gets because that is known, not because nothing was heard of it for a while: here none is over."""
    config = world.config()
    sets = ("collector.replicas=2", "learner.replicas=2", "net.lease_ms=600000", "net.stall_s=7200")
    process, run_dir = world.start_run(config, *sets, ENDLESS, seed=3)
    world.await_steps(run_dir, 1, process)
    for collectors, learners in ((4, 2), (1, 4), (3, 4), (2, 3), (4, 3), (1, 2), (2, 4), (3, 2)):
        s_scale(world, run_dir, collector=collectors, learner=learners)
        status = world.await_steps(run_dir, 1, process)
        world.await_steps(run_dir, status["env_steps"] + 4 * BATCH, process)
    summary = world.stop(process, run_dir)
    world.check_same(summary, config, seed=3, what="of a run that was scaled eight times")


def test_limits(world):
    """Collectors from 1 to num_envs, learners from 1 to shards; a refusal changes nothing."""
    process, run_dir = world.start_run(world.config(), "stop.env_steps=100M")
    world.await_steps(run_dir, 1, process)
    before = s_counts(world, run_dir)
    for wrong, word in (("collector=9", "8"), ("collector=0", "1"), ("learner=5", "4"), ("learner=0", "1"),
                        ("poet=1", "poet"), ("collector", "ROLE=N")):
        done = world.tutti("scale", run_dir, wrong)
        check(done.returncode != 0, f"scale {wrong} was taken")
        check(word in done.stderr, f"scale {wrong}: the message does not say {word}: {done.stderr}")
    equal(s_counts(world, run_dir), before, "replicas after refusals")
    world.tutti("stop", run_dir)
    world.finish(process)


main(test_lag_0, test_lag_1, test_nothing_waits_for_a_lease, test_limits)
