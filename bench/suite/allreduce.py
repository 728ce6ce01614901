"""Two learners' sum in memory that they share, and through the aggregator, beside Open MPI's and gloo's on the same machine."""
import json
import os
import shutil
import subprocess

from kit.machine import ROOT
from kit.report import check

ABOUT = "two learners' all-reduce, both ways: 250 us for 36 KiB, 1.5 ms for 1 MiB; Open MPI and gloo beside it"
SIZES = (36 * 1024, 1024 * 1024)
LIMITS = (250.0, 1500.0)
ROUNDS = 1000
MPI = [  # what Open MPI moves the bytes with: its own choice between processes of one host, and loopback TCP
    ("Open MPI, shared memory", ["--mca", "btl", "self,vader"]),
    ("Open MPI, tcp", ["--mca", "btl", "self,tcp"]),
]


def ours(tutti, transport):
    result = tutti.json("bench", "allreduce", "--transport", transport)
    return result, [next(row["median_us"] for row in result["sizes"] if row["kib"] * 1024 == size) for size in SIZES]


def lines_of(command, env=None):
    """JSON lines of a peer, one for each size; None with the reason if it cannot run."""
    out = subprocess.run(command, cwd=ROOT, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if out.returncode != 0:
        return None, out.stderr.strip()[-400:]
    rows = [json.loads(line) for line in out.stdout.splitlines() if line.startswith("{")]
    return [row["median_us"] for row in rows], None


def open_mpi(folder):
    if not shutil.which("mpicc") or not shutil.which("mpirun"):
        return [(name, None, "mpicc and mpirun are not there (apt-get install openmpi-bin libopenmpi-dev)")
                for name, _ in MPI]
    program = os.path.join(folder, "mpi_allreduce")
    subprocess.run(["mpicc", "-O2", "-o", program, os.path.join(ROOT, "bench/peers/mpi_allreduce.c")], check=True)
    root = ["--allow-run-as-root"] if os.geteuid() == 0 else []
    out = []
    for name, choice in MPI:
        command = ["mpirun", *root, "-np", "2", "--oversubscribe", *choice, program, str(ROUNDS), *map(str, SIZES)]
        out.append((name, *lines_of(command)))
    return out


def gloo():
    folder = os.environ.get("TT_BENCH_VENVS") or os.path.join(ROOT, "bench", ".venvs")
    python = os.path.join(folder, "sb3", "bin", "python")
    if not os.access(python, os.X_OK):
        return ("torch gloo", None, "no torch here (bench/peers/sb3_zoo.py --install brings it)")
    return ("torch gloo", *lines_of([python, os.path.join(ROOT, "bench/peers/gloo_allreduce.py"), str(ROUNDS),
                                     *map(str, SIZES)]))


def measure(tutti, _args, _machine):
    raw, medians = ours(tutti, "memory")
    sent, sent_medians = ours(tutti, "ipc")
    peers = open_mpi(tutti.folder) + [gloo()]
    rows = [["tutti, shared memory", *medians], ["tutti, aggregator over ipc", *sent_medians]]
    rows += [[name, *(values or [None] * len(SIZES))] for name, values, _ in peers]
    for name, _, why in peers:
        if why:
            rows.append(["  %s: %s" % (name, why.splitlines()[-1]), "", ""])
    return {"result": raw, "sent": sent, "peers": [{"name": name, "median_us": values, "why": why} for name, values, why in peers],
            "tables": [{"columns": ["median of %d, us" % ROUNDS, "36 KiB", "1 MiB"], "rows": rows}],
            "checks": [check("%s, %s, us" % (size, how), us, limit, "<=")
                       for how, of in (("shared memory", medians), ("ipc", sent_medians))
                       for size, us, limit in zip(("36 KiB", "1 MiB"), of, LIMITS)]}
