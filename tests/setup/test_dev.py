#!/usr/bin/env python3
"""./dev uninstall takes away what ./dev install put there, and nothing else."""

import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

SOURCE = pathlib.Path(os.environ["TT_SOURCE_DIR"])
BUILD = pathlib.Path(os.environ["TT_BUILD_DIR"])


class Uninstall(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name).resolve()
        (self.folder / "tree/build").mkdir(parents=True)
        shutil.copy(SOURCE / "dev", self.folder / "tree/dev")
        (self.folder / "tree/build/release").symlink_to(BUILD)

    def install(self, prefix, root=""):
        """As ./dev install does it after the build."""
        subprocess.run(["cmake", "--install", BUILD, "--prefix", prefix], check=True, timeout=120, stdout=subprocess.DEVNULL,
                       env={**os.environ, "DESTDIR": str(root)})

    def uninstall(self, **env):
        return subprocess.run([self.folder / "tree/dev", "uninstall"], check=False, timeout=60, capture_output=True, text=True,
                              env={"PATH": os.environ["PATH"], **{name: str(value) for name, value in env.items()}})

    def files(self, place):
        return sorted(str(path.relative_to(place)) for path in place.rglob("*"))

    def test_leaves_what_was_there(self):
        prefix = self.folder / "local"
        (prefix / "share/man/man1").mkdir(parents=True)
        (prefix / "share/man/man1/another.1").touch()
        (prefix / "share/tutti/configs").mkdir(parents=True)
        (prefix / "share/tutti/configs/mine.yaml").touch()
        before = self.files(prefix)
        self.install(prefix)
        self.assertIn("bin/tutti", self.files(prefix))
        ran = self.uninstall(PREFIX=prefix)
        self.assertEqual(ran.returncode, 0, ran.stderr)
        made = ("bin", "include", "lib", "share/bash-completion", "share/bash-completion/completions")
        self.assertEqual([name for name in self.files(prefix) if name not in made], before)
        again = self.uninstall(PREFIX=prefix)
        self.assertEqual(again.returncode, 69, again)
        self.assertIn(f"nothing of Tutti in {prefix}", again.stderr)

    def test_with_a_root_of_its_own(self):
        root = self.folder / "root"
        self.install("/usr/local", root)
        ran = self.uninstall(DESTDIR=root)
        self.assertEqual(ran.returncode, 0, ran.stderr)
        self.assertEqual([path for path in root.rglob("*") if not path.is_dir()], [])
        self.assertFalse((root / "usr/local/share/tutti").exists())
        self.assertFalse((root / "usr/local/include/tutti").exists())


if __name__ == "__main__":
    unittest.main()
