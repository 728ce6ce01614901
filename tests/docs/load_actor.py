#!/usr/bin/env python3
"""The page's load_actor for PyTorch, as it stands in docs/guide/formats.md, against the binary: the same actions for every
bundled recipe, and for every kind of space."""

import glob
import math
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
ZOO = os.path.join(os.environ["TT_BUILD_DIR"], "tests", "collector", "plugins", "zoo.so")
ROWS, NEAR = 2000, 1e-4
STEPS = 3000 if os.environ.get("TT_SANITIZE") else 30000


def functions():
    """load_actor and leaves out of the page."""
    print(f"torch {torch.__version__}")
    with open(os.path.join(SOURCE, "docs", "guide", "formats.md"), encoding="utf-8") as file:
        code = re.search(r"```python\n(import math\n.*?)```", file.read(), re.DOTALL)[1]
    names = {}
    exec(compile(code, "formats.md", "exec"), names)
    return names["load_actor"], names["leaves"]


def observed(path, leaves):
    """Observations such as an env may give: what is stored as bytes is bytes."""
    rng = numpy.random.default_rng(1)
    with safetensors.safe_open(path, framework="pt") as file:
        words = re.search(r"(?m)^space:\n(?:  .*\n)*?  obs: (.*)$", file.metadata()["config"])[1]
    rows = []
    for _, kind, shape, choices, _ in leaves(words):
        size = (ROWS, sum(choices) if choices else math.prod(shape))
        numbers = kind in ("uint8", "bool", "multi_binary")
        rows.append(rng.integers(256 if kind == "uint8" else 2, size=size) if numbers else rng.normal(0, 1.5, size))
    return numpy.concatenate(rows, 1).astype(numpy.float32)


def trained(config, folder):
    """The last checkpoint of a short run."""
    run_dir = os.path.join(folder, os.path.basename(config))
    # with a replay a step costs many times as much
    dqn = ["stop.env_steps=1500", "algorithm.gradient_steps=1", "algorithm.learning_starts=1000"]
    short = dqn if "dqn" in config else [f"stop.env_steps={STEPS}"]
    sets = [word for assignment in [*short, "stop.return_mean=null"] for word in ("--set", assignment)]
    subprocess.run([TUTTI, "run", config, "--run-dir", run_dir, "--quiet", *sets], check=True,
                   stdout=subprocess.DEVNULL, timeout=100, env=dict(os.environ, XDG_STATE_HOME=folder))
    return os.path.join(run_dir, "checkpoints", "final.safetensors")


def compare(what, parts, words):
    """Ours, part by part, with the numbers that the binary wrote."""
    at = 0
    for part in parts if isinstance(parts, list) else [parts]:
        ours = numpy.asarray(part).reshape(ROWS, -1)
        discrete = ours.dtype.kind == "i"
        wanted = words[:, at:at + ours.shape[1]]
        wanted = wanted if discrete else numpy.ascontiguousarray(wanted).view(numpy.float32)
        at += ours.shape[1]
        same = (ours == wanted).mean() if discrete else (abs(ours - wanted) <= NEAR * (1 + abs(wanted))).mean()
        print(f"{what}: {'discrete' if discrete else 'continuous'}, {100 * same:g} % the same")
        if same < (0.999 if discrete else 1) or len(set(wanted.ravel().tolist())) < 2:  # a tie may fall either way
            sys.exit(f"{what}: other actions: {ours[:5]} {wanted[:5]}")
    if at != words.shape[1]:
        sys.exit(f"{what}: {at} numbers an action, {words.shape[1]} wanted")


def check(page, config, folder, choices=()):
    """choices: of each discrete element of the action, in order, when masks are to be tried too."""
    load_actor, leaves = page
    path, rng = trained(config, folder), numpy.random.default_rng(2)
    _, act = load_actor(path)
    observations = observed(path, leaves)
    name = f"{os.path.basename(config)}, {observations.shape[1]} in"

    def ours_and(*masks):
        done = subprocess.run([ACT, path, *masks], input=observations.tobytes(), capture_output=True, check=True, timeout=60)
        return numpy.frombuffer(done.stdout, numpy.int32).reshape(ROWS, -1)

    compare(name, act(observations), ours_and())
    if choices:
        mask = numpy.concatenate([numpy.eye(n, dtype=numpy.uint8)[rng.integers(n, size=ROWS)] for n in choices], 1)
        mask |= rng.integers(2, size=mask.shape, dtype=numpy.uint8)
        mask.tofile(os.path.join(folder, "mask"))
        compare(f"{name}, masked", act(observations, mask), ours_and(os.path.join(folder, "mask")))


def main():
    page = functions()
    configs = sorted(glob.glob(os.path.join(SOURCE, "configs", "*.yaml")))
    if len(configs) < 5:
        sys.exit(f"only {configs}")
    with tempfile.TemporaryDirectory() as folder:
        zoo = os.path.join(folder, "own", "zoo.yaml")
        os.mkdir(os.path.dirname(zoo))
        with open(zoo, "w", encoding="utf-8") as file:
            file.write(f"env: {ZOO}\nnormalize: {{obs: true}}\n")
        shared = os.path.join(folder, "own", "shared.yaml")
        with open(shared, "w", encoding="utf-8") as file:
            file.write("env: Pendulum-v1\nnetwork: {shared: true, activation: relu}\n")
        dueling = []
        for hidden in ("[32, 16]", "[16]"):  # with a trunk, and without
            dueling.append(os.path.join(folder, "own", f"dqn-dueling-{len(dueling)}.yaml"))
            with open(dueling[-1], "w", encoding="utf-8") as file:
                file.write(f"env: CartPole-v1\nalgorithm: {{name: dqn, dueling: true}}\nnetwork: {{hidden: {hidden}}}\n")
        pictures = []
        residual = "[conv 4 3x5 /2 pad 1x2, layer_norm tanh, residual 2 (relu, conv 4 3x3 pad 1), max_pool 2x2, avg_pool 2x3 pad 1, dense 8 relu, concat paddle]"
        for plugin, algorithm, network in (("catch", "ppo", "{encoder: minatar, shared: true}"),
                                           ("catch_parts", "ppo", f"{{encoder: {residual}, hidden: [8]}}"),
                                           ("catch_parts", "a2c", "{encoder: [conv 2 3x3], shared: true}"),
                                           ("catch", "dqn", "{encoder: [dense 16 relu, layer_norm]}"),
                                           ("catch_parts", "dqn", f"{{encoder: {residual}}}"),
                                           ("catch", "dqn", "{encoder: impala}"),
                                           ("catch_frames", "a2c", "{encoder: [conv 4 8x8 /8 relu, dense 8 relu]}")):
            pictures.append(os.path.join(folder, "own", f"{algorithm}-{plugin}-{len(pictures)}.yaml"))
            # from the first weights on the actions differ, however short the run is
            options = "dqn, dueling: true" if algorithm == "dqn" else f"{algorithm}, head_gain: 1"
            normalize = "true" if "parts" in plugin and algorithm != "dqn" else "false"
            with open(pictures[-1], "w", encoding="utf-8") as file:
                file.write(f"env: {os.path.join(os.path.dirname(ZOO), plugin)}.so\nalgorithm: {{name: {options}}}\nnetwork: {network}\n"
                           f"normalize: {{obs: {normalize}}}\nnum_envs: 8\n")
        for config in [*configs, shared, *dueling, *pictures]:
            check(page, config, folder)
        check(page, zoo, folder, choices=(2, 2, 2, 4, 2, 3))


if __name__ == "__main__":
    main()
