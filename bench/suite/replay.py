"""The replay on one core, in turns with Stable-Baselines3's; medians of the turns."""
import json
import os
import statistics
import subprocess
import sys

from kit.machine import ROOT
from kit.report import progress
from kit.tutti import Broken, Tutti

ABOUT = "`tutti bench replay`, beside Stable-Baselines3's ReplayBuffer, in turns (installs it; 4 GB of memory)"
SCRIPT = os.path.join(ROOT, "bench/peers/sb3_replay.py")
WALL_S = 300
TURNS = 3


def peer(tutti):
    """A process group of its own, that ends with us; the environment has been made before."""
    progress("Stable-Baselines3")
    process = subprocess.Popen([sys.executable, SCRIPT], cwd=tutti.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                               text=True, start_new_session=True)
    try:
        out, err = process.communicate(timeout=WALL_S)
    except subprocess.TimeoutExpired:
        raise Broken("%s: no end within %d s" % (SCRIPT, WALL_S)) from None
    finally:
        Tutti.end(process)
    progress("")
    if process.returncode != 0:
        raise Broken("%s: %s" % (SCRIPT, (err.strip().splitlines() or ["exit %d" % process.returncode])[-1]))
    return json.loads(out.splitlines()[-1])


def medians(runs):
    """One result of several: of each number that was measured the median over the turns."""
    out = dict(runs[0])
    out["results"] = [{key: statistics.median(run["results"][i][key] for run in runs) if isinstance(value, float) else value
                       for key, value in row.items()} for i, row in enumerate(runs[0]["results"])]
    return out


def measure(tutti, _args, _machine):
    subprocess.run([sys.executable, SCRIPT, "--install"], check=True)
    turns = [(peer(tutti), tutti.json("bench", "replay")) for _ in range(TURNS)]
    theirs, ours = medians([turn[0] for turn in turns]), medians([turn[1] for turn in turns])
    rows = []
    for row in ours["results"]:
        name = "tutti, %s, %s" % (row["name"], "prioritised" if row["prioritised"] else "uniform")
        rows.append([name, row["rows"], row["inserts_per_s"], row["insert_bytes_per_s"] / 1e9, row["step_us"],
                     row["units_per_s"], row["step_bytes_per_s"] / 1e9])
    for row in theirs["results"]:
        rows.append(["%s, %s" % (theirs["peer"], row["kind"]), row["rows"], row["inserts_per_s"], None, row["step_us"],
                     row["units_per_s"], None])
    ratios = []
    for row in theirs["results"]:
        same = next(mine for mine in ours["results"] if mine["kind"] == row["kind"] and not mine["prioritised"])
        ratios.append([row["kind"], same["inserts_per_s"] / row["inserts_per_s"], same["units_per_s"] / row["units_per_s"]])
    return {"turns": turns, "checks": [], "tables": [
        {"columns": ["memcpy %.1f GB/s; a step of %d units" % (ours["memcpy_bytes_per_s"] / 1e9, ours["units"]), "rows",
                     "rows/s in", "GB/s", "us a step", "units/s", "GB/s"], "rows": rows},
        {"columns": ["tutti, uniform, is so many times faster", "in", "out"], "rows": ratios}]}
