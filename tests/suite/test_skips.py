#!/usr/bin/env python3
"""cluster.main: a script in which one test found nothing to run with counts as skipped, which .ci/run does not take; a failure wins."""

import os
import subprocess
import sys
import tempfile
import unittest

K8S = os.path.join(os.environ["TT_SOURCE_DIR"], "tests", "k8s")
TESTS = """
import sys
sys.path.insert(0, sys.argv.pop(1))
import cluster
def test_good(): pass
def test_lacking(): raise cluster.Skipped("no such thing here")
def test_bad(): cluster.check(False, "it is bad")
cluster.main(test_good, test_lacking, test_bad)
"""


class Skips(unittest.TestCase):
    def ended(self, *names):
        with tempfile.TemporaryDirectory() as folder:
            script = os.path.join(folder, "script.py")
            with open(script, "w", encoding="utf-8") as file:
                file.write(TESTS)
            ran = subprocess.run([sys.executable, script, K8S, *names], check=False, timeout=60, capture_output=True, text=True)
        return ran.returncode, ran.stdout

    def test_all_ran(self):
        self.assertEqual(self.ended("test_good")[0], 0)

    def test_one_did_not(self):
        code, said = self.ended("test_good", "test_lacking")
        self.assertEqual(code, 77, said)
        self.assertIn("ok      test_good", said)
        self.assertIn("SKIP    test_lacking: no such thing here", said)

    def test_one_failed(self):
        self.assertEqual(self.ended("test_good", "test_lacking", "test_bad")[0], 1)


if __name__ == "__main__":
    unittest.main()
