#!/usr/bin/env python3
"""tools/install-deps where nothing is installed and nobody may: what it says can be typed as it stands."""

import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

SOURCE = pathlib.Path(os.environ["TT_SOURCE_DIR"])


class InstallDeps(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.folder.chmod(0o755)
        if not shutil.which("dpkg-query"):
            self.skipTest("not Debian")
        self.packages = self.folder / "dpkg"  # a list of packages with none in it
        (self.packages / "updates").mkdir(parents=True)
        for name in ("status", "available"):
            (self.packages / name).touch()
        for name in ("sh", "dpkg-query", "id", "tr", "realpath"):  # and no sudo
            (self.folder / name).symlink_to(shutil.which(name))
        self.tool = self.folder / "install-deps"
        shutil.copy(SOURCE / "tools/install-deps", self.tool)

    def run_as_nobody(self, *arguments):
        user = {"user": 65534, "group": 65534, "extra_groups": []} if os.geteuid() == 0 else {}
        return subprocess.run([self.folder / "sh", self.tool, *arguments], check=False, timeout=60, capture_output=True, text=True,
                              env={"PATH": str(self.folder), "DPKG_ADMINDIR": str(self.packages)}, **user)

    def test_says_what_root_is_to_type(self):
        ran = self.run_as_nobody("--ci")
        self.assertEqual(ran.returncode, 77, ran)
        self.assertIn(f"As root: {self.tool} --ci\n", ran.stderr)
        self.assertRegex(ran.stderr, r"apt-get update && apt-get install --no-install-recommends .*\bgcc\b.*\blibzmq3-dev\b")

    def test_check_names_them(self):
        ran = self.run_as_nobody("--check")
        self.assertEqual(ran.returncode, 1, ran)
        self.assertRegex(ran.stdout, r"missing: .*\bgcc\b")

    def test_packages_are_of_every_release(self):
        """A name with a release's number in it is another one a release later."""
        listed = re.search(r'^packages="(.*?)"$.*^ci_packages="(.*?)"$', self.tool.read_text(encoding="utf-8"), re.M | re.S)
        numbered = [name for name in f"{listed[1]} {listed[2]}".split() if re.search(r"-\d+(-|$)", name)]
        self.assertEqual(numbered, [])


if __name__ == "__main__":
    unittest.main()
