#!/usr/bin/env python3
"""Seeded chaos on tasks: everything of a run of tasks, or one process of it, is killed with -9 at random moments, again and again, while
commands create, retry and kill beside it. No job ever runs twice at once, none whose end is known runs again, all tasks come to
the ends that they would have come to, and no process is left.

Every attempt writes a line when it begins and one when it ends, and holds a lock in between. TASKS_SEED=n repeats a sequence,
TASKS_KILLS=n makes it longer."""

import contextlib
import os
import random
import re
import signal
import sys
import time

sys.path.insert(0, os.path.join(os.environ["TT_SOURCE_DIR"], "tests", "task"))
from taskrig import check, create, equal, jobs, name, ok, read, rig, sets, tasks  # noqa: E402

SEED = int(os.environ.get("TASKS_SEED", random.randrange(1 << 32)))
KILLS = int(os.environ.get("TASKS_KILLS", 12)) // (3 if rig.SANITIZED else 1)
JOBS = max(24, 2 * KILLS)

# Job 5 fails twice, job 7 always. mkdir is the lock: a second process of the same job finds it held. A killed attempt leaves it, with its process number.
JOB = """#!/bin/sh
# job CONFIG DATA OUT
lock=$VOLUME/locks/$TT_TASK_JOB
if ! mkdir "$lock" 2>/dev/null; then
    holder=$(cat "$lock/pid" 2>/dev/null)
    # of a zombie the environment is empty, of another process with its number it is another
    tr '\\0' '\\n' 2>/dev/null <"/proc/${holder:-0}/environ" | grep -qx "TT_TASK_JOB=$TT_TASK_JOB" &&
        echo "$TT_TASK_JOB $TT_TASK_ATTEMPT $$ $holder" >>"$VOLUME/twice"
fi
echo $$ >"$lock/pid"
echo "begin $TT_TASK_JOB $TT_TASK_ATTEMPT" >>"$VOLUME/history"
sleep "0.0$(($(cat "$1") % 10))"
(sleep 0.02; cp "$2" "$3") & wait $! || exit 1
echo "end $TT_TASK_JOB $TT_TASK_ATTEMPT" >>"$VOLUME/history"
rm -rf "$lock"
[ "$TT_TASK_JOB" != 7 ] || exit 1
if [ "$TT_TASK_JOB" = 5 ]; then
    { mkdir "$VOLUME/first" || mkdir "$VOLUME/second"; } 2>/dev/null && exit 1
fi
exit 0
"""


def kill_some(world, engine, rng, may_fail):
    """Everything at once, both halves of `tutti task run`, one of them, or, where may_fail, one process of a job, which costs that job a retry."""
    if rng.random() < 0.3:
        world.kill_all(engine)
        return "all"
    alive = world.processes()
    halves = sorted(pid for pid, line in alive.items() if "task run" in line)
    others = sorted(pid for pid, line in alive.items() if "job_configId_" in line and not re.search("job_configId_[57]/", line))
    if rng.random() < 0.4:  # both halves, and jobs go on: for the next engine to end
        for number in (signal.SIGSTOP, signal.SIGKILL):
            for pid in halves:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, number)
        return "both"
    pid = rng.choice(others if others and may_fail and rng.random() < 0.5 else halves or [engine.pid])
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
    return "half" if pid in halves else "job"


def attempts(world):
    """{job: attempts that began}, {job: attempts that ended}, in the order of the history."""
    began, ended = {}, {}
    for line in read(os.path.join(world.path, "history")).splitlines():
        word, job, attempt = line.split()
        (began if word == "begin" else ended).setdefault(int(job), []).append(int(attempt))
    return began, ended


def disturb(world, rng):
    """Runs that are killed; what was killed, for messages."""
    said = []
    for _ in range(KILLS):
        engine = world.start("task", "run", "--cpu", "4")
        rig.wait_for(lambda: engine.poll() is not None or len(world.processes()) > 2, "the engine's start")
        time.sleep(rng.random() * 0.25)  # the moment is what is random
        said.append(kill_some(world, engine, rng, said.count("job") < 3) if engine.poll() is None else "ended")
        if said[-1] == "job":
            time.sleep(rng.random() * 0.1)
            engine.send_signal(signal.SIGTERM)
        world.finish(engine)
        if said[-1] == "both":
            continue
        world.await_empty()
        if rng.random() < 0.3:
            tasks(world)  # a look between two lives
    return said


def killed_at_random(world):
    rng = random.Random(SEED)
    print(f"seed {SEED}")
    sets(world, JOBS)
    os.mkdir(os.path.join(world.path, "locks"))
    os.chmod(world.file("job", JOB), 0o755)
    create(world, f"{world.path}/job %IN %DATA %OUT", "--retries", "3")
    said = disturb(world, rng)
    done = world.tutti("task", "run", "--cpu", "4")
    equal(done.returncode, 0, f"the last run: {done.stderr}")
    row = tasks(world)["task"]
    equal((row["status"], row["done"], row["failed"]), ("finalized", JOBS - 1, 1), f"the end, after {said}")
    equal(read(os.path.join(world.path, "twice")), "", f"jobs that ran twice at once, after {said}")
    began, _ = attempts(world)
    for job in jobs(world):
        i = job["configId"]
        check(len(set(began[i])) == len(began[i]) and max(began[i]) <= job["attempt"], f"attempts of job {i}: {began[i]}, {job}")
        exits = [n for n in range(1, job["attempt"] + 1) if os.path.exists(f"{job['log'][:-4]}-{n}.exit")]
        if i != 7:
            wanted = [n for n in exits if read(f"{job['log'][:-4]}-{n}.exit") == "0\n"]
            equal(wanted, [job["attempt"]], f"job {i}: the attempt that ended well is the last")
            check(not began[i] or max(began[i]) == job["attempt"], f"job {i}: {began[i]}")
            equal(read(os.path.join(job["dir"], "out")), "data\n", f"output of job {i}")
        else:
            equal((job["retries"], len(exits)), (3, 4), f"job 7: only its own ends cost retries, after {said}")
    equal(world.processes(), {}, "processes")


def commands_killed(world):
    """A creation that is killed leaves nothing, or a whole task."""
    rng = random.Random(SEED)
    sets(world, 200)
    whole = 0
    for n in range(KILLS):
        line = ["task", "create", "-c", name("configs"), "-d", name("data"), "-o", "out", "-t", name(f"t{n}"), "--exec", ": %IN %DATA %OUT"]
        process = world.start(*line)
        time.sleep(rng.random() * 0.02)
        process.send_signal(signal.SIGKILL)
        process.wait()
        if f"t{n}" not in tasks(world):
            again = world.tutti(*line)
            equal(again.returncode, 0, f"once more, over what is left: {again.stderr}")
        else:
            whole += 1
        row = tasks(world)[f"t{n}"]
        equal((row["jobs"], read(os.path.join(row["dir"], name("data")))), (200, "data\n"), "a whole task")
        ok(world.tutti("task", "kill", "-t", name(f"t{n}")), "kill")
        ok(world.tutti("task", "delete", "-t", name(f"t{n}"), "--remove"), "delete")
        check(not os.path.exists(row["dir"]), "its directory is gone")
    print(f"{whole} of {KILLS} had been made")


if __name__ == "__main__":
    rig.main(killed_at_random, commands_killed)
