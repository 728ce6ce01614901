#!/usr/bin/env python3
"""Memory: a slow learner makes collectors wait, not grow; and nothing grows while a run goes on."""

import os
import signal
import struct
import sys

sys.dont_write_bytecode = True
from rig import SANITIZED, check, main, wait_for

GROWTH = 256 << 10  # bytes; what is on its way at the moment of a look comes and goes
EARLY, LATE, LOOKS = 300, 2700, 300  # updates: a hundred bytes that leak in each are found
TIMES = 10  # and at least so many looks, however fast updates follow one another
SETS = ["collector.replicas=2", "net.lease_ms=30000", "stop.env_steps=1000M"]


def s_count_bytes(world):
    """From here on every process of the world counts what it has allocated (live_bytes.c)."""
    folder = os.path.join(world.path, "live")
    os.mkdir(folder)
    world.env.update(LD_PRELOAD=os.environ["LIVE_BYTES"], TT_LIVE_BYTES=folder)


def s_live(world, pid):
    with open(os.path.join(world.path, "live", str(pid)), "rb") as file:
        return struct.unpack("=q", file.read())[0]


def s_live_of_all(world):
    return {f"{line.split()[1]} {pid}": s_live(world, pid) for pid, line in world.processes().items()
            if len(line.split()) > 1 and line.split()[1] not in ("status", "stop")}


def s_updates(world, run_dir):
    return (world.status(run_dir) or {}).get("updates") or 0


def s_look(world, run_dir, first, fold):
    """Bytes of every process, folded over looks from update `first` on."""
    wait_for(lambda: s_updates(world, run_dir) >= first, f"update {first}")
    found, looks = s_live_of_all(world), 1
    while looks < TIMES or s_updates(world, run_dir) < first + LOOKS:
        now, looks = s_live_of_all(world), looks + 1
        check(set(now) == set(found) and len(now) >= 6, f"processes came or went: {found} {now}")
        found = {name: fold(found[name], now[name]) for name in found}
    return found


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
    s_count_bytes(world)
    process, run_dir = world.start_run(world.config(), *SETS)
    world.await_ready(run_dir, learners=1)  # who comes later still grows
    world.await_steps(run_dir, s_steps(world, run_dir) + 50_000, process)
    learner = world.replica("learner", 0)
    pids = [world.replica("collector", index) for index in (0, 1)]
    before = [s_live(world, pid) for pid in pids]
    os.kill(learner, signal.SIGSTOP)
    try:
        wait_for(lambda: s_waits(world, run_dir, 2), lambda: f"collectors to wait: {s_doing(world, run_dir)}")
        after = [s_live(world, pid) for pid in pids]
    finally:
        os.kill(learner, signal.SIGCONT)
    for index, (a, b) in enumerate(zip(before, after)):
        check(b - a < GROWTH, f"collector/{index} grew from {a} to {b} bytes while the learner stood still")
    steps = s_steps(world, run_dir)
    world.await_steps(run_dir, steps + 20_000, process)
    world.tutti("stop", run_dir)
    world.finish(process)


def test_nothing_grows(world):
    s_count_bytes(world)
    process, run_dir = world.start_run(world.config(), *SETS, "learner.replicas=2", "checkpoint.every_s=1")
    world.await_ready(run_dir)
    first = s_updates(world, run_dir)
    early = s_look(world, run_dir, first + EARLY, max)
    late = s_look(world, run_dir, first + LATE, min)
    check(set(early) == set(late), f"processes came or went: {early} {late}")
    for name, bytes_ in early.items():
        check(late[name] - bytes_ < GROWTH, f"{name} grew from {bytes_} to {late[name]} bytes in {LATE - EARLY} updates")
    print("        " + ", ".join(f"{name} {early[name]} -> {late[name]} B" for name in early), flush=True)
    world.tutti("stop", run_dir)
    world.finish(process)


if SANITIZED:  # its allocator keeps what was freed
    print("left out: the sanitizer's memory is not ours")
    sys.exit(77)
main(test_a_stopped_learner_makes_collectors_wait, test_nothing_grows)
