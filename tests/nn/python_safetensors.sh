#!/bin/sh
# What we write, Python's safetensors reads; what it writes, we read. TT_TEST_PYTHON: a Python that has it (tools/test-venv).
set -eu
python=${TT_TEST_PYTHON:-python3}
"$python" -c 'import numpy, safetensors.numpy' 2>/dev/null || {
    echo "skipped: $python has no numpy and safetensors; tools/test-venv makes one that has"
    exit 77
}
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
ours=$TT_BUILD_DIR/tests/nn/test_nn_safetensors
"$ours" write "$dir/ours.safetensors"
"$python" - "$dir" <<'PY'
import sys
import numpy as np
from safetensors import safe_open
from safetensors.numpy import load_file, save_file

dir = sys.argv[1]
expected = {
    "actor.0.weight": np.array([[0.0, -1.5, 3.25], [1e-38, 7.0, -0.0]], np.float32),
    'raw "bytes"\n': np.arange(1, 6, dtype=np.uint8),
    "mean": np.array([3.141592653589793, -2.5]).reshape(1, 2, 1, 1),
    "step": np.array(2**63 - 1, np.int64),
    "none": np.zeros((0, 4), np.float32),
    "ints": np.array([-1, 0, 1], np.int32),
}
meta = {"policy_version": "17", "text": 'a \\ "quoted" café'}
got = load_file(f"{dir}/ours.safetensors")
assert set(got) == set(expected), got.keys()
for name, array in expected.items():
    assert got[name].dtype == array.dtype and got[name].shape == array.shape, (name, got[name])
    assert got[name].tobytes() == array.tobytes(), (name, got[name])
with safe_open(f"{dir}/ours.safetensors", "np") as f:
    assert f.metadata() == meta, f.metadata()
save_file(expected, f"{dir}/theirs.safetensors", metadata=meta)
PY
"$ours" check "$dir/theirs.safetensors"
echo "read both ways"
