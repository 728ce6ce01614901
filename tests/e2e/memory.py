#!/usr/bin/env python3
"""Memory: a slow learner makes collectors wait, not grow; and nothing grows while a run goes on."""

import os
import signal
import sys
import time

sys.dont_write_bytecode = True
from rig import SANITIZED, check, main, wait_for

GROWTH_KB = 2048
SECONDS = 20.0
SETS = ["collector.replicas=2", "net.lease_ms=30000", "stop.env_steps=1000M"]


def s_rss(pid):
    """KiB, None when the process is gone."""
    try:
        with open(f"/proc/{pid}/status", encoding="utf-8") as file:
            for line in file:
                if line.startswith("VmRSS:"):
                    return int(line.split()[1])
    except OSError:
        pass
    return None


def s_rss_of_all(world):
    return {f"{line.split()[1]} {pid}": s_rss(pid) for pid, line in world.processes().items()
            if len(line.split()) > 1 and line.split()[1] != "status"}


def s_steps(world, run_dir):
    status = world.status(run_dir)
    return (status.get("env_steps") or 0) if status else 0


def s_doing(world, run_dir):
    """What the collectors said last: the coordinator shows what everybody does."""
    return [member.get("state", "") for member in (world.status(run_dir) or {}).get("members", [])
            if member.get("role") == "collector"]


def s_waits(world, run_dir, collectors):
    """Does each wait for the learner? For credit, or, where that came and then it was stopped, for its next version."""
    doing = s_doing(world, run_dir)
    return len(doing) == collectors and all(text.startswith(("waiting for credit", "waiting for version"))
                                            for text in doing)


def test_a_stopped_learner_makes_collectors_wait(world):
    process, run_dir = world.start_run(world.config(), *SETS)
    world.await_steps(run_dir, 50_000, process)
    learner = world.replica("learner", 0)
    pids = [world.replica("collector", index) for index in (0, 1)]
    before = [s_rss(pid) for pid in pids]
    os.kill(learner, signal.SIGSTOP)
    try:
        wait_for(lambda: s_waits(world, run_dir, 2), lambda: f"collectors to wait: {s_doing(world, run_dir)}", 20)
        end = time.monotonic() + 4  # long against the milliseconds that a batch takes
        most = before
        while time.monotonic() < end:
            most = [max(a, s_rss(pid)) for a, pid in zip(most, pids)]
            time.sleep(0.1)
    finally:
        os.kill(learner, signal.SIGCONT)
    for index, (a, b) in enumerate(zip(before, most)):
        check(b - a < GROWTH_KB, f"collector/{index} grew from {a} to {b} KiB while the learner stood still")
    steps = s_steps(world, run_dir)
    world.await_steps(run_dir, steps + 20_000, process)
    world.tutti("stop", run_dir)
    world.finish(process)


def test_nothing_grows(world):
    process, run_dir = world.start_run(world.config(), *SETS, "learner.replicas=2", "checkpoint.every_s=1")
    world.await_steps(run_dir, 1, process)
    begun = time.monotonic()
    wait_for(lambda: time.monotonic() - begun > SECONDS / 3, "a third of the run")
    early = s_rss_of_all(world)
    wait_for(lambda: time.monotonic() - begun > SECONDS, "the run")
    late = s_rss_of_all(world)
    check(set(early) == set(late) and len(early) >= 6, f"processes came or went: {early} {late}")
    for name, kib in early.items():
        check(late[name] - kib < GROWTH_KB, f"{name} grew from {kib} to {late[name]} KiB after {SECONDS / 3:.0f} s, "
              f"in {s_steps(world, run_dir)} steps")
    print("        " + ", ".join(f"{name} {early[name]} -> {late[name]} KiB" for name in early), flush=True)
    world.tutti("stop", run_dir)
    world.finish(process)


if SANITIZED:  # its allocator keeps what was freed
    print("left out: the sanitizer's memory is not ours")
    sys.exit(77)
main(test_a_stopped_learner_makes_collectors_wait, test_nothing_grows)
