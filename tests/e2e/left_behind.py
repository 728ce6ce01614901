#!/usr/bin/env python3
"""No process is left behind, however the run ends."""

import contextlib
import os
import shutil
import signal
import sys
import time

sys.dont_write_bytecode = True
from rig import BATCH, PATIENT, check, equal, main, wait_for

FOREVER = "stop.env_steps=1000M"


def s_run_pids(world):
    """The two processes of `tutti run`: the one we started, and its child. A replica has their line, too, until it executes its program."""
    def look():
        pids = sorted(pid for pid, line in world.processes().items() if " run " in line)
        return pids if len(pids) == 2 else None
    return wait_for(look, lambda: f"two processes of tutti run: {world.processes()}")


def s_started(world, *sets):
    process, run_dir = world.start_run(world.config(), FOREVER, "collector.replicas=2", *sets)
    world.await_steps(run_dir, 1, process)
    return process, run_dir


def s_killed(world, which):
    process, run_dir = s_started(world)
    pids = s_run_pids(world)
    os.kill(process.pid if which == "guard" else [pid for pid in pids if pid != process.pid][0], signal.SIGKILL)
    process.wait()
    world.await_empty()
    state = world.tutti("ps", "--all")
    check("running" not in state.stdout, f"ps still says running: {state.stdout}")


def test_guard_killed(world):
    s_killed(world, "guard")


def test_controller_killed(world):
    s_killed(world, "controller")


def test_coordinator_killed_for_good(world):
    """Killed again and again while nothing gets on, it is given up, and the run fails with everything ended."""
    process, run_dir = s_started(world, "net.lease_ms=600000")  # nobody replaces the collectors, which would get on
    for index in range(2):
        os.kill(world.replica("collector", index), signal.SIGSTOP)
    while process.poll() is None:
        for pid, line in world.processes().items():
            if line.startswith("tutti coordinator"):
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass
        try:
            process.wait(0.02)
        except Exception:
            pass
    check(process.returncode != 0, "a run without a coordinator ended well")
    world.await_empty()


def test_interrupted_while_starting(world):
    process, run_dir = world.start_run(world.config(), FOREVER)
    wait_for(lambda: os.path.exists(os.path.join(run_dir, "run.json")), "run.json")
    process.send_signal(signal.SIGTERM)
    world.finish(process)
    world.await_empty()


def test_asked_twice(world):
    process, run_dir = s_started(world)
    os.kill(world.replica("learner", 0), signal.SIGSTOP)  # it cannot write the snapshot it is asked for
    process.send_signal(signal.SIGINT)
    wait_for(lambda: "once more" in open(os.path.join(world.path, "err.1"), encoding="utf-8").read(), "the first note")
    wait_for(lambda: process.send_signal(signal.SIGINT) or process.poll() is not None, "the end")
    check(process.returncode == 130, f"exit code {process.returncode}")
    world.await_empty()


def test_asked_once_in_two_ways(world):
    """timeout(1) signals the process and its group: that is one request, and the run ends with its snapshot. The guard stands still meanwhile,
    for two that it takes 0.2 s apart are two requests."""
    process, run_dir = s_started(world, PATIENT)
    pids = s_run_pids(world)
    os.kill(process.pid, signal.SIGSTOP)
    begun = time.monotonic()
    for pid in [*pids, process.pid]:
        os.kill(pid, signal.SIGTERM)
    os.kill(process.pid, signal.SIGCONT)
    summary = world.summary(process, code=143)
    late = time.monotonic() - begun > 5  # the guard's may have come as a second request: the machine stood still
    check(summary["status"] == "stopped" or late, f"status {summary['status']}: {summary['reason']}")
    check(os.path.exists(os.path.join(run_dir, "checkpoints", "final.safetensors")) or late, "no final checkpoint")
    world.await_empty()


def s_pending(pid):
    """Signals that a process has not taken yet; none when it has ended."""
    try:
        with open(f"/proc/{pid}/status", encoding="utf-8") as file:
            return [int(line.split()[1], 16) for line in file if line.startswith("ShdPnd:")][0]
    except OSError:
        return 0


def test_asked_once_and_told_late(world):
    """The same with a guard that gets to it late. The learner stands still, so that the run cannot end before."""
    process, run_dir = s_started(world)
    controller = [pid for pid in s_run_pids(world) if pid != process.pid][0]
    learner = world.replica("learner", 0)
    for pid in (learner, process.pid):
        os.kill(pid, signal.SIGSTOP)
    begun = time.monotonic()
    for pid in (process.pid, controller):
        os.kill(pid, signal.SIGTERM)
    path = os.path.join(world.path, "err.1")
    wait_for(lambda: "once more" in open(path, encoding="utf-8").read(), "the first note")
    asked = time.monotonic()
    wait_for(lambda: time.monotonic() - asked > 0.5, "more than two signals of one request are apart")
    os.kill(process.pid, signal.SIGCONT)
    for pid in (process.pid, controller):
        wait_for(lambda p=pid: s_pending(p) == 0, "the signal to be taken")
    with contextlib.suppress(ProcessLookupError):  # the coordinator does not wait for it for ever
        os.kill(learner, signal.SIGCONT)
    summary = world.summary(process, code=143)
    late = time.monotonic() - begun > 5  # the guard's may have come as a second request: the machine stood still
    check(summary["status"] == "stopped" or late, f"status {summary['status']}: {summary['reason']}")
    world.await_empty()


OFTEN = "checkpoint.every_s=0.1"


def test_directory_removed(world):
    """Nobody could find the run again: it ends, and what is made in that place is not touched."""
    process, run_dir = world.start_run(world.config(), FOREVER, OFTEN)
    world.await_snapshot(run_dir, process)
    os.rename(run_dir, run_dir + ".away")  # at once: rm -rf may meet what is being written
    shutil.rmtree(run_dir + ".away", ignore_errors=True)
    summary = world.summary(process, code=74)
    equal(summary["status"], "failed", "status")
    check(f"the run directory {run_dir} is gone or was moved" in summary["reason"], summary["reason"])
    world.await_empty()
    check(not os.path.exists(run_dir), "the run directory came back")


def test_directory_moved(world):
    """A detached one, too: its log has the words, and from its new place it goes on."""
    run_dir, moved = (os.path.join(world.path, name) for name in ("run", "moved"))
    started = world.tutti("run", world.config(), "--detach", "--run-dir", run_dir, "--set", FOREVER, "--set", OFTEN)
    equal(started.returncode, 0, started.stderr)
    updates = world.await_snapshot(run_dir)["updates"]
    os.rename(run_dir, moved)
    world.await_empty()
    with open(os.path.join(moved, "logs", "run.log"), encoding="utf-8") as file:
        text = file.read()
    check(f"failed: the run directory {run_dir} is gone or was moved" in text, text)
    check(not os.path.exists(run_dir), "the run directory came back")
    names = os.listdir(os.path.join(moved, "checkpoints"))
    newest = max(int(name.partition(".")[0]) for name in names if name[0].isdigit() and name.endswith(".safetensors"))
    summary = world.resume(moved, f"stop.env_steps={(newest + 20) * BATCH}")
    check(summary["restored_from"]["updates"] >= updates, f"it went on from {summary['restored_from']}")


main(test_guard_killed, test_controller_killed, test_coordinator_killed_for_good, test_interrupted_while_starting,
     test_asked_twice, test_asked_once_in_two_ways, test_asked_once_and_told_late,
     test_directory_removed, test_directory_moved)
