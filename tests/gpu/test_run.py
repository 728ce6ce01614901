#!/usr/bin/env python3
"""tests/gpu/run on the simulated card: what passes, what fails and is reported so, a machine without a card, and what is packed for another one."""

import json
import os
import subprocess
import sys
import tempfile
import unittest

SOURCE, BUILD = os.environ["TT_SOURCE_DIR"], os.environ["TT_BUILD_DIR"]
RUN = os.path.join(SOURCE, "tests", "gpu", "run")


def run(*args, **environment):
    return subprocess.run([RUN, "--build", BUILD, *args], capture_output=True, text=True, timeout=250, check=False, env={**os.environ, **environment})


class Run(unittest.TestCase):
    def test_passes(self):
        done = run("--card", "cuda-sim", "--only", "kernels", "--turns", "1", TT_CARD_CASES="2")
        self.assertEqual(done.returncode, 0, done.stderr)
        report = json.loads(done.stdout)
        self.assertEqual(report["failed"], [])
        self.assertEqual(len(report["results"]), 17)
        self.assertRegex(report["commit"], r"^[0-9a-f]{40}\+?$")
        self.assertTrue(all(result["passed"] and "output" not in result for result in report["results"]))

    def test_fast(self):
        done = run("--card", "cuda-sim", "--only", "fast", "--turns", "1")
        self.assertEqual(done.returncode, 0, done.stderr)
        names = [result["name"] for result in json.loads(done.stdout)["results"]]
        self.assertEqual(names, ["fast.products.0", "fast.convolutions.0", *(f"fast.{precision}.{what}" for precision in ("tf32", "bf16")
                                                      for what in ("rounded", "again", "two-learners", "graphs-off"))])

    def test_recipes(self):
        done = run("--card", "cuda-sim", "--only", "recipes")
        self.assertEqual(done.returncode, 0, done.stderr)
        names = [result["name"] for result in json.loads(done.stdout)["results"]]
        self.assertEqual(names, [f"recipes.cartpole-ppo.{what}" for what in ("once", "again", "two-learners")])

    def test_fails(self):
        """A card that does not compute is found, by name and with its words."""
        done = run("--card", "cuda-sim", "--only", "graphs-off", TT_SIMT_FAIL="launch:3")
        self.assertEqual(done.returncode, 1, done.stderr)
        report = json.loads(done.stdout)
        self.assertEqual(report["failed"], ["graphs-off.nn", "graphs-off.nn-action", "graphs-off.nn-known", "graphs-off.nn-recurrent"])
        self.assertIn("unspecified launch failure", report["results"][0]["output"])

    def test_without_a_card(self):
        done = run(PATH=os.path.dirname(sys.executable) + ":/nowhere", CUDA_VISIBLE_DEVICES="")
        if "there is no nvidia-smi" not in done.stderr:
            self.skipTest("this machine has a card")
        self.assertEqual((done.returncode, done.stdout), (69, ""))

    def test_unknown(self):
        done = run("--only", "kernel")
        self.assertEqual(done.returncode, 2)
        self.assertIn("no group 'kernel'; there are: kernels", done.stderr)

    def test_pack(self):
        """The program runs from there, with the libraries that lie beside it alone, and the kernels' tests begin."""
        with tempfile.TemporaryDirectory() as folder:
            done = run("--pack", folder)
            self.assertEqual(done.returncode, 0, done.stderr)
            libraries = os.path.join(folder, "lib")
            self.assertFalse([name for name in os.listdir(libraries) if name.startswith(("libc.so", "libcuda.so", "ld-linux"))])
            self.assertIn("libmicrohttpd.so.12", os.listdir(libraries))
            wanted = subprocess.run(["ldd", os.path.join(folder, "bin", "tutti")], capture_output=True, text=True, check=True,
                                    env={**os.environ, "LD_LIBRARY_PATH": libraries}).stdout
            self.assertIn(os.path.join(libraries, "libzmq.so.5"), wanted)
            version = subprocess.run([os.path.join(folder, "bin", "tutti"), "version"], capture_output=True, text=True, check=True,
                                     env={**os.environ, "LD_LIBRARY_PATH": libraries})
            self.assertTrue(version.stdout.startswith("tutti "))
            for name in ("dense", "kernels", "heads", "recurrent", "loss", "layers", "encoder", "graph", "fused", "table", "store", "acting"):
                said = subprocess.run([os.path.join(folder, "gpu", f"gpu_{name}")], capture_output=True, text=True, check=False,
                                      env={**os.environ, "LD_LIBRARY_PATH": libraries, "CUDA_VISIBLE_DEVICES": ""})
                self.assertNotIn("error while loading", said.stderr)
                self.assertNotEqual(said.returncode, 0, f"{name} passes without a card: {said.stdout}")


if __name__ == "__main__":
    unittest.main()
