#!/usr/bin/env python3
"""The page's load_actor for PyTorch, as it stands in docs/guide/formats.md, against the binary: the same actions for every
bundled recipe."""

import glob
import os
import re
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
try:
    import numpy
    import safetensors
    import torch
except ImportError as lacking:
    better = os.path.join(os.environ["TT_SOURCE_DIR"], "build", "venv-torch", "bin", "python3")
    if os.path.exists(better) and not os.environ.pop("TT_TORCH_TRIED", None):
        os.environ["TT_TORCH_TRIED"] = "1"
        os.execv(better, [better, *sys.argv])
    print(f"skipped: {lacking}; tools/install-deps --ci installs Debian's python3-torch, tools/test-venv makes build/venv-torch of it")
    sys.exit(77)

SOURCE, TUTTI = os.environ["TT_SOURCE_DIR"], os.environ["TUTTI"]
ACT = os.path.join(os.environ["TT_BUILD_DIR"], "tests", "docs", "act")
ROWS, NEAR = 2000, 1e-4


def function():
    """load_actor out of the page."""
    print(f"torch {torch.__version__}")
    with open(os.path.join(SOURCE, "docs", "guide", "formats.md"), encoding="utf-8") as file:
        code = re.search(r"```python\n(import re\n.*?)```", file.read(), re.DOTALL)[1]
    names = {}
    exec(compile(code, "formats.md", "exec"), names)
    return names["load_actor"]


def check(load_actor, config, folder):
    run_dir = os.path.join(folder, os.path.basename(config))
    subprocess.run([TUTTI, "run", config, "--run-dir", run_dir, "--quiet", "--set", "stop.env_steps=30000", "--set",
                    "stop.return_mean=null"], check=True, stdout=subprocess.DEVNULL, timeout=100,
                   env=dict(os.environ, XDG_STATE_HOME=folder))
    path = os.path.join(run_dir, "checkpoints", "final.safetensors")
    network, act = load_actor(path)
    with safetensors.safe_open(path, framework="numpy") as file:
        n = file.get_tensor("actor.0.weight").shape[1]
    observations = numpy.random.default_rng(1).normal(0, 1.5, (ROWS, n)).astype(numpy.float32)
    done = subprocess.run([ACT, path], input=observations.tobytes(), capture_output=True, check=True, timeout=60)
    ours = numpy.asarray(act(observations))
    discrete = ours.ndim == 1
    wanted = numpy.frombuffer(done.stdout, numpy.int32 if discrete else numpy.float32).reshape(ours.shape)
    same = (ours == wanted).mean() if discrete else (abs(ours - wanted) <= NEAR * (1 + abs(wanted))).mean()
    print(f"{os.path.basename(config)}: {n} in, {'discrete' if discrete else 'continuous'}, {100 * same:g} % the same")
    if same < (0.999 if discrete else 1) or len(set(wanted.ravel().tolist())) < 2:  # a tie may fall either way
        sys.exit(f"{config}: other actions: {ours[:5]} {wanted[:5]}")


def main():
    load_actor = function()
    configs = sorted(glob.glob(os.path.join(SOURCE, "configs", "*.yaml")))
    if len(configs) < 5:
        sys.exit(f"only {configs}")
    with tempfile.TemporaryDirectory() as folder:
        for config in configs:
            check(load_actor, config, folder)


if __name__ == "__main__":
    main()
