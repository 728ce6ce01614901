#!/usr/bin/env python3
"""`tutti dataset` and `tutti task` as a user calls them: testers, slots, retries, kill, delete, two engines, signals, and what is refused."""

import fcntl
import os
import re
import signal
import sqlite3
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from taskrig import check, create, equal, jobs, name, ok, read, rig, sets, tasks  # noqa: E402

QUICK = "test -e %DATA && cp %IN %OUT"
# Ends when the test says so: the file %OUT.go, or a signal.
WAITS = "echo $$ >%OUT.pid; : %DATA %IN; while [ ! -e {}/go ]; do sleep 0.02; done"
# FOLDER NAME=VALUE...: a process with that environment, which nobody can kill: it is traced, and stands still at its exit till FOLDER/release is written.
STAYS = '''
import ctypes, os, sys
folder, marks = sys.argv[1], dict(mark.split("=", 1) for mark in sys.argv[2:])
may_r, may_w = os.pipe()
did_r, did_w = os.pipe()
pid = os.fork()
if pid == 0:
    os.read(may_r, 1)
    os.execve("/bin/sleep", ["sleep", "1000"], marks)
os.close(did_w)
ptrace = ctypes.CDLL(None, use_errno=True).ptrace
ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
if ptrace(0x4206, pid, None, 0x40) != 0:  # PTRACE_SEIZE, PTRACE_O_TRACEEXIT
    sys.exit(os.strerror(ctypes.get_errno()))
os.write(may_w, b"x")
os.read(did_r, 1)  # closed by its exec
os.mkfifo(folder + "/release")
open(folder + "/release").read()
'''


def run(world, *options, code=0):
    done = world.tutti("task", "run", *options)
    equal(done.returncode, code, f"task run: {done.stdout}{done.stderr}")
    return done.stdout


def registry(world, file):
    """The folder of the registry, where that file is in it."""
    (folder,) = (where for where, _, files in os.walk(world.env["XDG_STATE_HOME"]) if file in files)
    return folder


def said(world):
    """By the engine, the first that was started."""
    return read(os.path.join(world.path, "out.1"))


def runs_now(world, task="task"):
    return [job for job in jobs(world, task) if job["status"] == "running"]


def whole(world):
    """Every job once, in the order of the files' numbers, into a directory of its own; links and environment."""
    sets(world, 13)
    create(world, "set -e; cp %IN %OUT_s0; cat %DATA >>%OUT_s0; echo $TT_TASK $TT_TASK_JOB $TT_ET $CUDA_VISIBLE_DEVICES $(( 6 * 7 )) \"$$\"; "
                  "test -z \"$TT_ROLE\"; test -d \"$VOLUME/$TT_TASK\"; pwd", "--et", "3", "--containerImage", "me/image")
    equal(tasks(world)["task"]["status"], "registered", "before it runs")
    run(world, "--cpu", "3")
    row = tasks(world)["task"]
    equal([row[key] for key in ("assigned", "testing", "running", "failed", "done", "status", "containerImage", "et")],
          [0, 0, 0, 0, 13, "done", "me/image", 3], "the end")
    for i, job in enumerate(jobs(world)):
        equal([job["config"], job["attempt"], job["exit_code"]], [f"{i}.txt", 1, 0], f"job {i}")
        equal(read(os.path.join(job["dir"], "out_s0")), f"{i}\ndata\n", f"output of job {i}")
        words = read(job["log"]).split()
        equal(words[:5], [name("task"), str(i), "3", "-1", "42"], f"log of job {i}")
        equal([words[5].isdigit(), words[6]], [True, job["dir"]], "its process and its directory")
    equal(read(os.path.join(row["dir"], name("data"))), "data\n", "a link to the data")
    equal(run(world), "", "nothing is left to do")


