"""The demo's processes: 2 collectors and 2 learners on this machine, time to solved and memory of them all."""
import subprocess

from kit.processes import family, pss_kib, role_of
from kit.report import check, progress
from suite.solve import COLUMNS, CONFIG, lines, runs_of, summary

ABOUT = "the same with 2 collectors and 2 learners: solved within 1 s; all its processes below 100 MiB PSS"
REPLICAS = ("collector.replicas=2", "learner.replicas=2")
LONGER = ("stop.return_mean=null", "stop.env_steps=1000000")  # enough time to look at it
EVERY_S = 0.02


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
                parts = {"%s (%d)" % (role_of(pid), pid): kib for pid, kib in now.items() if kib}
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
