"""Gymnasium's environments by worker processes, in turns with Gymnasium's own ways of moving many at once."""
import json
import os
import statistics
import subprocess
import sys

from kit.machine import ROOT
from kit.report import check, progress
from kit.tutti import Broken, Tutti
from suite.peers import install

ABOUT = "`tutti bench envs gym:ID` beside SyncVectorEnv, AsyncVectorEnv, EnvPool and ALE's own: 0.8 of processes that wait for nobody"
PYTHON = os.path.join(ROOT, "build/venv-gym/bin/python3")
SCRIPT = os.path.join(ROOT, "bench/peers/gym_vector.py")
NATIVE = os.path.join(ROOT, "bench/peers/native_vector.py")
GAMES = [("CartPole-v1", 64), ("ALE/Pong-v5", 8), ("HalfCheetah-v5", 8)]
PEERS = [("sync", "SyncVectorEnv"), ("async", "AsyncVectorEnv"), ("ceiling", "processes that wait for nobody")]
OTHERS = [("envpool", "EnvPool, frames made ready"), ("ale", "ALE's own, frames made ready")]  # written in C++
TURNS, SECONDS = 3, 3


def command(kind, name, count):
    if kind in dict(OTHERS):
        return [sys.executable, NATIVE, "--kind", kind, "--env", name, "--count", str(count), "--seconds", str(SECONDS)]
    return [PYTHON, SCRIPT, kind, name, str(count), str(SECONDS)]


def kinds(name):
    """Those of the peers that have this environment, with their titles."""
    atari = name.startswith("ALE/")
    return PEERS + [(kind, title if atari else title.split(",")[0]) for kind, title in OTHERS if atari or kind != "ale"]


def peer(tutti, kind, name, count):
    """A process group of its own, that ends with us."""
    process = subprocess.Popen(command(kind, name, count), cwd=tutti.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                               start_new_session=True)
    try:
        out, err = process.communicate(timeout=120)
    except subprocess.TimeoutExpired:
        raise Broken("%s %s: no end within 120 s" % (kind, name)) from None
    finally:
        Tutti.end(process)
    if process.returncode != 0:
        raise Broken("%s %s: %s" % (kind, name, (err.strip().splitlines() or ["exit %d" % process.returncode])[-1]))
    return json.loads(out.splitlines()[-1])["steps_per_s"]


def ours(tutti, name, count):
    result = tutti.json("bench", "envs", "gym:" + name, "--num-envs", str(count), "--seconds", str(SECONDS))
    return result["envs"][0]["steps_per_s"]


def measure(tutti, _args, _machine):
    if not os.access(PYTHON, os.X_OK):
        raise Broken("build/venv-gym is not there; tools/test-venv makes it")
    install([os.path.basename(NATIVE)])
    tutti.env["TT_PYTHON"] = PYTHON
    tutti.env["PYTHONDONTWRITEBYTECODE"] = "1"
    raw, rows, checks = [], [], []
    for name, count in GAMES:
        turns = []
        for turn in range(TURNS):
            progress("%s, turn %d of %d" % (name, turn + 1, TURNS))
            turns.append({"tutti": ours(tutti, name, count), **{kind: peer(tutti, kind, name, count) for kind, _ in kinds(name)}})
        progress("")
        raw.append({"env": name, "count": count, "turns": turns})
        middle = {kind: statistics.median(turn[kind] for turn in turns) for kind in turns[0]}
        rows += [[name, count, "tutti", middle["tutti"]], *[[name, count, title, middle[kind]] for kind, title in kinds(name)]]
        checks.append(check("%s, of the ceiling" % name, middle["tutti"] / middle["ceiling"], 0.8, ">="))
    return {"result": raw, "tables": [{"columns": ["env", "envs", "moved by", "steps/s"], "rows": rows}], "checks": checks}
