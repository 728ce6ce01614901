#!/usr/bin/env python3
"""An exported policy in onnxruntime plays as `tutti eval` does: from the same seeds the same actions, to the same returns."""

import glob
import json
import os
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.environ["TT_SOURCE_DIR"], "tests"))
import pythons  # noqa: E402

pythons.run_with("venv-onnx", "gymnasium", "numpy", "onnxruntime")
import gymnasium  # noqa: E402
import numpy  # noqa: E402
import onnxruntime  # noqa: E402

TUTTI, HERE = os.environ["TUTTI"], os.path.dirname(os.path.abspath(__file__))
EPISODES = 5


def tutti(*words):
    done = subprocess.run([TUTTI, *words], capture_output=True, text=True, timeout=100)
    if done.returncode:
        sys.exit(f"tutti {' '.join(words)}: {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def first_episode(path):
    """Its seed, and its steps; None of an env that was only looked at. It goes on with another episode, which does not count."""
    with open(path, encoding="utf-8") as file:
        entries = [json.loads(line) for line in file]
    steps = [i for i, entry in enumerate(entries) if "action" in entry]
    if not steps:
        return None
    end = next((i for i, entry in enumerate(entries) if i > steps[0] and "seed" in entry), len(entries))
    return entries[steps[0] - 1]["seed"], entries[steps[0]:end]


def replay(session, seed, steps):
    """The return of an episode from that seed; its actions are those that were logged."""
    env = gymnasium.make("CartPole-v1")
    obs, _ = env.reset(seed=seed)
    total, end = 0.0, False
    carry = {entry.name: numpy.zeros((1, entry.shape[1]), numpy.float32) for entry in session.get_inputs() if entry.name == "carry"}
    for step in steps:
        action, *carried = session.run(["action", *(["carry_out"] if carry else [])], {"obs": obs[None], **carry})
        carry = dict(zip(carry, carried))
        assert not end and int(action[0]) == step["action"], (seed, total)
        obs, reward, terminated, truncated, _ = env.step(action[0])
        total, end = total + reward, terminated or truncated
    assert end, seed
    return total


def check(folder, network):
    logs, run, model, config = (os.path.join(folder, name) for name in ("logs", "run", "policy.onnx", "logged.yaml"))
    with open(config, "w", encoding="utf-8") as file:
        file.write(f"env: {{id: gym:logged_env:Logged-v0, python: {sys.executable}, path: {HERE}, workers: 1, args: {{folder: {logs}}}}}\n"
                   f"num_envs: 4\nseed: 3\nstop: {{env_steps: 8000}}\nnetwork: {network}\n")
    os.mkdir(logs)
    tutti("run", config, "--run-dir", run, "--quiet")
    for path in glob.glob(os.path.join(logs, "*")):
        os.unlink(path)
    said = json.loads(tutti("eval", run, "--episodes", str(EPISODES), "--output", "json"))
    tutti("export", run, "--onnx", model)
    session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
    episodes = list(filter(None, map(first_episode, glob.glob(os.path.join(logs, "*")))))
    returns = [replay(session, seed, steps) for seed, steps in episodes]
    print(f"{network}: returns {sorted(returns)}; eval: mean {said['return_mean']} of {said['return_min']} to {said['return_max']}")
    assert len(returns) == EPISODES and len(set(seed for seed, _ in episodes)) == EPISODES
    assert abs(numpy.mean(returns) - said["return_mean"]) < 1e-9
    assert (min(returns), max(returns)) == (said["return_min"], said["return_max"])


def main():
    for network in ("{}", "{rnn: lstm, rnn_size: 16, shared: false}"):
        with tempfile.TemporaryDirectory() as folder:
            os.environ["XDG_STATE_HOME"] = folder
            check(folder, network)


if __name__ == "__main__":
    main()
