#!/usr/bin/env python3
"""The page's load_actor for PyTorch, as it stands in docs/guide/formats.md, against the binary: the same actions for every
bundled recipe. Where torch is not installed its dozen functions that the page uses are done by numpy, below."""

import glob
import os
import re
import subprocess
import sys
import tempfile
import types

sys.dont_write_bytecode = True
try:
    import numpy
    import safetensors
except ImportError:
    better = os.environ.pop("TT_TEST_PYTHON", None)  # tools/test-venv
    if better and os.path.exists(better):
        os.execv(better, [better, *sys.argv])
    print("skipped: no numpy and safetensors for python3; tools/test-venv makes a Python that has them")
    sys.exit(77)

SOURCE, TUTTI = os.environ["TT_SOURCE_DIR"], os.environ["TUTTI"]
ACT = os.path.join(os.environ["TT_BUILD_DIR"], "tests", "docs", "act")
ROWS, NEAR = 2000, 1e-4


class Linear:
    def __init__(self, columns, rows):
        self.weight, self.bias = numpy.zeros((rows, columns), numpy.float32), numpy.zeros(rows, numpy.float32)

    def __call__(self, x):
        return x @ self.weight.T + self.bias


class Sequential:
    def __init__(self, *layers):
        self.layers = layers

    def load_state_dict(self, state):
        wanted = {f"{i}.{name}" for i, layer in enumerate(self.layers) if isinstance(layer, Linear) for name in ("weight", "bias")}
        if wanted != set(state):
            raise ValueError(f"tensors {sorted(state)}, wanted {sorted(wanted)}")
        for key, value in state.items():
            number, name = key.split(".")
            if getattr(self.layers[int(number)], name).shape != value.shape:
                raise ValueError(f"{key}: shape {value.shape}")
            setattr(self.layers[int(number)], name, value)

    def __call__(self, x):
        for layer in self.layers:
            x = layer(x)
        return x


class NoGrad:
    def __enter__(self):
        return self

    def __exit__(self, *_):
        return False


def stand_in():
    """A module that does what the page asks of torch, and of safetensors' reading for it."""
    torch = types.ModuleType("torch")
    torch.nn = types.SimpleNamespace(Linear=Linear, Sequential=Sequential, Tanh=lambda: numpy.tanh,
                                     ReLU=lambda: lambda x: numpy.maximum(x, 0))
    torch.float32, torch.float64 = numpy.float32, numpy.float64
    torch.sqrt, torch.clip, torch.no_grad = numpy.sqrt, numpy.clip, NoGrad
    torch.as_tensor = lambda x, dtype: numpy.asarray(x, dtype)
    real = safetensors.safe_open
    safetensors.safe_open = lambda path, framework: real(path, framework="numpy")
    sys.modules["torch"] = torch


def function():
    """load_actor out of the page."""
    try:
        import torch
        print(f"torch {torch.__version__}")
    except ImportError:
        print("numpy in torch's place")
        stand_in()
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
