#!/usr/bin/env python3
"""The README's example, typed from the page: more collectors make a slow environment quicker, with the same weights."""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

SOURCE, TUTTI = os.environ["TT_SOURCE_DIR"], os.environ["TUTTI"]
STEPS = 3072  # a batch is 1024 of them; with one collector each takes a millisecond


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
        for line in runs:
            count = int(re.search(r"collector\.replicas=(\d+)", line)[1])
            ends[count] = json.loads(run(f"{line} --output json --set stop.env_steps={STEPS}", folder, env))
        hashes = {end["weights_sha256"] for end in ends.values()}
        if len(hashes) != 1:
            sys.exit(f"different weights: {ends}")
        few, many = min(ends), max(ends)
        if ends[many]["sps"] < 2 * ends[few]["sps"]:
            sys.exit(f"{many} collectors are not twice as fast as {few}: {ends}")


if __name__ == "__main__":
    main()
