"""The demo's processes: 2 collectors and 2 learners on this machine, time to solved and memory of them all."""
import os
import subprocess

from kit.report import check, progress
from suite.solve import COLUMNS, CONFIG, lines, runs_of, summary

ABOUT = "the same with 2 collectors and 2 learners: solved within 1 s; all its processes below 100 MiB PSS"
REPLICAS = ("collector.replicas=2", "learner.replicas=2")
LONGER = ("stop.return_mean=null", "stop.env_steps=1000000")  # enough time to look at it
EVERY_S = 0.02


def family(root):
    """The process and all its descendants now."""
    parents = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                with open("/proc/%s/stat" % entry) as file:
                    parents[int(entry)] = int(file.read().rpartition(")")[2].split()[1])
            except OSError:
                continue  # it ended meanwhile
    members = {root}
    grown = True
    while grown:
        grown = {pid for pid, parent in parents.items() if parent in members} - members
        members |= grown
    return members


def pss_kib(pid):
    """What a process uses, shared pages divided among those who share them; 0 if it ended meanwhile."""
    try:
        with open("/proc/%d/smaps_rollup" % pid) as file:
            for line in file:
                if line.startswith("Pss:"):
                    return int(line.split()[1])
    except OSError:
        pass
    return 0


def name_of(pid):
    try:
        with open("/proc/%d/cmdline" % pid) as file:
            words = file.read().split("\0")
    except OSError:
        return "?"
    index = words[words.index("--index") + 1] if "--index" in words else ""
    return "%s %s" % (words[1] if len(words) > 1 else words[0], index)


def peak_memory(tutti, seed):
    """The largest sum of PSS seen, and what it consists of. Looking costs time: this run's speed is not used."""
    process = tutti.start_run(CONFIG, seed, *REPLICAS, *LONGER)
    peak, parts, looks = 0, {}, 0
    try:
        while process.poll() is None:
            now = {pid: pss_kib(pid) for pid in family(process.pid)}
            looks += 1
            if sum(now.values()) > peak:
                peak = sum(now.values())
                parts = {"%s (%d)" % (name_of(pid).strip(), pid): kib for pid, kib in now.items() if kib}
            try:
                process.wait(EVERY_S)
            except subprocess.TimeoutExpired:  # look again
                pass
    finally:
        tutti.end(process)
    tutti.finish(process)
    tutti.forget()
    return {"pss_mib": peak / 1024, "pss_kib_of": parts, "looks": looks}


def measure(tutti, args, _machine):
    seeds = list(args.seeds or range(1, 21))
    runs = runs_of(tutti, CONFIG, seeds, *REPLICAS)
    progress("demo: memory")
    memory = peak_memory(tutti, seeds[0])
    progress("")
    table, spreads = summary(runs, COLUMNS)
    parts = {"columns": ["process", "PSS KiB"], "rows": [list(item) for item in sorted(memory["pss_kib_of"].items())]}
    return {"runs": runs, "spread": spreads, "memory": memory, "tables": [table, parts],
            "checks": lines(runs, 1.0) + [check("PSS of all processes, MiB", memory["pss_mib"], 100.0, "<=")]}
