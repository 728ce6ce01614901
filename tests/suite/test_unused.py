#!/usr/bin/env python3
"""Every function of the product is used by the product: none is there for tests alone, and none that only its own file
needs is shown to others. Asked are the object files of this build; what a file does with its own functions says its text."""

import collections
import json
import os
import pathlib
import re
import subprocess
import unittest

SOURCE = pathlib.Path(os.environ["TT_SOURCE_DIR"])
BUILD = pathlib.Path(os.environ["TT_BUILD_DIR"])
FOLDERS = ("aggregator", "cli", "collector", "common", "controller", "coordinator", "elasticdl", "k8s", "learner", "local", "task")
# What nothing in the product calls, and why it is there all the same.
ALLOWED = {
    "accept4": "libzmq calls it, in place of the C library's",
    "environment_get": "one variable of a container, for the tests that make some",
    "edl_templates_parse": "the same of edl_templates_read",
    "main": "",
    "model_check": "tests/cli/test_agree.c asks it whether `tutti check` and a learner are of one mind",
    "peer_cell": "the table of states, for the test that walks all of its cells",
    "reduce_dropped": "a count that tests of lost and late messages look at",
    "replay_row": "one row of a unit as it lies, which tests hold the gathering of many against",
    "rollout_played": "how far a batch is, for tests that stop in the middle of it",
    "tt_clock_fake": "time that tests turn",
    "tt_clock_turn": "time that tests turn",
    "tt_msg_infos": "the table of messages, walked by the tests and by what writes docs/wire.md",
    "tt_norm_count": "a number in words, compared with other libraries'",
    "tt_setup_env": "with the one below: a whole run in one process, without a command line",
    "tt_setup_new": "",
    "tt_st_arrays": "what a file holds, whatever it is: fuzzing, and that nothing more is written than is said",
    "tt_synonyms": "the table, for the test that looks each of its keys up",
    "tutti_cuda_backend": "a library's door: the program asks for it by name",
    "tutti_cuda_error": "the same",
    "usage_waits": "what tests of shares add up",
}


def objects():
    """(source file, object file) of all that is built."""
    for entry in json.loads((BUILD / "compile_commands.json").read_text("utf-8")):
        made = re.search(r" -o (\S+)", entry["command"])
        yield pathlib.Path(entry["file"]).relative_to(SOURCE), BUILD / made.group(1)


def symbols(paths):
    """Of each object file: (functions and data that it shows, those that it wants)."""
    found = {path: (set(), set()) for path in paths}
    listed = subprocess.run(["nm", "-P", "-A", *paths], capture_output=True, text=True, check=True, timeout=100).stdout
    for line in listed.splitlines():
        path, name, kind, *_ = line.split()
        if kind in "TDBRCVW":
            found[path.removesuffix(":")][0].add(name)
        elif kind in "Uvw":
            found[path.removesuffix(":")][1].add(name)
    return found


def times(text, name):
    """How often the code names it."""
    return len(re.findall(rf"\b{name}\b", re.sub(r"/\*.*?\*/|//[^\n]*", "", text, flags=re.S)))


class Unused(unittest.TestCase):
    def test_functions(self):
        home, product, tests = {}, collections.Counter(), set()
        made = {str(path): source for source, path in objects()}
        for path, (shown, wanted) in symbols(made).items():
            source = made[path]
            if source.parts[0] not in FOLDERS:
                tests |= wanted
                continue
            product.update(wanted)
            home.update(dict.fromkeys(shown, source))
        self.assertGreater(len(home), 500, "this is not the build of the product")
        alone = [name for name in sorted(home) if not product[name] and "." not in name]
        found = []
        for name in alone:
            own = times((SOURCE / home[name]).read_text("utf-8"), name) > 1
            if not own and name not in ALLOWED:
                found.append(f"{home[name]}: {name} is used {'by tests only' if name in tests else 'nowhere'}: delete it")
            elif own and name not in tests and name not in ALLOWED:
                found.append(f"{home[name]}: {name} is used here only: make it static")
        found += [f"ALLOWED: {name} is used by now, or gone" for name in sorted(ALLOWED.keys() - set(alone))]
        if found:
            self.fail("\n".join(["", *found]))

    def test_scripts(self):
        """One that ctest is told of and may not be executed runs nowhere: git keeps that mark, and a copy may lose it."""
        said = subprocess.run(["ctest", "--test-dir", BUILD, "--show-only=json-v1"], capture_output=True, text=True, check=True).stdout
        scripts = {test["command"][0] for test in json.loads(said)["tests"] if test.get("command", [""])[0].startswith(f"{SOURCE}/")}
        own = {path for path in scripts if not path.startswith(f"{BUILD}/")}
        self.assertGreater(len(own), 50)
        self.assertEqual(sorted(path for path in own if not os.access(path, os.X_OK)), [], "scripts that may not be executed: chmod +x")

    def test_tests(self):
        """A test in a script that is in no list of main()'s runs nowhere."""
        found = []
        for path in sorted((SOURCE / "tests").rglob("*.py")):
            text = path.read_text("utf-8")
            if "unittest" not in text:
                found += [f"{path.relative_to(SOURCE)}: {name}" for name in re.findall(r"(?m)^def (test_\w+)", text)
                          if len(re.findall(rf"\b{name}\b", text)) < 2]
        self.assertEqual(found, [])


if __name__ == "__main__":
    unittest.main()
