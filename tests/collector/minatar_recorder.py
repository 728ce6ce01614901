#!/usr/bin/env python3
"""The MinAtar package still does what was recorded of it: the recorder writes the committed bytes again."""
import filecmp
import os
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.environ["TT_SOURCE_DIR"], "tests"))
import pythons  # noqa: E402

SOURCE = os.environ["TT_SOURCE_DIR"]
GOLDEN = os.path.join(SOURCE, "tests", "golden", "minatar")
PYTHON = os.path.join(pythons.folder_of("venv-minatar"), "bin", "python3")

names = sorted(name for name in os.listdir(GOLDEN) if name.endswith(".bin"))
assert len(names) == 5, names
with tempfile.TemporaryDirectory() as folder:
    subprocess.run([PYTHON, os.path.join(GOLDEN, "record.py"), folder], check=True, timeout=100)
    same, other, missing = filecmp.cmpfiles(GOLDEN, folder, names, shallow=False)
assert not other and not missing, f"other bytes: {other}, not written: {missing}"
print(f"ok: {len(same)} games")
