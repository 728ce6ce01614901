#!/usr/bin/env python3
"""Policies of every bundled recipe, of every kind of space, of encoders of every kind of layer and of layers that remember: what tutti_load (PyTorch) and an
exported ONNX model (onnxruntime) make of random observations is what the binary makes of them."""

import glob
import os
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
SOURCE, BUILD, TUTTI = (os.environ[name] for name in ("TT_SOURCE_DIR", "TT_BUILD_DIR", "TUTTI"))
sys.path.insert(0, os.path.join(SOURCE, "tests", "export"))
CHECKS = (("by_torch.py", "venv-torch", "torch"), ("by_onnx.py", "venv-onnx", "onnxruntime"))
PLUGINS = os.path.join(BUILD, "tests", "collector", "plugins")
GYM = os.path.join(SOURCE, "build", "venv-gym", "bin", "python3")
SANITIZED = bool(os.environ.get("TT_SANITIZE"))
STEPS, STARTS, REPLAYED = (2100, 300, 400) if SANITIZED else (6000, 1000, 1500)  # there as many as have an update


def text_of(config):
    with open(config, encoding="utf-8") as file:
        return file.read()


def trained(config, folder):
    """The last checkpoint of a short run."""
    name = os.path.basename(config)[:-len(".yaml")]
    run_dir = os.path.join(folder, name)
    # with a replay a step costs many times as much, and with a large encoder once more
    replayed = [f"stop.env_steps={REPLAYED}", "algorithm.gradient_steps=1", f"algorithm.learning_starts={STARTS}"]
    if SANITIZED:
        replayed += ["num_steps=16", "algorithm.train_every=16"]
    short = replayed if any(word in name for word in ("dqn", "sac", "td3")) else [f"stop.env_steps={STEPS}"]
    if "encoder: nature" in text_of(config):
        short = ["stop.env_steps=256", "num_steps=16", *(["algorithm.learning_starts=128"] if "dqn" in name else [])]
    sets = [word for assignment in [*short, "stop.return_mean=null"] for word in ("--set", assignment)]
    subprocess.run([TUTTI, "run", config, "--run-dir", run_dir, "--quiet", *sets], check=True,
                   stdout=subprocess.DEVNULL, timeout=100, env=dict(os.environ, XDG_STATE_HOME=folder))
    return run_dir


def recipe(config, folder):
    """What e2e.recipes has trained with the program as it is now; by hand, where it has not, such a run is made here."""
    name = os.path.basename(config)[:-len(".yaml")]
    kept = os.path.join(BUILD, "recipes", name)
    final = os.path.join(kept, "checkpoints", "final.safetensors")
    if os.path.exists(final) and os.path.getmtime(final) > max(os.path.getmtime(TUTTI), os.path.getmtime(config)):
        return kept
    return trained(config, folder)


