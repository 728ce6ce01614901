#!/usr/bin/env python3
"""Python's msgpack reads the golden bytes and writes the same again (skipped where it is not installed)."""
import os
import pathlib
import sys

try:
    import msgpack
except ImportError:
    better = os.environ.get("TT_TEST_PYTHON")  # tools/test-venv
    if better and os.path.exists(better):
        os.environ.pop("TT_TEST_PYTHON")
        os.execv(better, [better, *sys.argv])
    print("skipped: no msgpack for python3; tools/test-venv makes a Python that has it")
    sys.exit(77)

folder = pathlib.Path(os.environ["TT_SOURCE_DIR"]) / "tests" / "golden" / "wire"
count = 0
for path in sorted(folder.glob("*.hex")):
    ids = set()
    for line in path.read_text().splitlines():
        name, digits = line.split()
        data = bytes.fromhex(digits)
        message = msgpack.unpackb(data, raw=False)
        assert next(iter(message)) == "m", f"{path.name} {name}: m is not first"
        ids.add(message["m"])
        assert (len(message) == 1) == (name == "zero"), f"{path.name} {name}: {message}"
        assert msgpack.packb(message, use_bin_type=True) == data, f"{path.name} {name}: other bytes"
        count += 1
    assert len(ids) == 1, path.name
print(f"{count} vectors")
assert count >= 60