def testers(world):
    """Two of ten may fail; with three the rest never begins."""
    sets(world, 14)
    create(world, "n=$(cat %IN); : %DATA %OUT; test $n -gt 1", task="passes")
    create(world, "n=$(cat %IN); : %DATA %OUT; test $n -gt 2", task="breaks")
    create(world, "n=$(cat %IN); : %DATA %OUT; test $n -gt 0", "--testers", "1", task="legacy")
    create(world, "n=$(cat %IN); : %DATA %OUT; test $n -gt 2", "--bypass", task="bypass")
    run(world)
    got = {word: (row["status"], row["done"], row["failed"]) for word, row in tasks(world).items()}
    equal(got, {"passes": ("finalized", 12, 2), "breaks": ("broken", 7, 7), "legacy": ("broken", 0, 14), "bypass": ("finalized", 11, 3)}, "ends")
    equal(sum(job["attempt"] for job in jobs(world, "breaks")), 10, "of a broken task its testers ran")


def retries(world):
    """By itself as often as was said, by hand as long as there are tries; what an attempt wrote is put aside."""
    sets(world, 2)
    create(world, "echo x >%OUT_$TT_TASK_ATTEMPT; : %IN %DATA; test $TT_TASK_JOB = 0 || test $TT_TASK_ATTEMPT -ge 4", "--retries", "2", "--bypass")
    run(world)
    equal([(job["status"], job["attempt"]) for job in jobs(world)], [("done", 1), ("failed", 3)], "after retries by itself")
    ok(world.tutti("task", "retry", "-t", name("task")), "retry")
    run(world)
    job = jobs(world)[1]
    equal((job["status"], job["attempt"], os.listdir(job["dir"])), ("done", 4, ["out_4"]), "after a retry by hand")
    equal([os.listdir(f"{job['dir']}.attempt{n}") for n in (1, 2, 3)], [["out_1"], ["out_2"], ["out_3"]], "attempts put aside")
    create(world, "exit 3 # %IN %DATA %OUT", "--retries", "3", "--bypass", task="never")
    run(world)
    done = world.tutti("task", "retry", "-t", name("never"))
    equal(done.returncode, 65, f"a fourth retry: {done.stderr}")


def back_off(world):
    """Who failed is left alone for a while, and others have its slot; nothing else being left it is waited for."""
    sets(world, 2)
    create(world, "test $TT_TASK_JOB = 1 || test $TT_TASK_ATTEMPT = 3 || exit 1; : %IN %DATA %OUT", "--retries", "2", "--bypass")
    said = re.findall(r"job_configId_(\d) started", run(world, "--cpu", "1"))
    # an engine that is held up finds that its first while is over, and of two for the same slot it takes the first
    check(said in (["0", "1", "0", "0"], ["0", "0", "1", "0"]), f"what began after what: {said}")
    equal([(job["status"], job["retries"]) for job in jobs(world)], [("done", 2), ("done", 0)], "ends")


def order(world):
    """One slot: testers before everything, of both tasks; then the rest of the older one, and that of the newer. In each by number."""
    sets(world, 4)
    for task in ("older", "newer"):
        create(world, QUICK, "--testers", "2", task=task)
    said = re.findall(re.escape(name("")) + r"(\w+) job_configId_(\d) started", run(world, "--cpu", "1"))
    equal([f"{task}{job}" for task, job in said],
          ["older0", "older1", "newer0", "newer1", "older2", "older3", "newer2", "newer3"], "what began after what")


def slots(world):
    """As many at once as there are slots, more when there are more; cards one job each."""
    sets(world, 6)
    create(world, WAITS.format(world.path), "--bypass")
    engine = world.start("task", "run", "--cpu", "2")
    rig.wait_for(lambda: len(runs_now(world)) == 2, "two jobs")
    ok(world.tutti("task", "slots", "--cpu", "5"), "slots")
    rig.wait_for(lambda: len(runs_now(world)) == 5, "five jobs")
    equal(tasks(world)["task"]["assigned"], 1, "the sixth waits")
    second = world.tutti("task", "run")
    equal(second.returncode, 73, f"a second engine: {second.stderr}")
    watch = world.start("task", "list", "--watch")
    rig.wait_for(lambda: "running" in read(os.path.join(world.path, f"out.{world.count}")), "a look while they run")
    world.file("go", "")
    equal(world.finish(engine)[0], 0, "the engine's end")
    code, said, _ = world.finish(watch)
    equal((code, said.split()[-1]), (0, "done"), "it watches until all have ended")
    create(world, "echo $CUDA_VISIBLE_DEVICES; : %IN %DATA %OUT", "--gpu", "--bypass", task="cards")
    done = world.tutti("task", "run")
    equal(done.returncode, 69, f"no card: {done.stderr}")
    check("--gpu 0" in done.stderr, done.stderr)
    run(world, "--gpu", "0,7")
    equal({read(job["log"]) for job in jobs(world, "cards")}, {"0\n", "7\n"}, "cards that were used")


