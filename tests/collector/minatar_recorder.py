#!/usr/bin/env python3
"""The MinAtar package still does what was recorded of it: the recorder writes the committed bytes again."""
import filecmp
import os
import subprocess
import sys
import tempfile

SOURCE = os.environ["TT_SOURCE_DIR"]
GOLDEN = os.path.join(SOURCE, "tests", "golden", "minatar")
PYTHON = os.path.join(SOURCE, "build", "venv-minatar", "bin", "python3")

if not os.path.exists(PYTHON):
    print("skipped: no build/venv-minatar; tools/test-venv makes it")
    sys.exit(77)

names = sorted(name for name in os.listdir(GOLDEN) if name.endswith(".bin"))
assert len(names) == 5, names
with tempfile.TemporaryDirectory() as folder:
    subprocess.run([PYTHON, os.path.join(GOLDEN, "record.py"), folder], check=True, timeout=100)
    same, other, missing = filecmp.cmpfiles(GOLDEN, folder, names, shallow=False)
assert not other and not missing, f"other bytes: {other}, not written: {missing}"
print(f"ok: {len(same)} games")
