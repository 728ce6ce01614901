"""PPO with Nature's network on frames of noise, Stable-Baselines3 in turns with ours: the same environment, settings and two cores."""
import os
import statistics
import subprocess
import sys

from kit.machine import ROOT
from kit.report import check, progress
from kit.tutti import Broken
from suite.peers import peer_run

ABOUT = "PPO with Nature's network on frames of noise: twice Stable-Baselines3's steps a second"
SCRIPT = "sb3_frames.py"
PEERS = os.path.join(ROOT, "bench/peers")
TURNS, STEPS = 3, 8192
CONFIG = """name: frames
env: {id: "gym:frames_env:Frames-v0", workers: 1}
num_envs: 8
num_steps: 128
network: {encoder: nature, shared: true, activation: relu}
algorithm: {name: ppo, learning_rate: 2.5e-4, anneal: linear, epochs: 4, minibatches: 4, clip: 0.1, clip_value: true, adam_eps: 1e-5}
learner: {shards: 4, threads: 2}
stop: {env_steps: %d}
""" % STEPS
OURS = [("tutti, lag 0", "lag=0"), ("tutti, lag 1", "lag=1")]


def python():
    """The peer's own interpreter, so that both step the same environment with the same packages."""
    script = os.path.join(PEERS, SCRIPT)
    subprocess.run([sys.executable, script, "--install"], check=True)
    sys.path.insert(0, PEERS)
    from probe import interpreter
    return interpreter("sb3")


def measure(tutti, _args, _machine):
    tutti.env.update(TT_PYTHON=python(), PYTHONPATH=PEERS, PYTHONDONTWRITEBYTECODE="1")
    config = os.path.join(tutti.folder, "frames.yaml")
    with open(config, "w") as out:
        out.write(CONFIG)
    runs = []
    for turn in range(1, TURNS + 1):
        progress("turn %d of %d" % (turn, TURNS))
        runs += [dict(tutti.run(config, turn, one), peer=name) for name, one in OURS]
        runs.append(peer_run(tutti, SCRIPT, turn))
        if "failed" in runs[-1]:
            raise Broken("%s: %s" % (SCRIPT, runs[-1]["failed"]))
    progress("")
    names = [name for name, _ in OURS] + ["Stable-Baselines3"]
    sps = {name: statistics.median(run["sps"] for run in runs if run["peer"] == name) for name in names}
    return {"runs": runs, "checks": [check("tutti, lag 1, over Stable-Baselines3", sps[names[1]] / sps[names[2]], 2, ">=")],
            "tables": [{"columns": ["frames 4x84x84, PPO; median of %d" % TURNS, "steps/s"], "rows": [list(row) for row in sps.items()]}]}
