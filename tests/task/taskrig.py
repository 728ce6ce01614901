"""taskrig - a world with data sets and tasks in it: what the tests of `tutti task` share."""

import json
import os
import pwd
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.environ["TT_SOURCE_DIR"], "tests", "e2e"))
import rig  # noqa: E402
from rig import check, equal  # noqa: E402

try:
    USER = pwd.getpwuid(os.geteuid()).pw_name
except KeyError:
    USER = f"uid{os.geteuid()}"



def name(word):
    return f"user.{USER}.{word}"


def ok(done, what):
    equal(done.returncode, 0, f"{what}: {done.stderr}")
    return done.stdout


def sets(world, count):
    """Data sets `configs`, of files 0.txt, 1.txt, ... with their number in them, and `data`."""
    folder = os.path.join(world.path, "files")
    os.mkdir(folder)
    for i in range(count):
        world.file(f"files/{i}.txt", f"{i}\n")
    world.file("data.txt", "data\n")
    ok(world.tutti("dataset", "add", "-d", name("configs"), "-p", folder), "dataset add")
    ok(world.tutti("dataset", "add", "-d", name("data"), "-p", "data.txt"), "dataset add")


def create(world, line, *options, task="task", code=0):
    done = world.tutti("task", "create", "-c", name("configs"), "-d", name("data"), "-o", "out", "-t", name(task), "--exec", line, *options)
    equal(done.returncode, code, f"task create: {done.stdout}{done.stderr}")
    return done.stdout if code == 0 else done.stderr


def tasks(world):
    """{name without its prefix: its row of `task list`}"""
    rows = json.loads(ok(world.tutti("task", "list", "--output", "json"), "task list"))
    return {row["taskname"].split(".", 2)[2]: row for row in rows}


def jobs(world, task="task"):
    return json.loads(ok(world.tutti("task", "jobs", "-t", name(task), "--output", "json"), "task jobs"))


def read(path):
    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    except FileNotFoundError:
        return ""


def check_whole(world):
    check(not world.processes(), f"processes are left: {world.processes()}")