def heeds(job):
    """Are its command and the shell around it past their traps? The command has written its process's number after its own."""
    pid = read(os.path.join(job["dir"], "out.pid")).strip()
    shell = pid and re.search(r"PPid:\s+(\d+)", read(f"/proc/{pid}/status")).group(1)
    return shell and int(re.search(r"SigCgt:\s+(\w+)", read(f"/proc/{shell}/status")).group(1), 16) >> (signal.SIGTERM - 1) & 1


def late(world):
    """Processes that the engine, the first that was started, has killed after their grace."""
    return set(re.findall(r"process (\d+) did not end within its grace", read(os.path.join(world.path, "err.1"))))


def killed(world):
    """What runs gets SIGTERM and then SIGKILL, with all that it started; what waits never begins. And delete --force, with files."""
    sets(world, 4)
    create(world, "trap '' TERM; (setsid sh -c 'sleep 1000') & " + WAITS.format(world.path), "--bypass")
    create(world, "sleep 1000 & wait; : %IN %DATA %OUT", "--bypass", task="soft")
    engine = world.start("task", "run", "--cpu", "3", "--stay")
    rig.wait_for(lambda: sum(1 for job in runs_now(world) if heeds(job)) == 3, "three jobs")
    ok(world.tutti("task", "kill", "-t", name("task")), "kill")
    rig.wait_for(lambda: tasks(world)["task"]["status"] == "killed", "the task's end")
    equal([job["status"] for job in jobs(world)], ["killed"] * 4, "jobs")
    equal(len(late(world)), 3, "they do not heed SIGTERM, and are waited for")
    rig.wait_for(lambda: len(runs_now(world, "soft")) == 3, "the next task")
    folder = tasks(world)["soft"]["dir"]
    done = world.tutti("task", "delete", "-t", name("soft"), "--remove")
    equal(done.returncode, 73, f"delete of what runs: {done.stderr}")
    ok(world.tutti("task", "delete", "-t", name("soft"), "--remove", "--force"), "delete --force")
    check(not os.path.exists(folder), "its directory is gone")
    equal(len(os.listdir(os.path.join(world.path, "files"))), 4, "registered files stay")
    rig.wait_for(lambda: not any("sleep 1000" in line for line in world.processes().values()), "nothing that jobs started is left")
    ok(world.tutti("task", "delete", "-t", name("task")), "delete")
    check(os.path.isdir(os.path.join(world.path, name("task"))), "without --remove the directory stays")
    engine.send_signal(signal.SIGTERM)
    equal(world.finish(engine)[0], 143, "the engine's end")
    check(len(late(world)) < 6, "who heeds SIGTERM is waited for as if he did not")


