"""How long a run of Gymnasium's environments stands still when its collectors are scaled, and what it starts for that."""
import json
import os
import statistics
import time

from kit.processes import family
from kit.report import progress
from kit.tutti import Broken, Tutti

from suite.gym import PYTHON

ABOUT = "`tutti scale RUN collector=2`, then 1, with gym: environments: how long no update is made, Python processes started"
PONG = "{id: 'gym:ALE/Pong-v5', args: {obs_type: ram, repeat_action_probability: 0}}"
GAMES = [("CartPole-v1", "gym:CartPole-v1"), ("ALE/Pong-v5 (ram)", PONG), ("HalfCheetah-v5", "gym:HalfCheetah-v5")]
JOB = """
name: scaled
env: %s
num_envs: 8
num_steps: 32
lag: 1
algorithm: {name: ppo, epochs: 1, minibatch_size: 64}
collector: {replicas: 1}
"""
TURNS, AROUND, LOOK_S, DEADLINE_S = 5, 20, 0.01, 120


def workers(root):
    """Process ids of the Python workers below it: children of collectors, and not what they fork for a moment to find a library."""
    parents = {}
    for pid in family(root):
        try:
            with open("/proc/%d/cmdline" % pid, "rb") as line, open("/proc/%d/stat" % pid) as stat:
                if b"tutti_env" in line.read():
                    parents[pid] = int(stat.read().rpartition(")")[2].split()[1])
        except OSError:
            pass  # it ended meanwhile
    return {pid for pid, parent in parents.items() if parent not in parents}


class Run:
    """One that goes on until it is ended: when its updates were made, and which workers it has had."""

    def __init__(self, tutti, env):
        config = os.path.join(tutti.folder, "scaled.yaml")
        with open(config, "w") as file:
            file.write(JOB % env)
        self.tutti = tutti
        self.at, self.began = 0, time.monotonic()  # wall_s counts from there, but for a moment
        self.process = tutti.start_run(config, 1, "stop.env_steps=1000000000")
        self.folder = tutti.run_dir
        self.times, self.seen, self.rest = [], set(), b""  # times: of updates, since the run began

    def look(self):
        """Lines of metrics.jsonl since the last look, and workers."""
        if self.process.poll() is not None:
            raise Broken("the run ended: %s" % open(self.tutti.words).read()[-500:])
        try:
            with open(os.path.join(self.folder, "metrics.jsonl"), "rb") as file:
                file.seek(self.at)
                new = file.read()
        except FileNotFoundError:
            new = b""
        self.at += len(new)
        *lines, self.rest = (self.rest + new).split(b"\n")
        self.times += [json.loads(line)["wall_s"] for line in lines]
        self.seen |= workers(self.process.pid)

    def until(self, done, what):
        end = time.monotonic() + DEADLINE_S
        while not done():
            if time.monotonic() > end:
                raise Broken("%s: not within %d s" % (what, DEADLINE_S))
            time.sleep(LOOK_S)
            self.look()

    def rosters(self):
        """Of collector 0: how many it has taken."""
        with open(os.path.join(self.folder, "logs", "collector-0.log")) as log:
            return sum("epoch " in line and ": envs " in line for line in log)

    def scale(self, collectors):
        """From the command on: until the longest pause between two updates ended, how long that was, workers started."""
        rosters, known = self.rosters(), set(self.seen)
        start = time.monotonic() - self.began
        self.tutti.text("scale", self.folder, "collector=%d" % collectors)
        self.until(lambda: self.rosters() > rosters, "a roster of %d collectors" % collectors)
        taken = time.monotonic() - self.began  # lines are written in bundles: those of before may come yet
        self.until(lambda: sum(made > taken for made in self.times) >= AROUND, "updates with %d collectors" % collectors)
        marks = [start, *(made for made in self.times if made > start)]
        pause, end = max((b - a, b) for a, b in zip(marks, marks[1:]))
        return {"to": collectors, "until_s": end - start, "pause_s": pause, "started": len(self.seen - known)}


def turn(tutti, env):
    run = Run(tutti, env)
    try:
        run.until(lambda: len(run.times) >= AROUND, "the first updates")
        return [run.scale(2), run.scale(1)]
    finally:
        Tutti.end(run.process)
        tutti.forget()


def measure(tutti, _args, _machine):
    if not os.access(PYTHON, os.X_OK):
        raise Broken("build/venv-gym is not there; tools/test-venv makes it")
    tutti.env.update(TT_PYTHON=PYTHON, PYTHONDONTWRITEBYTECODE="1")
    raw, rows = [], []
    for name, env in GAMES:
        turns = []
        for number in range(TURNS):
            progress("%s, turn %d of %d" % (name, number + 1, TURNS))
            turns.append(turn(tutti, env))
        progress("")
        raw.append({"env": name, "turns": turns})
        for i, way in enumerate(("1 -> 2", "2 -> 1")):
            middle = {key: statistics.median(each[i][key] for each in turns) for key in ("until_s", "pause_s", "started")}
            rows.append([name, way, middle["until_s"], middle["pause_s"], middle["started"]])
    return {"result": raw, "checks": [], "tables": [
        {"columns": ["8 envs of", "collectors", "until it goes on, s", "no update for, s", "Python started"], "rows": rows}]}
