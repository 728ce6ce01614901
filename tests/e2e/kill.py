#!/usr/bin/env python3
"""kill -9 of a collector, of a learner, of the aggregator, of the coordinator, and SIGTERM of those who may go: the run goes on,
and the weights keep their bits at lag 0 and 1."""

import contextlib
import json
import os
import re
import signal
import sys

sys.dont_write_bytecode = True
from rig import ENDLESS, check, equal, main, newest_update, steps, wait_for

SETS = ["collector.replicas=2", "learner.replicas=2"]


def s_await_back(world, role, index, old):
    wait_for(lambda: world.replica(role, index) != old, f"another process of {role}/{index}")


def s_killed(world, lag, victims, number=signal.SIGKILL):
    config = world.config()
    sets = [*SETS, f"lag={lag}"]
    process, run_dir = world.start_run(config, *sets, ENDLESS, seed=5)
    wanted = 1
    for role, index in victims:
        status = world.await_steps(run_dir, wanted, process)
        pid = world.replica(role, index)
        os.kill(pid, number)
        s_await_back(world, role, index, pid)
        wanted = status["env_steps"] + steps(8_000)
    world.await_steps(run_dir, wanted + steps(8_000), process)
    summary = world.stop(process, run_dir)
    world.check_same(summary, config, *sets, seed=5, what=f"after {victims}, lag {lag}")
    equal(summary["transitions"]["duplicated"], 0, "duplicated")
    equal(summary["transitions"]["lost"], 0, "lost")


def test_collector_lag_0(world):
    s_killed(world, 0, [("collector", 1), ("collector", 0)])


def test_collector_lag_1(world):
    s_killed(world, 1, [("collector", 1), ("collector", 0)])


def test_often_while_the_run_gets_on(world):
    """More often than is taken for a crash loop, each time within 30 s; but versions were made in between."""
    process, run_dir = world.start_run(world.config(), ENDLESS)
    status = world.await_steps(run_dir, 1, process)
    for _ in range(7):
        pid = world.replica("collector", 0)
        os.kill(pid, signal.SIGKILL)
        s_await_back(world, "collector", 0, pid)
        status = world.await_steps(run_dir, status["env_steps"] + steps(8_000), process)
    world.stop(process, run_dir)


def test_second_learner_lag_0(world):
    s_killed(world, 0, [("learner", 1), ("learner", 1)])


def test_second_learner_lag_1(world):
    s_killed(world, 1, [("learner", 1), ("learner", 1)])


def test_first_learner_lag_1(world):
    """Rank 0 dies: the other takes over publishing."""
    s_killed(world, 1, [("learner", 0), ("learner", 1)])


def s_best(run_dir):
    """The mean return of best.safetensors; None while there is none."""
    path = os.path.join(run_dir, "checkpoints", "best.safetensors")
    with contextlib.suppress(FileNotFoundError), open(path, "rb") as file:
        header = json.loads(file.read(int.from_bytes(file.read(8), "little")))
        return float(header["__metadata__"]["return_mean"])
    return None


def test_first_learner_and_the_best(world):
    """Whoever leads next does not know what was best. Nothing is learned, so that what comes later is no better for that."""
    sets = [*SETS, "algorithm.learning_rate=1e-12", "checkpoint.every_s=0.05"]
    process, run_dir = world.start_run(world.config(), *sets, ENDLESS, seed=5)
    world.await_steps(run_dir, steps(100_000), process)
    best = wait_for(lambda: s_best(run_dir), "a best snapshot")
    for index in (0, 1, 0):
        world.await_ready(run_dir)
        pid = world.replica("learner", index)
        os.kill(pid, signal.SIGKILL)
        newest = newest_update(run_dir)
        s_await_back(world, "learner", index, pid)
        wait_for(lambda: newest_update(run_dir) > newest, "a snapshot of the other learner")
        after = s_best(run_dir)
        check(after >= best, f"the best has a mean return of {after}, where there was one of {best}")
        best = after
    world.stop(process, run_dir)


def test_aggregator_lag_1(world):
    s_killed(world, 1, [("aggregator", 0)])


def test_coordinator_lag_1(world):
    s_killed(world, 1, [("coordinator", 0)])


