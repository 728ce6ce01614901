"""A learner's minibatch on a card, ours and PyTorch's in turns on the same one. Without a card: on one core, so that the script can be tried."""
import json
import os
import statistics
import subprocess
import sys

from kit import nvidia
from kit.machine import ROOT
from kit.tutti import Broken
from suite import conv

ABOUT = "`tutti bench update` on a card beside PyTorch, eager and compiled (TT_BENCH_DEVICE=cpu: one core; TT_BENCH_TORCH: a Python that has torch; \
TT_BENCH_ROUNDS: how often both, in turns; 3)"
ROUNDS = int(os.environ.get("TT_BENCH_ROUNDS", "3"))
CASES = [
    ("PPO, 4-64-64, 256 rows", "--rows", 256, "--shards", 8),
    ("PPO, 4-64-64, 8192 rows", "--rows", 8192, "--shards", 64),
    ("PPO, 376-256-256, 8192 rows", "--obs", 376, "--hidden", 256, "--out", 17, "--rows", 8192, "--shards", 8),
    ("PPO, 376-1024-1024, 8192 rows", "--obs", 376, "--hidden", 1024, "--out", 17, "--rows", 8192, "--shards", 8),
    ("PPO, 376-1024-1024, 8192 rows, TF32", "--obs", 376, "--hidden", 1024, "--out", 17, "--rows", 8192, "--shards", 8, "--precision", "tf32"),
    ("PPO, 376-1024-1024, 8192 rows, BF16", "--obs", 376, "--hidden", 1024, "--out", 17, "--rows", 8192, "--shards", 8, "--precision", "bf16"),
    ("PPO, MinAtar, 1024 rows", "--net", "minatar", "--rows", 1024, "--shards", 8),
    ("PPO, Nature, 256 rows", "--net", "nature", "--rows", 256, "--batch", 512, "--shards", 8),
    ("PPO, Nature, 2048 rows", "--net", "nature", "--rows", 2048, "--batch", 2048, "--shards", 8),
    ("PPO, Nature, 2048 rows, TF32", "--net", "nature", "--rows", 2048, "--batch", 2048, "--shards", 8, "--precision", "tf32"),
    ("PPO, IMPALA, 256 rows", "--net", "impala", "--rows", 256, "--batch", 512, "--shards", 8),
    ("DQN, 4-64-64, 128 units", "--algorithm", "dqn", "--rows", 128, "--shards", 8),
    ("DQN, Nature, 32 units", "--algorithm", "dqn", "--net", "nature", "--rows", 32, "--shards", 8),
    ("DQN, Nature, 512 units", "--algorithm", "dqn", "--net", "nature", "--rows", 512, "--shards", 8),
    ("SAC, 17-256-256, 256 units", "--algorithm", "sac", "--obs", 17, "--hidden", 256, "--out", 6, "--rows", 256, "--shards", 8),
    ("SAC, 376-256-256, 4096 units", "--algorithm", "sac", "--obs", 376, "--hidden", 256, "--out", 17, "--rows", 4096, "--shards", 8),
    ("SAC, Nature and 256-256, 32 units", "--algorithm", "sac", "--net", "nature", "--hidden", 256, "--out", 6, "--rows", 32, "--shards", 8),
    ("SAC, Nature and 256-256, 256 units", "--algorithm", "sac", "--net", "nature", "--hidden", 256, "--out", 6, "--rows", 256, "--shards", 8),
    ("TD3, 17-256-256, 256 units", "--algorithm", "td3", "--obs", 17, "--hidden", 256, "--out", 6, "--rows", 256, "--shards", 8),
]
ON_A_CORE = {"PPO, 4-64-64, 256 rows", "DQN, 4-64-64, 128 units", "DQN, Nature, 32 units", "SAC, 17-256-256, 256 units",
             "SAC, Nature and 256-256, 32 units"}  # seconds, not minutes
# FP32 without tensor cores as NVIDIA's data sheets have it, TFLOP/s at boost: by words of the name.
PEAKS = {"H100": 67.0, "H200": 67.0, "A100": 19.5, "L4": 30.3, "RTX 4090": 82.6, "B200": 80.0}