def own(folder):
    """Configs for what no bundled one has."""
    def write(name, text):
        path = os.path.join(folder, f"{name}.yaml")
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return path

    yield write("zoo", f"env: {PLUGINS}/zoo.so\nnormalize: {{obs: true}}\n")
    yield write("shared", "env: Pendulum-v1\nnetwork: {shared: true, activation: relu}\n")
    yield write("squashed", "env: Pendulum-v1\nalgorithm: {name: ppo, squash: true, head_gain: 1}\n")
    yield write("state-std", "env: Pendulum-v1\nalgorithm: {name: ppo, state_std: true, squash: true, head_gain: 1}\n")
    yield write("state-std-zoo", f"env: {PLUGINS}/zoo.so\nalgorithm: {{name: a2c, state_std: true, head_gain: 1}}\n")
    yield write("sac", "env: Pendulum-v1\nalgorithm: {name: sac, batch_size: 32}\nnetwork: {hidden: [32, 16], activation: relu}\nnormalize: {obs: true}\n")
    yield write("sac-pictures", f"env: {PLUGINS}/catch_slide.so\nalgorithm: {{name: sac, batch_size: 32}}\n"
                "network: {encoder: [conv 4 3x3 /2 relu, max_pool 2x2], hidden: [16], activation: relu}\n")
    yield write("td3", "env: Pendulum-v1\nalgorithm: {name: td3, batch_size: 32}\nnetwork: {hidden: [32, 16], activation: relu}\n")
    for i, hidden in enumerate(("[32, 16]", "[16]")):  # with a trunk, and without
        yield write(f"dqn-dueling-{i}", f"env: CartPole-v1\nalgorithm: {{name: dqn, dueling: true}}\nnetwork: {{hidden: {hidden}}}\n")
    yield write("dqn-quantiles", "env: CartPole-v1\nalgorithm: {name: dqn, quantiles: 7, noisy: true}\nnetwork: {hidden: [32, 16]}\n")
    yield write("dqn-quantiles-dueling", "env: CartPole-v1\nalgorithm: {name: dqn, quantiles: 5, dueling: true}\nnetwork: {hidden: [32, 16]}\n")
    yield write("dqn-atoms", "env: CartPole-v1\nalgorithm: {name: dqn, atoms: 11, v_min: 0, v_max: 7}\nnetwork: {hidden: [32, 16]}\n")
    yield write("rainbow", f"env: {PLUGINS}/catch.so\nalgorithm: {{name: dqn, atoms: 51, double: true, dueling: true, noisy: true, n_step: 3}}\n"
                "replay: {prioritized: true}\nnetwork: {encoder: minatar, hidden: [16]}\n")
    yield write("dqn-noisy", "env: CartPole-v1\nalgorithm: {name: dqn, dueling: true, noisy: true}\nnetwork: {hidden: [32, 16]}\n")
    for name, env, more in (("cartpole", "CartPole-v1", "normalize: {obs: true}\nalgorithm: {name: ppo, head_gain: 1}"),
                            ("parts", f"{PLUGINS}/catch_parts.so", "network: {encoder: [conv 4 3x3 relu, dense 8 relu]}\nnormalize: {obs: true}\n"
                             "algorithm: {name: ppo, head_gain: 1}"),
                            ("board", f"{PLUGINS}/catch.so", "network: {encoder: [conv 4 3x3 relu, dense 8 relu]}\nalgorithm: {name: dqn, dueling: true}"),
                            ("zoo", f"{PLUGINS}/zoo.so", "normalize: {obs: true}"),
                            ("embedded", f"{PLUGINS}/zoo.so", "network: {encoder: [embed pair.0 2, concat near, embed choice 3]}\nnormalize: {obs: true}")):
        yield write(f"stacked-{name}{'-dqn' if 'dqn' in more else ''}", f"env: {{id: \"{env}\", stack: 3}}\nnum_envs: 8\n{more}\n")
    residual = "[conv 4 3x5 /2 pad 1x2, layer_norm tanh, residual 2 (relu, conv 4 3x3 pad 1), max_pool 2x2, " \
        "avg_pool 2x3 pad 1, dense 8 relu, concat paddle]"
    for plugin, algorithm, network in (("catch", "ppo", "{encoder: minatar, shared: true}"),
                                       ("catch_parts", "ppo", f"{{encoder: {residual}, hidden: [8]}}"),
                                       ("catch_parts", "a2c", "{encoder: [conv 2 3x3], shared: true}"),
                                       ("catch", "dqn", "{encoder: [dense 16 relu, layer_norm]}"),
                                       ("catch_parts", "dqn", f"{{encoder: {residual}}}"),
                                       ("catch", "dqn", "{encoder: impala}"),
                                       ("catch_frames", "ppo", "{encoder: [conv 2 5x5 /4 relu, dense 8, concat obs], shared: true}"),
                                       ("zoo", "ppo", "{encoder: [conv 3 2x2, embed pair.0 4, dense 9 tanh, embed choice 2, concat near], picture: image}"),
                                       ("zoo", "a2c", "{encoder: [concat near, embed choice 5, layer_norm, dense 8 relu], shared: false}"),
                                       ("catch_frames", "a2c", "{encoder: [conv 4 8x8 /8 relu, dense 8 relu]}")):
        # from the first weights on the actions differ, however short the run is
        options = "dqn, dueling: true" if algorithm == "dqn" else f"{algorithm}, head_gain: 1"
        normalize = "true" if "parts" in plugin and algorithm != "dqn" else "false"
        words = "".join(letter if letter.isalnum() else "" for letter in network)[:24]
        yield write(f"{algorithm}-{plugin}-{words}",
                    f"env: {PLUGINS}/{plugin}.so\nalgorithm: {{name: {options}}}\nnetwork: {network}\n"
                    f"normalize: {{obs: {normalize}}}\nnum_envs: 8\n")