def test_stopped_as_the_coordinator_comes_back(world):
    """The weights are with learners that have just said hello, or have not yet: they finish, and nothing of the run is lost."""
    config, sets = world.config(), [*SETS, "lag=1"]
    process, run_dir = world.start_run(config, *sets, ENDLESS, seed=5)
    world.await_steps(run_dir, steps(8_000), process)
    pid = world.replica("coordinator", 0)
    os.kill(pid, signal.SIGKILL)
    s_await_back(world, "coordinator", 0, pid)
    summary = world.stop(process, run_dir)
    equal(summary["status"], "stopped", "status")
    world.check_same(summary, config, *sets, seed=5, what="stopped as the coordinator came back")


def test_asked_to_end_lag_1(world):
    """By hand, one by one: nobody told the controller, so they come back."""
    s_killed(world, 1, [("collector", 1), ("learner", 1), ("learner", 0), ("aggregator", 0)], signal.SIGTERM)


def test_what_is_said_of_a_kill(world):
    """It was not ours, and what is usual; the log's last line is of something else, and is only called what it is."""
    process, _ = world.start_run(world.config(), "num_steps=65536", "algorithm.epochs=1000", ENDLESS)  # no version is made meanwhile
    old = None
    for _ in range(6):
        wait_for(lambda: world.replica("learner", 0) != old, "the next learner")
        old = world.replica("learner", 0)
        os.kill(old, signal.SIGKILL)
    reason = world.summary(process, code=137)["reason"]
    words = (r"learner/0: killed by SIGKILL, not by tutti: out of memory, mostly \(it had \d+ MiB at most\), and so every time it "
             r"was started again; given up(; the last line of its log, \d+\.\d s before: .*)?")
    check(re.fullmatch(words, reason), reason)
    said = s_said(process)
    check("out of memory, mostly (it had " in said and said.count("; starting it again") == 5, said)


def s_said(process):
    process.err.seek(0)
    return process.err.read()


@contextlib.contextmanager
def s_little_memory(bytes_):
    """A control group that holds so much, v1 or v2; None where there can be none."""
    with open("/proc/self/cgroup", encoding="utf-8") as file:
        groups = dict(line.rstrip("\n").split(":", 2)[1:] for line in file)
    old = groups.get("memory")
    group = f"/sys/fs/cgroup{'' if old is None else '/memory'}{groups.get('' if old is None else 'memory', '').rstrip('/')}/tutti-e2e-{os.getpid()}"
    try:
        os.mkdir(group)
        with open(f"{group}/memory.{'max' if old is None else 'limit_in_bytes'}", "w", encoding="utf-8") as file:
            file.write(str(bytes_))
    except OSError as refused:
        s_removed(group)
        print(f"        needs a control group of its own ({refused}): left out", flush=True)
        yield None
        return
    with contextlib.suppress(OSError), open(f"{group}/memory.swap.max", "w", encoding="utf-8") as file:
        file.write("0")
    try:
        yield group
    finally:
        wait_for(lambda: s_removed(group), f"an empty {group}")


def s_removed(group):
    with contextlib.suppress(OSError):
        os.rmdir(group)
    return not os.path.exists(group)


def test_what_is_said_of_too_little_memory(world):
    """Its control group has counted it: no guess."""
    with s_little_memory(96 << 20) as group:
        if not group:
            return
        by = ("sh", "-c", f'echo $$ > {group}/cgroup.procs && exec "$@"', "sh")
        process, _ = world.start_run(world.config(), "network.hidden=[4096,4096]", ENDLESS, by=by)
        reason = world.summary(process, code=137)["reason"]
        check(re.match(r"\w+/0: killed by SIGKILL: out of memory, says its control group \(it had \d+ MiB at most\), and so every time it", reason),
              reason)
        check("out of memory, says its control group" in s_said(process), s_said(process))


main(test_collector_lag_0, test_collector_lag_1, test_often_while_the_run_gets_on, test_second_learner_lag_0, test_second_learner_lag_1,
     test_first_learner_lag_1, test_first_learner_and_the_best, test_aggregator_lag_1, test_coordinator_lag_1,
     test_what_is_said_of_a_kill, test_what_is_said_of_too_little_memory, test_stopped_as_the_coordinator_comes_back, test_asked_to_end_lag_1)
