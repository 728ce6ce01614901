"""Where the time of an update goes: perf samples the processes of a run, and each sample falls into one row.

The timer fires every 1/FREQUENCY s of a processor's time, so counting samples needs no hardware counters.
"""
import json
import os
import re
import shutil
import statistics
import subprocess

from kit.processes import family, role_of
from kit.report import progress
from kit.tutti import Broken
from suite.cleanrl import CONFIG

ABOUT = "where the microseconds of an update go: perf on a run with CleanRL's settings (needs perf)"
FREQUENCY = 4000
STEPS = 2000000
EVERY_S = 0.02
GROUPS = [  # of functions in tutti; the first that matches counts, what matches none is bookkeeping
    ("matrix products", r"kernel_gemm"),
    ("other network kernels", r"kernel_(transpose|dots|column_sum|gather|tanh|relu|scatter)|layer_|cpu_(shard|forward)|mlp_"),
    ("optimiser step", r"kernel_(opt_step|sum_squares)|cpu_(apply|net_refresh)"),
    ("sum of the shards", r"tt_grad_add|shards_|allreduce_|tt_tree"),
    ("loss, advantages, shuffle", r"ppo_|s_policy|s_minibatch|s_begin|s_lane|tt_gae|tt_cat_log_prob|tt_vexp|tt_vlog|tt_gauss"),
    ("random numbers, sampling", r"tt_philox|tt_draw|tt_cat_sample|tt_gauss_sample"),
    ("environments", r"step_block|tt_vec_|cartpole|s_physics|s_reset"),
]


def group_of(symbol, binary):
    """The row of a sample: by function in our own binary, by library elsewhere."""
    name = os.path.basename(binary)
    if name == "tutti":
        return next((group for group, pattern in GROUPS if re.match(pattern, symbol)), "bookkeeping")
    if name.startswith("libm.so"):
        return "sine and cosine (libm)"
    if name.startswith("libc"):
        return "libc"
    return "messages (ZeroMQ, kernel)"


def record(tutti, data, seed):
    """(summary text, {pid: role}) of a run under perf."""
    under = ["perf", "record", "-q", "-e", "cpu-clock", "-F", str(FREQUENCY), "-o", data, "--"]
    sets = () if any(line.startswith("stop.") for line in tutti.overrides) else ("stop.env_steps=%d" % STEPS,)
    process = tutti.start_run(CONFIG, seed, *sets, under=under)
    roles = {}
    try:
        while process.poll() is None:
            for pid in family(process.pid):
                role = role_of(pid)
                roles[pid] = role or roles.get(pid, "")
            try:
                process.wait(EVERY_S)
            except subprocess.TimeoutExpired:
                pass
    except BaseException:
        tutti.end(process)
        raise
    return tutti.finish(process), roles


def samples(data, roles):
    """{(role, thread): {row: {function: samples}}}"""
    out = {}
    text = subprocess.run(["perf", "script", "-i", data, "-F", "comm,pid,ip,sym,dso"], check=True, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout
    line = re.compile(r"^\s*(.*?)\s+(\d+)\s+[0-9a-f]+\s+(.*?)\s+\((.*)\)$")
    for found in map(line.match, text.splitlines()):
        if not found:
            continue
        thread, pid, symbol, binary = found.groups()
        role = roles.get(int(pid), "")
        if not role or role == "run":
            continue
        key = (role, "ZeroMQ" if thread.startswith("ZMQbg") else "main")
        rows = out.setdefault(key, {})
        symbols = rows.setdefault(group_of(symbol, binary), {})
        symbols[symbol] = symbols.get(symbol, 0) + 1
    return out


def phases(run_dir):
    """The learner's own clock: the median over the run's reports of every phase's microseconds in an update."""
    seen = {}
    with open(os.path.join(run_dir, "metrics.jsonl")) as file:
        for line in file:
            for name, value in json.loads(line).items():
                if name.startswith("time/") and name.endswith("_us"):
                    seen.setdefault(name[len("time/"):-len("_us")], []).append(value)
    return {name: statistics.median(values) for name, values in seen.items()}


def measure(tutti, args, _machine):
    if not shutil.which("perf"):
        raise Broken("perf is not there (apt-get install linux-perf)")
    progress("account: a run under perf")
    data = os.path.join(tutti.folder, "perf.data")
    text, roles = record(tutti, data, (args.seeds or [1])[0])
    progress("")
    run = json.loads(text)
    clock = phases(tutti.run_dir)
    tutti.forget()
    counted = samples(data, roles)
    us = 1e6 / FREQUENCY / run["updates"]
    wall = 1e6 * run["env_steps"] / run["sps"] / run["updates"]
    rows = []
    for (role, thread), groups in sorted(counted.items()):
        total = sum(sum(symbols.values()) for symbols in groups.values()) * us
        if total < 0.01 * wall:
            continue
        rows.append(["%s, %s thread" % (role, thread), total, total / wall])
        for group, symbols in sorted(groups.items(), key=lambda item: -sum(item[1].values())):
            mine = sum(symbols.values()) * us
            if mine >= 0.005 * wall:
                rows.append(["    " + group, mine, mine / wall])
    return {"run": run, "samples": {"%s, %s" % key: groups for key, groups in counted.items()}, "us_of_a_sample": us,
            "update_us": wall, "phases_us": clock, "checks": [], "tables": [
                {"columns": ["the learner's own clock, median", "us", "of the wall"],
                 "rows": [[name, value, value / wall] for name, value in clock.items()]},
                {"columns": ["processor time of an update of %d steps" % (run["env_steps"] // run["updates"]), "us",
                             "of the wall"], "rows": [["an update, wall", wall, 1.0]] + rows}]}
