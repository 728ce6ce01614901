#!/usr/bin/env python3
"""CMake configures the tree against what a distribution ships, also where that is not quite right."""

import os
import pathlib
import re
import subprocess
import tempfile
import unittest

SOURCE = pathlib.Path(os.environ["TT_SOURCE_DIR"])


class Configure(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def pkg_config(self, *arguments):
        return subprocess.run(["pkg-config", *arguments], check=False, timeout=60, capture_output=True, text=True).stdout.strip()

    def test_a_header_folder_that_begins_nowhere(self):
        """Debian 13's msgpack-c.pc has "includedir=include"; its header is where a compiler looks anyway."""
        name = "msgpack-c" if self.pkg_config("--modversion", "msgpack-c") else "msgpack"
        written = pathlib.Path(self.pkg_config("--variable=pcfiledir", name), f"{name}.pc").read_text(encoding="utf-8")
        there = self.pkg_config("--variable=libdir", name)
        written = re.sub(r"^libdir=.*$", f"libdir={there}", written, flags=re.M)
        (self.folder / "msgpack-c.pc").write_text(re.sub(r"^includedir=.*$", "includedir=include", written, flags=re.M),
                                                  encoding="utf-8")
        ran = subprocess.run(["cmake", "-S", SOURCE, "-B", self.folder / "build", "-G", "Ninja", "-DBUILD_TESTING=OFF"], check=False,
                             timeout=300, capture_output=True, text=True,
                             env={**os.environ, "PKG_CONFIG_PATH": str(self.folder)})
        self.assertEqual(ran.returncode, 0, ran.stderr[-2000:])


if __name__ == "__main__":
    unittest.main()