def recurrent(folder):
    """LSTMs and GRUs: one for both or one each, behind what is seen or an encoder, before hidden layers or the heads, for every kind of
    action. From the first weights on the actions differ, however short the run is."""
    for name, env, network, algorithm in (
            ("lstm", "CartPole-v1", "{rnn: lstm, rnn_size: 24}", "ppo"),
            ("lstm-stacked", "{id: CartPole-v1, stack: 3}", "{rnn: lstm, rnn_size: 16}", "ppo"),
            ("lstm-hidden", "Pendulum-v1", "{rnn: lstm, rnn_size: 16, hidden: [16, 8], activation: relu}", "ppo, squash: true"),
            ("lstm-encoder", f"{PLUGINS}/catch_parts.so", "{rnn: lstm, rnn_size: 16, encoder: [conv 4 3x3 relu], shared: false}", "ppo"),
            ("gru", "Pendulum-v1", "{rnn: gru, rnn_size: 16, shared: false, hidden: [16]}", "ppo"),
            ("gru-encoder", f"{PLUGINS}/catch.so", "{rnn: gru, rnn_size: 16, encoder: minatar, hidden: [8]}", "a2c"),
            ("gru-zoo", f"{PLUGINS}/zoo.so", "{rnn: gru, rnn_size: 16, shared: false}", "ppo"),
            ("lstm-dqn-dueling", "CartPole-v1", "{rnn: lstm, rnn_size: 16, hidden: [16, 8]}", "dqn, dueling: true"),
            ("gru-dqn-quantiles", f"{PLUGINS}/catch.so", "{rnn: gru, rnn_size: 16, encoder: [conv 2 3x3 relu]}", "dqn, quantiles: 5, noisy: true"),
            ("lstm-rainbow", "CartPole-v1", "{rnn: lstm, rnn_size: 16, hidden: [16]}", "dqn, atoms: 9, noisy: true, dueling: true")):
        path = os.path.join(folder, f"{name}.yaml")
        with open(path, "w", encoding="utf-8") as file:
            file.write(f"env: {env}\nnum_envs: 8\nnetwork: {network}\nalgorithm: {{name: {algorithm}, head_gain: 1}}\n"
                       f"normalize: {{obs: {'false' if 'catch.so' in env else 'true'}}}\n")
        yield path


def python_of(venv, module):
    """An interpreter that has the module, or None."""
    for python in (os.path.join(SOURCE, "build", venv, "bin", "python3"), sys.executable):
        if os.path.exists(python) and subprocess.run([python, "-c", f"import {module}, numpy"], capture_output=True).returncode == 0:
            return python
    return None


def main():
    checks = [(check, python_of(venv, module), venv) for check, venv, module in CHECKS]
    if SANITIZED:  # tutti_load is Python alone; the export and act, which are ours, run for by_onnx.py
        checks = checks[1:]
    for check, python, venv in checks:
        print(f"{check}: {python or f'skipped: tools/test-venv makes build/{venv}'}")
    if not any(python for _, python, _ in checks):
        sys.exit(77)
    configs = sorted(glob.glob(os.path.join(SOURCE, "configs", "*.yaml")))
    if len(configs) < 5:
        sys.exit(f"only {configs}")
    if os.path.exists(GYM):
        os.environ["TT_PYTHON"] = GYM
    else:
        print("the configs of Gymnasium's environments are left out: tools/test-venv makes build/venv-gym, which they need")
        configs = [config for config in configs if "gym:" not in text_of(config)]
    if SANITIZED:  # minutes of convolutions, and of Python; "own" has every kind of layer
        configs = [config for config in configs if "encoder: nature" not in text_of(config) and "gym:" not in text_of(config)]
    wanted = sys.argv[1:]  # by hand: parts of names
    with tempfile.TemporaryDirectory() as folder:
        written = os.path.join(folder, "own")
        os.mkdir(written)
        runs = [make(config, folder) for make, some in ((recipe, configs), (trained, own(written)), (trained, recurrent(written)))
                for config in some if not wanted or any(part in config for part in wanted)]
        for check, python, _ in checks:
            if python:
                subprocess.run([python, os.path.join(SOURCE, "tests", "export", check), *runs], check=True, timeout=250)


if __name__ == "__main__":
    main()
