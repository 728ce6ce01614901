#!/usr/bin/env python3
"""The README's lines, typed from the README as they stand, one after the other and as fast as they return."""

import json
import os
import re
import shlex
import sys

sys.dont_write_bytecode = True
from rig import check, equal, main

SOURCE = os.environ["TT_SOURCE_DIR"]
LONG_S = 300


def s_lines(heading):
    """The commands that stand indented below a heading: (line, words)."""
    with open(os.path.join(SOURCE, "README.md"), encoding="utf-8") as file:
        part = file.read().split(f"\n## {heading}\n")[1].split("\n## ")[0]
    lines = re.findall(r"(?m)^    (tutti .*)$", part)
    return [(line, shlex.split(line, comments=True)[1:]) for line in lines]


def s_tree(world):
    """A folder that has the configs where the source tree has them."""
    os.symlink(os.path.join(SOURCE, "configs"), os.path.join(world.path, "configs"))


def test_the_tour(world):
    s_tree(world)
    lines = s_lines("A short tour")
    commands = [words[0] for _, words in lines]
    for command in ("run", "ps", "status", "scale", "logs", "stop", "resume", "eval", "rm", "config", "check", "envs"):
        check(command in commands, f"the tour has no tutti {command}")
    for line, words in lines:
        done = world.tutti(*words, deadline=LONG_S)
        equal(done.returncode, 0, f"{line}: {done.stdout[-500:]}{done.stderr[-500:]}")
    runs = [row["run"] for row in json.loads(world.tutti("ps", "-a", "--output", "json").stdout)]
    check("acrobot-ppo-1" not in runs and len(runs) == 2, f"left: {runs}")


def test_the_second_promise(world):
    """The two runs of which the README says that they end with the same weights."""
    s_tree(world)
    pair = [words for _, words in s_lines("What is different")]
    equal(len(pair), 2, "runs to compare")
    check(pair[0] != pair[1], "they are the same")
    said = [world.tutti(*words, deadline=LONG_S) for words in pair]
    equal([done.returncode for done in said], [0, 0], f"{said[0].stderr[-500:]}{said[1].stderr[-500:]}")
    equal(len({json.loads(done.stdout)["weights_sha256"] for done in said}), 1, "different weights")


main(test_the_tour, test_the_second_promise)
