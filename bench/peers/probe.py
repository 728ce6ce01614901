"""What every peer measures, the same way for all; and the environment that each runs in.

A peer script is started with any Python 3: prepare() makes the environment from the pinned list once, then runs the script
again inside it. Environments live in bench/.venvs, or under TT_BENCH_VENVS. A run prints one JSON line on stdout.
"""
import argparse
import json
import os
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
SOLVED = 475.0  # mean of the last 100 training episodes of CartPole-v1


def folder():
    return os.environ.get("TT_BENCH_VENVS") or os.path.join(os.path.dirname(HERE), ".venvs")


def interpreter(name):
    return os.path.join(os.path.abspath(folder()), name, "bin", "python")


def install(name):
    """The environment `name`, with the packages of <name>.txt and no others. A mark says that it is complete."""
    python = interpreter(name)
    wanted = os.path.join(HERE, name + ".txt")
    mark = os.path.join(os.path.dirname(os.path.dirname(python)), "packages.txt")
    with open(wanted) as file:
        packages = file.read()
    if os.path.exists(mark) and open(mark).read() == packages:
        return python
    print("%s: installing into %s" % (name, os.path.dirname(os.path.dirname(python))), file=sys.stderr)
    subprocess.run([sys.executable, "-m", "venv", "--clear", os.path.dirname(os.path.dirname(python))], check=True)
    subprocess.run([python, "-m", "pip", "install", "-q", "--no-deps", "-r", wanted], check=True)
    with open(mark, "w") as file:
        file.write(packages)
    return python


def arguments(about, steps, more):
    parser = argparse.ArgumentParser(description=about)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--steps", type=int, default=steps, help="environment steps of the run (default %(default)s)")
    parser.add_argument("--wall-s", type=float, default=60.0, help="end the run after so long (default %(default)s)")
    parser.add_argument("--install", action="store_true", help="make the environment, run nothing")
    if more:
        more(parser)
    return parser.parse_args()


def prepare(name, about, steps, more=None):
    """The arguments, inside the peer's environment: outside it, runs this script there and ends with its exit code. `more` adds its own to the parser."""
    args = arguments(about, steps, more)
    if os.path.realpath(sys.prefix) == os.path.realpath(os.path.dirname(os.path.dirname(interpreter(name)))):
        return args
    python = install(name)
    if args.install:
        sys.exit(0)
    sys.exit(subprocess.run([python, *sys.argv]).returncode)


def age():
    """Seconds since this process started, the interpreter's own start included (the kernel counts in 1/100 s)."""
    with open("/proc/self/stat") as file:
        ticks = int(file.read().rpartition(")")[2].split()[19])
    return time.clock_gettime(time.CLOCK_BOOTTIME) - ticks / os.sysconf("SC_CLK_TCK")


class Probe:
    """Episodes and steps as they happen. Call step() after every call of the environment, episode() at every end."""

    def __init__(self, peer, versions, wall_s):
        self.result = {"peer": peer, "versions": versions, "first_step_s": None, "solved_at_s": None,
                       "solved_at_steps": None}
        self.wall_s = wall_s
        self.returns = []
        self.best = None
        self.steps = 0

    def step(self, count):
        if self.result["first_step_s"] is None:
            self.result["first_step_s"] = age()
        self.steps += count

    def episode(self, value, at_s=None, at_steps=None):
        self.returns.append(value)
        if len(self.returns) < 100:
            return
        mean = sum(self.returns[-100:]) / 100
        self.best = mean if self.best is None else max(self.best, mean)
        if mean >= SOLVED and self.result["solved_at_s"] is None:
            self.result["solved_at_s"] = age() if at_s is None else at_s
            self.result["solved_at_steps"] = self.steps if at_steps is None else at_steps

    def over(self):
        """Whether the run has had its time."""
        return age() > self.wall_s

    def finish(self, after=dict, **more):
        """Prints the result; sps counts from the first step to now. `after` finds out the rest of it, for which no time is counted."""
        now = age()
        out = self.result
        out["env_steps"] = self.steps
        out["episodes"] = len(self.returns)
        out["sps"] = self.steps / (now - out["first_step_s"])
        out["wall_s"] = now
        out["return_mean"] = sum(self.returns[-100:]) / min(100, len(self.returns)) if self.returns else None
        out["return_mean_best"] = self.best
        out.update(more, **after())
        print(json.dumps(out), flush=True)
