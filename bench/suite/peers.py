"""Other trainers on the same machine in the same session, each in an environment of its own, and the ratios."""
import json
import os
import statistics
import subprocess
import sys

from kit.machine import ROOT
from kit.report import progress
from kit.tutti import Tutti

ABOUT = "Stable-Baselines3, CleanRL's recipe, Sample Factory and a JAX PPO beside ours (seeds 1-3; about 10 minutes)"
OURS = [  # name, config
    ("own", "tutti, its own recipe", "configs/cartpole-ppo.yaml"),
    ("zoo", "tutti, Zoo's settings", "configs/cartpole-ppo-zoo.yaml"),
    ("cleanrl", "tutti, CleanRL's settings", "configs/cartpole-ppo-cleanrl.yaml"),
]
PEERS = [  # script, which of ours has the same settings (Sample Factory: the nearest)
    ("sb3_zoo.py", "zoo"),
    ("sb3_cleanrl.py", "cleanrl"),
    ("sample_factory_ppo.py", "cleanrl"),
    ("jax_ppo.py", "cleanrl"),
]
WALL_S = 60
MEASURED = ("first_step_s", "sps", "solved_at_s")


def peer_run(tutti, script, seed, *words, wall_s=WALL_S):
    """A peer's own JSON, or {"failed": its last words}. Its processes end with it, or with their group. `words`: arguments of its own."""
    command = [sys.executable, os.path.join(ROOT, "bench/peers", script), "--seed", str(seed), "--wall-s", str(wall_s), *words]
    env = dict(os.environ, TMPDIR=tutti.folder)
    process = subprocess.Popen(command, cwd=tutti.folder, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                               text=True, start_new_session=True)
    try:
        out, err = process.communicate(timeout=wall_s + 180)
    except subprocess.TimeoutExpired:
        return {"failed": "no end within %d s" % (wall_s + 180)}
    finally:
        Tutti.end(process)
    lines = [line for line in out.splitlines() if line.startswith("{")]
    if process.returncode != 0 or not lines:
        return {"failed": (err.strip().splitlines() or ["exit %d" % process.returncode])[-1]}
    return dict(json.loads(lines[-1]), seed=seed)


def medians(runs):
    """None as soon as one run has none: a seed that did not get there is not left out."""
    out = {}
    for name in MEASURED:
        values = [run.get(name) for run in runs]
        out[name] = None if None in values else statistics.median(values)
    return out


def ratio(more, less):
    return None if more is None or not less else more / less


def install(scripts):
    """Before anything is measured; each script makes its environment, and knows whether it is there."""
    for script in scripts:
        subprocess.run([sys.executable, os.path.join(ROOT, "bench/peers", script), "--install"], check=True)


def measure(tutti, args, _machine):
    seeds = list(args.seeds or range(1, 4))
    install(script for script, _ in PEERS)
    runs, ours, rows, ratios = [], {}, [], []
    for key, name, config in OURS:
        mine = [tutti.run(config, seed) for seed in seeds]
        runs += [dict(run, peer=name) for run in mine]
        ours[key] = medians(mine)
        rows.append([name, *ours[key].values()])
    for script, same in PEERS:
        theirs = []
        for seed in seeds:
            progress("%s: seed %d" % (script, seed))
            theirs.append(peer_run(tutti, script, seed))
        runs += theirs
        name = next((run["peer"] for run in theirs if "peer" in run), script)
        median = medians(theirs)
        failed = next((run["failed"] for run in theirs if "failed" in run), None)
        rows.append([name if not failed else "%s: %s" % (name, failed), *median.values()])
        ratios.append([name, ratio(median["first_step_s"], ours[same]["first_step_s"]),
                       ratio(ours[same]["sps"], median["sps"]),
                       ratio(median["solved_at_s"], ours[same]["solved_at_s"]),
                       ratio(median["solved_at_s"], ours["own"]["solved_at_s"])])
    progress("")
    return {"runs": runs, "checks": [], "wall_limit_s": WALL_S, "tables": [
        {"columns": ["CartPole-v1, PPO; median of %d seeds" % len(seeds), *MEASURED], "rows": rows},
        {"columns": ["tutti is so many times faster than", "first step", "sps, same settings", "solved, same settings",
                     "solved, own recipe"], "rows": ratios}]}