def held_up(world):
    """A command that holds the registry's lock, for however long, keeps engines from beginning, and none away but a second one."""
    sets(world, 1)
    create(world, QUICK)
    equal(tasks(world)["task"]["status"], "registered", "a command has had the lock")
    with open(os.path.join(registry(world, "engine.lock"), "engine.lock"), "r+", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        first = world.start("task", "run")
        rig.wait_for(lambda: first.poll() is not None or "waiting for it" in said(world), "an engine that waits")
        second = world.tutti("task", "run")
        equal(second.returncode, 73, f"a second engine: {second.stderr}")
        equal((first.poll(), tasks(world)["task"]["status"]), (None, "registered"), "meanwhile")
    equal(world.finish(first)[0], 0, "the engine's end")
    equal(tasks(world)["task"]["status"], "done", "its task")


def killed_by_others(world):
    """A job's program, whose shell then reports 137, and the shell itself: it was not ours, and what is usual is said."""
    sets(world, 1)
    create(world, "sh -c 'kill -9 $$' || exit $? # %IN %DATA %OUT", "--retries", "0", "--bypass")
    create(world, "kill -9 $PPID $$; sleep 100 # %IN %DATA %OUT", "--retries", "0", "--bypass", task="shell")
    run(world)
    equal(jobs(world)[0]["reason"], "exit code 137 (SIGKILL, not by tutti: out of memory, mostly)", "of the program")
    words = jobs(world, "shell")[0]["reason"]
    check(words.startswith("killed by SIGKILL, not by tutti: out of memory, mostly (it had "), f"of its shell: {words}")


def interrupted(world):
    """SIGINT ends the engine and its jobs, which is not their failure: they run again."""
    sets(world, 3)
    create(world, WAITS.format(world.path), "--bypass")
    engine = world.start("task", "run", "--cpu", "2")
    rig.wait_for(lambda: len(runs_now(world)) == 2, "two jobs")
    engine.send_signal(signal.SIGINT)
    equal(world.finish(engine)[0], 130, "the engine's end")
    world.await_empty()
    equal([(job["status"], job["retries"]) for job in jobs(world)], [("assigned", 0)] * 3, "jobs after it")
    world.file("go", "")
    run(world)
    equal(tasks(world)["task"]["status"], "done", "next time")


def written_by_others(world):
    """The registry is held by another process for longer than is waited for it, and then cannot be written: jobs go on, and their ends are
    written down when that is over."""
    sets(world, 3)
    create(world, f": %DATA %IN %OUT; while [ ! -e {world.path}/go$TT_TASK_JOB ]; do sleep 0.02; done", "--bypass")
    engine = world.start("task", "run", "--cpu", "3")
    rig.wait_for(lambda: len(runs_now(world)) == 3, "three jobs")
    other = sqlite3.connect(os.path.join(registry(world, "tasks.db"), "tasks.db"), isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    world.file("go0", "")
    rig.wait_for(lambda: engine.poll() is not None or "another process has held it" in said(world), "a word about the registry")
    other.execute("ROLLBACK")
    rig.wait_for(lambda: engine.poll() is not None or "job_configId_0 done" in said(world), "the end of the first")
    other.execute("CREATE TRIGGER full BEFORE UPDATE ON jobs BEGIN SELECT RAISE(ABORT, 'no room'); END")
    world.file("go1", "")
    rig.wait_for(lambda: engine.poll() is not None or "no room" in said(world), "a word about the room")
    other.execute("DROP TRIGGER full")
    other.close()
    rig.wait_for(lambda: engine.poll() is not None or "job_configId_1 done" in said(world), "the end of the second")
    world.file("go2", "")
    equal(world.finish(engine)[0], 0, f"the engine's end: {said(world)}")
    equal([(job["status"], job["attempt"]) for job in jobs(world)], [("done", 1)] * 3, "jobs")
    equal([said(world).count(words) for words in ("nothing can be written down", "job_configId_1 done")], [2, 1], f"what was said: {said(world)}")


def stays(world):
    """Something of a job does not end though it is killed: its slot is not free, others go on, and so do commands. No engine begins beside such."""
    sets(world, 2)
    script = world.file("stays.py", STAYS)
    create(world, f": %DATA %IN %OUT; if [ $TT_TASK_JOB = 1 ]; then while [ ! -e {world.path}/go ]; do sleep 0.02; done; exit; fi; "
                  f"setsid env -i {sys.executable} {script} {world.path} TT_TASKS=$TT_TASKS TT_TASK_MARK=$TT_TASK_MARK & "
                  f"while [ ! -e {world.path}/release ]; do sleep 0.02; done", "--bypass")
    engine = world.start("task", "run", "--cpu", "2")
    rig.wait_for(lambda: engine.poll() is not None or "cpu:0 is not free" in said(world), "a word about the slot")
    world.file("go", "")
    rig.wait_for(lambda: engine.poll() is not None or "job_configId_1 done" in said(world), "the end of the other job")
    equal([job["status"] for job in jobs(world)], ["running", "done"], "jobs")
    world.file("release", "x")
    equal(world.finish(engine)[0], 0, "the engine's end")
    equal([(job["status"], job["attempt"]) for job in jobs(world)], [("done", 1)] * 2, "jobs after it")
    equal(said(world).count("cpu:0 is not free"), 1, f"what was said: {said(world)}")
    os.remove(os.path.join(world.path, "release"))
    with subprocess.Popen([sys.executable, script, world.path, f"TT_TASKS={registry(world, 'tasks.db')}"]) as left:
        try:
            rig.wait_for(lambda: left.poll() is not None or os.path.exists(os.path.join(world.path, "release")), "what an engine left")
            done = world.tutti("task", "list")
            equal((done.returncode, "do not end though they were killed" in done.stderr), (0, True), f"list: {done.stderr}")
            equal(world.tutti("task", "run").returncode, 75, "an engine")
        finally:
            left.kill()
    run(world)


def refused(world):
    """What is not right is said, and nothing is made."""
    sets(world, 2)
    for options, line, code, word in (
            ((), "x %IN %OUT", 64, "%DATA"), ((), "x %DATA %IN", 64, "%OUT"), (("--sd", "{'%REF': 'x'"), QUICK, 64, "expected"),
            (("--sd", f"{{'%REF': '{name('data')}'}}"), QUICK, 64, "%REF"), (("--sd", "{'%REF': 'user.x.y'}"), QUICK + "%REF", 66, "no data set"),
            (("-o", "../out"), QUICK, 64, "output"), (("-t", "mine"), QUICK, 64, "user."), (("-t", name("a/../b")), QUICK, 64, "letters"),
            (("-c", name("confgs")), QUICK, 66, "did you mean"), (("--testers", "0"), QUICK, 64, "testers"), (("--retries", "4"), QUICK, 64, "retries"),
            (("--cluster", "LPS"), QUICK, 64, "cluster")):
        said = create(world, line, *options, code=code)
        check(word in said, f"{options} {line}: {said}")
    create(world, QUICK, "--dry_run")
    equal((tasks(world), os.path.exists(os.path.join(world.path, name("task")))), ({}, False), "nothing was made")
    os.mkdir(os.path.join(world.path, name("taken")))
    world.file(os.path.join(name("taken"), "mine"), "")
    create(world, QUICK, task="taken", code=73)
    create(world, "cat %REF; " + QUICK, "--sd", f"{{'%REF': '{name('data')}'}}")
    create(world, QUICK, code=73)
    equal(world.tutti("dataset", "rm", name("data")).returncode, 73, "a data set in use")
    run(world)
    equal(read(jobs(world)[1]["log"]), "data\n", "secondary data")
    equal(world.tutti("task", "kill", "-t", name("task")).returncode, 65, "kill of what has ended")
    ok(world.tutti("task", "delete", "-t", name("task"), "--remove"), "delete")
    ok(world.tutti("dataset", "rm", name("data")), "dataset rm")
    equal(world.tutti("task", "jobs", "-t", name("task")).returncode, 66, "no such task")
    blank = os.path.join(world.path, "a b")
    os.mkdir(blank)
    done = world.tutti("task", "create", "-c", name("configs"), "-d", name("configs"), "-o", "out", "-t", name("x"), "--exec", QUICK, cwd=blank)
    equal(done.returncode, 65, f"a blank in the directory: {done.stderr}")


if __name__ == "__main__":
    rig.main(whole, testers, retries, back_off, order, slots, killed, held_up, killed_by_others, interrupted, written_by_others, stays, refused)
