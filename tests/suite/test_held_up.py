#!/usr/bin/env python3
"""held_up: tests are run till the time is over with their threads held up; what fails is named, and what it said is kept."""

import os
import pathlib
import re
import subprocess
import tempfile
import unittest

HELD_UP = pathlib.Path(__file__).parent / "held_up"
WORKS = "i=0; while [ \\$i -lt 100000 ]; do i=\\$((i+1)); done; true"


class HeldUp(unittest.TestCase):
    def run_held_up(self, tests, *arguments):
        with tempfile.TemporaryDirectory() as folder:
            text = "".join(f'add_test([=[{name}]=] "/bin/sh" "-c" "{shell}")\n' for name, shell in tests.items())
            (pathlib.Path(folder) / "CTestTestfile.cmake").write_text(text, encoding="utf-8")
            done = subprocess.run([HELD_UP, "--test-dir", folder, *arguments], check=False, timeout=60, capture_output=True, text=True,
                                  env={**os.environ, "TMPDIR": folder})
            kept = {path.name: path.read_text(encoding="utf-8") for path in pathlib.Path(folder).glob("Testing/held_up/*")}
            return done, kept

    def test_all_pass(self):
        runs = held = 0
        while not runs or not held:  # nobody came to it in so short a time
            done, kept = self.run_held_up({"a.works": WORKS, "b.works": WORKS, "c.fails": "false"}, "--seconds", "1", "-R", "works")
            self.assertEqual((done.returncode, kept), (0, {}), done.stdout + done.stderr)
            runs, count, held = map(int, re.search(r"(\d+) runs of (\d+) tests, threads held up (\d+) times", done.stdout).groups())
            self.assertEqual(count, 2)

    def test_fails(self):
        done, kept = self.run_held_up({"a.works": WORKS, "b.fails": "echo too soon; false"}, "--seconds", "5", "--jobs", "1", "-R", "fails")
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        self.assertRegex(done.stdout, r"\n  \d+ x b\.fails\n$")
        self.assertIn("too soon", kept["b.fails.1"])

    def test_none(self):
        done, _ = self.run_held_up({"a.works": WORKS}, "-R", "nothing")
        self.assertEqual((done.returncode, done.stderr), (1, "held_up: no such tests\n"))


if __name__ == "__main__":
    unittest.main()
