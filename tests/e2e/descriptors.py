#!/usr/bin/env python3
"""File descriptors: the soft limit is raised to the hard one, and a process that has no more goes on: it neither ends nor
spins, and who comes later is let in once there is room."""

import contextlib
import os
import socket
import sys

sys.dont_write_bytecode = True
from rig import ENDLESS, PATIENT, SANITIZED, check, equal, main, steps, wait_for

FEW = 64


def s_limited(what, count):
    return "sh", "-c", f'ulimit {what} {count} && exec "$@"', "sh"


def s_limits(pid):
    """Soft and hard."""
    with open(f"/proc/{pid}/limits", encoding="utf-8") as file:
        line = [line for line in file if line.startswith("Max open files")][0].split()
    return line[3], line[4]


def s_cpu_s(pid):
    with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
        fields = file.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def s_age_s(pid):
    with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
        begun = int(file.read().rpartition(")")[2].split()[19]) / os.sysconf("SC_CLK_TCK")
    with open("/proc/uptime", encoding="utf-8") as file:
        return float(file.read().split()[0]) - begun


def test_the_soft_limit_is_raised(world):
    process, run_dir = world.start_run(world.config(), ENDLESS, by=s_limited("-Sn", FEW))
    world.await_steps(run_dir, 1, process)
    for role in ("coordinator", "collector", "learner"):
        soft, hard = s_limits(world.replica(role, 0))
        equal(soft, hard, f"soft limit of the {role}")
        check(int(hard) > FEW, f"hard limit of the {role} is {hard}")
    world.stop(process, run_dir)


def test_far_too_few(world):
    """Words, and an end, whichever descriptor is the one that is missing."""
    config = world.config()
    for count in (8, 12, 20, 40, FEW - 1):
        process, _ = world.start_run(config, ENDLESS, name=f"few-{count}", by=s_limited("-n", count))
        code, _, err = world.finish(process)
        equal(code, 71, f"exit code with {count} descriptors: {err}")
        check("Too many open files" in err or "raise the hard limit" in err, f"with {count} descriptors: {err}")
        world.await_empty()


def test_more_connections_than_descriptors(world):
    config = world.config()
    process, run_dir = world.start_run(config, PATIENT, ENDLESS, seed=5, by=s_limited("-n", FEW))  # nobody is replaced for being late
    steps_before = world.await_steps(run_dir, 1, process)["env_steps"]
    pid = world.replica("coordinator", 0)
    learner = world.replica("learner", 0)
    with contextlib.ExitStack() as stack:
        for _ in range(4 * FEW):  # more than wait in a listening socket: some are refused by the kernel
            for path in ("control", next(name for name in os.listdir(os.path.join(run_dir, "sock"))
                                         if name.startswith("learner") and name.endswith("data"))):
                link = stack.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK))
                with contextlib.suppress(BlockingIOError):
                    link.connect(os.path.join(run_dir, "sock", path))
        before, begun = s_cpu_s(pid), s_age_s(pid)
        log = os.path.join(run_dir, "logs", "coordinator-0.log")
        wait_for(lambda: "a connection was turned away" in open(log, encoding="utf-8").read(), "the warning")
        wait_for(lambda: s_age_s(pid) - begun > 2, "two seconds")
        share = (s_cpu_s(pid) - before) / (s_age_s(pid) - begun)
        check(share < 0.5, f"the coordinator spins: {share:.0%} of a core")
    world.await_steps(run_dir, steps_before + steps(20_000), process)  # there is room again
    equal(world.replica("coordinator", 0), pid, "the coordinator's process")
    equal(world.replica("learner", 0), learner, "the learner's process")
    world.check_same(world.stop(process, run_dir), config, seed=5, what="with more connections than descriptors")


# A sanitizer's runtime library has an accept4() of its own, which the linker takes in place of ours.
main(test_the_soft_limit_is_raised, test_far_too_few, *([] if SANITIZED else [test_more_connections_than_descriptors]))
