"""Convolutions on one core, ours and PyTorch's (oneDNN) in turns on the same shapes."""
import json
import os
import statistics
import subprocess

from kit.machine import ROOT

ABOUT = "`tutti bench conv` beside PyTorch's oneDNN on one thread, in turns (TT_BENCH_TORCH: a Python that has torch)"
ROUNDS = 3
PRODUCTS = (("forward_us", "forward"), ("weights_us", "gradient of the weights"), ("input_us", "gradient of the input"))


def python():
    """One that has torch: named, or that of the peers, or of the tests."""
    folder = os.environ.get("TT_BENCH_VENVS") or os.path.join(ROOT, "bench", ".venvs")
    for path in (os.environ.get("TT_BENCH_TORCH"), os.path.join(folder, "sb3", "bin", "python"),
                 os.path.join(ROOT, "build", "venv-torch", "bin", "python")):
        if path and os.access(path, os.X_OK):
            return path
    return None


def theirs(path, layers, folder):
    """Their numbers by layer and what they were taken with, or why there are none."""
    if not path:
        return None, "no torch here (bench/peers/sb3_zoo.py --install brings it; TT_BENCH_TORCH names another)"
    file = os.path.join(folder, "layers.json")
    with open(file, "w") as out:
        json.dump(layers, out)
    done = subprocess.run([path, os.path.join(ROOT, "bench/peers/torch_conv.py"), file], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, env=dict(os.environ, OMP_NUM_THREADS="1"))
    if done.returncode != 0:
        return None, (done.stderr.strip().splitlines() or ["exit %d" % done.returncode])[-1]
    return json.loads(done.stdout), None


def median(runs, layer, product):
    return statistics.median(run["results"][layer][product] for run in runs)


def measure(tutti, _args, _machine):
    ours, peers, why, path = [], [], None, python()
    for _ in range(ROUNDS):
        ours.append(tutti.json("bench", "conv"))
        peer, why = theirs(path, ours[0]["results"], tutti.folder)
        if peer:
            peers.append(peer)
    yardstick = statistics.median(run["own_gflops"] for run in ours)
    rows = []
    for i, layer in enumerate(ours[0]["results"]):
        for product, words in PRODUCTS:
            us = median(ours, i, product)
            their = median(peers, i, product) if len(peers) == ROUNDS else None
            gflops = 1e3 * layer["mflop"] / us
            rows.append(["%s, %s" % (layer["name"], words), us, gflops, gflops / yardstick, their, their and their / us])
    if why:
        rows.append(["torch: " + why] + [""] * 5)
    return {"results": ours, "peers": peers, "why": why, "checks": [],
            "tables": [{"columns": ["own product %.1f GFLOP/s" % yardstick, "us", "GFLOP/s", "of it", "oneDNN, us", "ratio"],
                        "rows": rows}]}
