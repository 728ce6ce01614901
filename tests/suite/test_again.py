#!/usr/bin/env python3
"""again: a test that fails once is named as flaky and fails nothing; one that fails twice fails the run."""

import os
import pathlib
import subprocess
import tempfile
import unittest

AGAIN = pathlib.Path(__file__).parent / "again"


class Again(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.flaky = self.folder / "flaky"
        self.tests = []

    def add(self, name, shell):
        self.tests.append(f'add_test([=[{name}]=] "/bin/sh" "-c" "{shell}")\n')

    def run_again(self, *arguments):
        (self.folder / "CTestTestfile.cmake").write_text("".join(self.tests), encoding="utf-8")
        env = {**os.environ, "TT_FLAKY": str(self.flaky)}
        return subprocess.run([AGAIN, "--test-dir", self.folder, *arguments], env=env, check=False, timeout=60,
                              capture_output=True, text=True)

    def once(self, name):
        """A command that fails when it runs first and passes from then on."""
        return f"test -e {self.folder}/{name} || {{ touch {self.folder}/{name}; exit 1; }}"

    def named_flaky(self):
        return self.flaky.read_text(encoding="utf-8").split() if self.flaky.exists() else []

    def test_all_pass(self):
        self.add("a.b", "true")
        ran = self.run_again()
        self.assertEqual(ran.returncode, 0, ran.stdout)
        self.assertNotIn("FLAKY", ran.stdout)
        self.assertIn("slowest 1:", ran.stdout)
        self.assertEqual(self.named_flaky(), [])

    def test_who_took_the_processors(self):
        """Of what a test starts all that it waits for counts."""
        self.add("a.idle", "true")
        self.add("a.works", "sh -c 'i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done'; true".replace("$", "\\$"))
        seconds = {}
        while "a.works" not in seconds:  # nobody looked while it ran
            ran = self.run_again("-j", "2")
            self.assertEqual(ran.returncode, 0, ran.stdout)
            took = ran.stdout.partition("of a core took:\n")[2]
            seconds = {name: float(text) for text, _, name in map(str.split, took.splitlines())}
        self.assertGreater(seconds["a.works"], 2 * seconds.get("a.idle", 0.0))
        self.assertGreater(seconds["a.works"], 0.1)
        kept = dict(line.split()[::-1] for line in (self.folder / "Testing" / "cores.txt").read_text(encoding="utf-8").splitlines())
        self.assertEqual(float(kept["a.works"]), seconds["a.works"])

    def test_fails_once(self):
        self.add("a.once", self.once("mark"))
        self.add("a.onceandmore", "true")
        ran = self.run_again()
        self.assertEqual(ran.returncode, 0, ran.stdout)
        self.assertEqual(ran.stdout.splitlines()[-1], "FLAKY: a.once")
        self.assertEqual(self.named_flaky(), ["a.once"])

    def test_fails_twice(self):
        self.add("a.never", "false")
        self.add("a.once", self.once("mark"))
        ran = self.run_again()
        self.assertEqual(ran.returncode, 1, ran.stdout)
        self.assertIn("FAILED twice: a.never\n", ran.stdout)
        self.assertEqual(self.named_flaky(), ["a.once"])

    def test_not_built_is_no_flaw_of_another(self):
        self.tests.append('add_test(a.missing "/nonexistent/program")\n')
        self.add("a.once", self.once("mark"))
        ran = self.run_again()
        self.assertEqual(ran.returncode, 1, ran.stdout)
        self.assertIn("FAILED twice: a.missing\n", ran.stdout)

    def test_skipped(self):
        self.add("a.skipped", "exit 77")
        self.tests.append("set_tests_properties(a.skipped PROPERTIES SKIP_RETURN_CODE 77)\n")
        self.add("a.once", self.once("mark"))
        ran = self.run_again()
        self.assertEqual(ran.returncode, 0, ran.stdout)
        self.assertEqual(self.named_flaky(), ["a.once"])

    def test_no_tests_are_an_error_where_ctest_says_so(self):
        ran = self.run_again("--no-tests=error")
        self.assertNotEqual(ran.returncode, 0, ran.stdout)


if __name__ == "__main__":
    unittest.main()
