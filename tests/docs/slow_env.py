#!/usr/bin/env python3
"""The README's example, typed from the page: the boats are divided among as many collectors as it says, each of them plays, and the weights are the
same. How much quicker that is bench/ measures."""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "e2e"))
from rig import ENDLESS, wait_for  # noqa: E402

SOURCE, TUTTI = os.environ["TT_SOURCE_DIR"], os.environ["TUTTI"]
BOATS = 16
BATCH = BOATS * 64  # env steps; with one collector each takes a millisecond
STEPS = 3 * BATCH


def commands():
    with open(os.path.join(SOURCE, "README.md"), encoding="utf-8") as file:
        block = re.search(r"(?m)^    cd docs/examples/env\n(?:    .+\n)+", file.read())
    if not block:
        sys.exit("README.md: no block that begins with cd docs/examples/env")
    return [line.split("#")[0].strip() for line in block[0].splitlines()]


def run(line, folder, env):
    print(line, flush=True)
    done = subprocess.run(line, shell=True, cwd=folder, env=env, capture_output=True, text=True, timeout=100, check=False)
    if done.returncode != 0:
        sys.exit(f"{line}: exit {done.returncode}: {done.stderr}")
    return done.stdout


def play(line, count, run_dir, folder, env):
    """A run that goes on until each of so many collectors, however late it has started, has boats and a batch has been played with them."""
    def status():
        done = subprocess.run([TUTTI, "status", run_dir, "--output", "json"], env=env, capture_output=True, text=True, check=False)
        return json.loads(done.stdout) if done.returncode == 0 else None

    def all_in():
        members = (status() or {}).get("members", [])
        return len([member for member in members if member.get("env_count")]) == count

    def played():
        return (status() or {}).get("env_steps") or 0
    run(f"{line} --detach --run-dir {run_dir} --set {ENDLESS}", folder, env)
    try:
        wait_for(all_in, f"{count} collectors with boats")
        end = played() + 3 * BATCH  # two may have been begun without them
        wait_for(lambda: played() >= end, f"{end} steps of {count} collectors")
    finally:
        run(f"tutti stop {run_dir}", folder, env)


def check_all_play(run_dir, count):
    """By their logs: each collector has boats of its own, together all of them, and has played."""
    boats = []
    for index in range(count):
        with open(os.path.join(run_dir, "logs", f"collector-{index}.log"), encoding="utf-8") as file:
            log = file.read()
        ranges, steps = re.findall(r"envs (\d+)\.\.(\d+)", log), re.search(r"leaving after (\d+) env steps", log)
        if not ranges or not steps or int(steps[1]) == 0:
            sys.exit(f"collector {index} of {count} has not played: {log}")
        boats += range(int(ranges[-1][0]), int(ranges[-1][1]) + 1)
    if sorted(boats) != list(range(BOATS)):
        sys.exit(f"boats of {count} collectors: {boats}")


def main():
    with tempfile.TemporaryDirectory() as top:
        folder = os.path.join(top, "docs", "examples", "env")
        shutil.copytree(os.path.join(SOURCE, "docs", "examples", "env"), folder, ignore=shutil.ignore_patterns("*.so", "runs"))
        for name in ("collector", "common"):
            os.symlink(os.path.join(SOURCE, name), os.path.join(top, name))
        env = dict(os.environ, PATH=os.path.dirname(TUTTI) + os.pathsep + os.environ["PATH"], XDG_STATE_HOME=top)
        into, build, *runs = commands()
        if into != "cd docs/examples/env" or not build.startswith("cc ") or len(runs) < 2:
            sys.exit(f"README.md: not the lines that this test knows: {into}, {build}, {runs}")
        run(build, folder, env)
        ends = {}
        lines = {int(re.search(r"collector\.replicas=(\d+)", line)[1]): line for line in runs}
        for count, line in lines.items():
            ends[count] = json.loads(run(f"{line} --output json --set stop.env_steps={STEPS}", folder, env))
        hashes = {end["weights_sha256"] for end in ends.values()}
        if len(hashes) != 1:
            sys.exit(f"different weights: {ends}")
        if (min(ends), max(ends)) != (1, BOATS):
            sys.exit(f"README.md: from one collector to one for each boat, not {sorted(ends)}")
        for count, line in lines.items():
            run_dir = os.path.join(top, f"with-{count}")
            play(line, count, run_dir, folder, env)
            check_all_play(run_dir, count)


if __name__ == "__main__":
    main()
