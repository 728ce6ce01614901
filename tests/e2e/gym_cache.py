#!/usr/bin/env python3
"""What is found out about an environment of Gymnasium's is asked for once: the second `tutti check` starts no Python, unless a file that it was
read from has changed, or what was kept is not as it was left. Needs build/venv-gym."""

import glob
import json
import os
import sys

sys.dont_write_bytecode = True
from rig import SOURCE, check, equal, main

sys.path.insert(0, os.path.join(SOURCE, "tests"))
import pythons  # noqa: E402

PYTHON = os.path.join(pythons.folder_of("venv-gym"), "bin", "python3")
LONG_AGO, FAR_AHEAD = 1_000_000_000, 9_000_000_000
BOTH = 2  # the one who is asked and plays, the other one who loads
MODULE = """
import os
import gymnasium
import numpy as np

class Env(gymnasium.Env):
    def __init__(self):
        with open(os.path.join(os.path.dirname(__file__), "size.txt"), encoding="utf-8") as file:
            self.size = int(file.read())
        self.observation_space = gymnasium.spaces.Box(-1, 1, (self.size,), np.float32)
        self.action_space = gymnasium.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return self.np_random.random(self.size, np.float32), {}

    def step(self, action):
        return self.np_random.random(self.size, np.float32), float(action), False, False, {}

gymnasium.register("TTKept-v0", Env, max_episode_steps=20)
"""
JOB = """
env: {id: 'gym:tt_kept:TTKept-v0', path: modules}
num_envs: 4
num_steps: 16
algorithm: {name: ppo, epochs: 1, minibatch_size: 64}
stop: {env_steps: 256}
"""


def old(path):
    os.utime(path, (LONG_AGO, LONG_AGO))


class Kept:
    """A module of the user's, an interpreter that counts how often it is started, and a cache of our own."""

    def __init__(self, world):
        self.world, self.cache = world, os.path.join(world.path, "cache")
        self.folder = os.path.join(self.cache, "tutti", "gym")
        self.log = world.file("started", "")
        self.python = world.file("python3", f'#!/bin/sh\necho >> {self.log}\nexec {PYTHON} "$@"\n')
        os.chmod(self.python, 0o755)
        os.mkdir(os.path.join(world.path, "modules"))
        self.size = world.file("modules/size.txt", "3")
        self.module = world.file("modules/tt_kept.py", MODULE)
        old(self.module)
        self.config = world.config(JOB)
        self.env = {"TT_PYTHON": self.python, "XDG_CACHE_HOME": self.cache, "PYTHONDONTWRITEBYTECODE": "1"}

    def check(self, what, starts, env=None):
        """The answer, and how many processes that took."""
        before = os.path.getsize(self.log)
        done = self.world.tutti("check", self.config, "--output", "json", env={**self.env, **(env or {})})
        equal(done.returncode, 0, f"{what}: {done.stderr}")
        equal(os.path.getsize(self.log) - before, starts, f"processes, {what}")
        config = json.loads(done.stdout)["config"]
        return [config[key]["value"] for key in ("space.obs", "space.action", "space.env_saves")]

    def file(self):
        (path,) = glob.glob(os.path.join(self.folder, "*.json"))
        return path


def test_asked_once(world):
    kept = Kept(world)
    first = kept.check("the first time", BOTH)
    equal(kept.check("the second time", 0), first, "the same answer")
    equal(first[0], "float32[3]", "the space")
    check(first[2].startswith("copy "), f"saved by {first[2]}")
    equal([os.stat(path).st_mode & 0o777 for path in (kept.folder, kept.file())], [0o700, 0o600], "who may read it")
    done = world.tutti("envs", "gym:CartPole-v1", env=kept.env)
    equal(done.returncode, 0, f"envs: {done.stderr}")
    kept.check("another one has been asked for", 0)
    equal(kept.check("another environment", BOTH, {"PYTHONHASHSEED": "7"}), first, "the answer")


