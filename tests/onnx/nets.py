#!/usr/bin/env python3
"""Networks of every kind as ONNX models: sound to onnx.checker, and onnxruntime's heads are Tutti's."""

import glob
import os
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.environ["TT_SOURCE_DIR"], "tests"))
import pythons  # noqa: E402

pythons.run_with("venv-onnx", "numpy", "onnx", "onnxruntime", "safetensors.numpy")
import onnx  # noqa: E402
import onnxruntime  # noqa: E402
from safetensors.numpy import load_file  # noqa: E402

NETS = os.path.join(os.environ["TT_BUILD_DIR"], "tests", "onnx", "nets")
NEAR = 1e-5


def check(path):
    """The largest difference of all heads, in parts of 1 + |head|."""
    model = onnx.load(path)
    onnx.checker.check_model(model, full_check=True)
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    arrays = load_file(path[:-len("onnx")] + "safetensors")
    heads = {name for name in arrays if name.startswith("head.")}
    assert heads == {output.name for output in session.get_outputs()} and heads, path
    worst = 0
    for rows in (slice(None), slice(3, 4)):  # a batch, and one row
        found = session.run(sorted(heads), {name: value[rows] for name, value in arrays.items() if name not in heads})
        for name, ours in zip(sorted(heads), found):
            wanted = arrays[name][rows]
            assert ours.shape == wanted.shape, (path, name, ours.shape, wanted.shape)
            worst = max(worst, float((abs(ours - wanted) / (1 + abs(wanted))).max()))
    return worst


def main():
    print(f"onnx {onnx.__version__}, onnxruntime {onnxruntime.__version__}")
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([NETS, folder], check=True, timeout=100)
        paths = sorted(glob.glob(os.path.join(folder, "*.onnx")), key=lambda path: int(os.path.basename(path)[:-5]))
        if len(paths) < 20:
            sys.exit(f"only {paths}")
        differences = [check(path) for path in paths]
    print(" ".join(f"{difference:.1e}" for difference in differences))
    if max(differences) > NEAR:
        sys.exit(f"heads differ by {max(differences)}")


if __name__ == "__main__":
    main()