def python():
    """One that has torch: named, or this machine's, or that of the peers or tests."""
    named = os.environ.get("TT_BENCH_TORCH")
    if not named and subprocess.run([sys.executable, "-c", "import torch"], stderr=subprocess.DEVNULL, check=False).returncode == 0:
        return sys.executable
    return named or conv.python()


def ours(tutti, device, cases):
    options = [[str(word) for word in words] for _, *words in cases]
    results = [tutti.json("bench", "update", "--device", device, "--seconds", "0.1", *words) for words in options]
    for result, words in zip(results, options):
        given = dict(zip(words[::2], words[1::2]))
        result.update(obs=int(given.get("--obs", 4)), hidden=int(given.get("--hidden", 64)))
    return results


def has_library(tutti, device):
    """Whether there is what learner.precision asks for; its cases are left out otherwise."""
    try:
        tutti.json("bench", "update", "--device", device, "--precision", "tf32", "--seconds", "0.01")
        return True
    except Broken as why:
        print(f"gpu: without --precision: {why}", file=sys.stderr)
        return False


def theirs(path, cases, device, folder):
    """Their numbers by case, or why there are none."""
    if not path:
        return None, "no torch here (TT_BENCH_TORCH names a Python that has it)"
    file = os.path.join(folder, "cases.json")
    with open(file, "w") as out:
        json.dump(cases, out)
    done = subprocess.run([path, os.path.join(ROOT, "bench/peers/torch_update.py"), file, device], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, check=False)
    if done.returncode != 0:
        return None, (done.stderr.strip().splitlines() or ["exit %d" % done.returncode])[-1]
    return json.loads(done.stdout), None


def card(device):
    """In NVIDIA's words, or None."""
    try:
        return None if device == "cpu" else nvidia.card()
    except nvidia.NoCard as why:
        raise Broken(f"{why}; TT_BENCH_DEVICE=cpu measures one core") from None


def peak(found, machine):
    """GFLOP/s of the card on paper, or of a core as measured just now; None: nobody knows."""
    if not found:
        return machine["sgemm"]
    return next((1e3 * number for words, number in PEAKS.items() if words in found["name"]), None)


def measure(tutti, _args, machine):
    device = os.environ.get("TT_BENCH_DEVICE", "cuda")
    found, path = card(device), python()
    cases = [case for case in CASES if found or case[0] in ON_A_CORE]
    if found and not has_library(tutti, device):
        cases = [case for case in cases if "--precision" not in case]
    own, peers, why = [], [], None
    for _ in range(ROUNDS):
        own.append(ours(tutti, device, cases))
        peer, why = theirs(path, own[0], device, tutti.folder)
        if peer:
            peers.append(peer)
    ways = sorted({way for peer in peers for case in peer["results"] for way in case})
    most, rows = peak(found, machine), []
    for i, (name, *_) in enumerate(cases):
        us = statistics.median(run[i]["us"] for run in own)
        gflops = 1e3 * own[0][i]["mflop"] / us
        put = statistics.median(run[i]["put_gb_per_s"] for run in own) if found else None
        exact = "--precision" not in cases[i]  # of what tensor cores could do nothing is said
        row = [name, us, 1e6 * own[0][i]["rows"] / us, gflops, gflops / most if most and exact else None, put]
        for way in ways:
            took = [peer["results"][i][way] for peer in peers if peer["results"][i].get(way)]
            row += [statistics.median(took) / us if took else None]
        rows.append(row)
    if why:
        rows.append(["torch: " + why] + [""] * (5 + len(ways)))
    columns = [found["name"] if found else "one core", "us", "rows/s", "GFLOP/s", "of FP32 peak" if found else "of sgemm", "batch there, GB/s"]
    return {"device": device, "card": found, "results": own, "peers": peers, "why": why, "checks": [],
            "tables": [{"columns": columns + [way + ", times our time" for way in ways], "rows": rows}]}