def test_what_has_changed(world):
    """A module of the user's; and one that is too new to tell a second change from the first."""
    kept = Kept(world)
    kept.check("the first time", BOTH)
    world.file("modules/tt_kept.py", MODULE.replace("int(file.read())", "int(file.read()) + 1"))
    os.utime(kept.module, (FAR_AHEAD, FAR_AHEAD))
    equal(kept.check("a module has changed", BOTH)[0], "float32[4]", "its space")
    kept.check("it is too new", BOTH)
    old(kept.module)
    kept.check("it is old", BOTH)
    kept.check("and kept", 0)
    old(kept.python)
    kept.check("another interpreter", BOTH)


def test_what_is_imported_late(world):
    """In the first reset, after it was described: whether a state can be saved hangs on that, too."""
    kept = Kept(world)
    world.file("modules/tt_kept.py", MODULE.replace("super().reset(seed=seed)", "super().reset(seed=seed)\n        import tt_kept_late as late\n"
                                                    "        self.beside = late.beside()"))
    old(kept.module)
    late = world.file("modules/tt_kept_late.py", "def beside():\n    return 1\n")
    old(late)
    check(kept.check("the first time", BOTH)[2].startswith("copy "), "it cannot be copied")
    kept.check("it is kept", 0)
    world.file("modules/tt_kept_late.py", "def beside():\n    return (i for i in ())  # nobody can copy that\n")
    os.utime(late, (LONG_AGO + 1, LONG_AGO + 1))
    check(kept.check("what is imported late has changed", BOTH)[2].startswith("replay "), "saved as before")
    kept.check("that is kept", 0)


def test_what_is_damaged(world):
    """As if there were nothing, and it is written anew."""
    kept = Kept(world)
    first = kept.check("the first time", BOTH)
    path = kept.file()
    with open(path, "rb") as file:
        good = file.read()
    at = good.index(b"float32")
    for what, data in (("empty", b""), ("cut off", good[:-7]), ("one byte", good[:at] + b"F" + good[at + 1:]), ("no hash", good[33:]),
                       ("no JSON", b"0" * 32 + b"\n{"), ("a zero", good[:99] + b"\0" + good[99:]), ("large", good + b" " * (1 << 20))):
        with open(path, "wb") as file:
            file.write(data)
        equal(kept.check(what, BOTH), first, f"the answer, {what}")
        equal(kept.check(f"after {what}", 0), first, f"the answer after {what}")


def test_what_is_not_ours(world):
    kept = Kept(world)
    first = kept.check("the first time", BOTH)
    path = kept.file()
    os.chmod(path, 0o622)
    equal(kept.check("others may write the file", BOTH), first, "the answer")
    os.rename(path, path + ".aside")
    os.symlink(path + ".aside", path)
    kept.check("a link", BOTH)
    check(not os.path.islink(path), "the link was written to")
    os.chmod(kept.folder, 0o777)
    for _ in range(2):
        kept.check("others may write the folder", BOTH)
    for _ in range(2):
        kept.check("no folder can be made", BOTH, {"XDG_CACHE_HOME": kept.log})
    for _ in range(2):
        kept.check("nowhere", BOTH, {"XDG_CACHE_HOME": "", "HOME": ""})


def test_so_many_and_no_more(world):
    kept = Kept(world)
    os.makedirs(kept.folder, 0o700)
    for i in range(64):
        old(world.file(os.path.join(kept.folder, f"{i:032x}.json"), "of before"))
    kept.check("many are there", BOTH)
    equal(len(glob.glob(os.path.join(kept.folder, "*.json"))), 64, "files")
    kept.check("it is one of them", 0)


def test_what_no_file_of_python_says(world):
    """Spaces that hang on a file of data: the workers find that out, and what was kept is forgotten."""
    kept = Kept(world)
    kept.check("the first time", BOTH)
    world.file("modules/size.txt", "4")
    for name, code, words in (("stale", 70, "which is forgotten now: start again"), ("fresh", 0, "")):
        done = world.tutti("run", kept.config, "--run-dir", os.path.join(world.path, name), env=kept.env)
        equal(done.returncode, code, f"{name}: {done.stderr[-2000:]}")
        check(words in done.stdout + done.stderr, f"{name}: {done.stderr[-2000:]}")
    equal(kept.check("after the run", 0)[0], "float32[4]", "its space")
    world.await_empty()


main(test_asked_once, test_what_has_changed, test_what_is_imported_late, test_what_is_damaged, test_what_is_not_ours, test_so_many_and_no_more,
     test_what_no_file_of_python_says)
