#!/usr/bin/env python3
"""The example with parts, a mask and an argument, built and trained as its config says: it learns, whatever the number of
collectors; and an argument that it does not take is refused."""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

SOURCE, TUTTI = os.environ["TT_SOURCE_DIR"], os.environ["TUTTI"]
SANITIZED = bool(os.environ.get("TT_SANITIZE"))
STEPS = 6000 if SANITIZED else 60000  # the former is too short to learn anything


def run(line, folder, env, code=0):
    print(line, flush=True)
    done = subprocess.run(line, shell=True, cwd=folder, env=env, capture_output=True, text=True, timeout=250, check=False)
    if done.returncode != code:
        sys.exit(f"{line}: exit {done.returncode}: {done.stderr}")
    return done.stdout if code == 0 else done.stderr


def commands(folder):
    with open(os.path.join(folder, "four.yaml"), encoding="utf-8") as file:
        lines = re.search(r"(?m)^#   (cc .+) && (tutti run .+)$", file.read())
    if not lines:
        sys.exit("four.yaml does not say how to build and to train it")
    return lines.groups()


def main():
    with tempfile.TemporaryDirectory() as top:
        folder = os.path.join(top, "docs", "examples", "env")
        shutil.copytree(os.path.join(SOURCE, "docs", "examples", "env"), folder, ignore=shutil.ignore_patterns("*.so", "runs"))
        for name in ("collector", "common"):
            os.symlink(os.path.join(SOURCE, name), os.path.join(top, name))
        env = dict(os.environ, PATH=os.path.dirname(TUTTI) + os.pathsep + os.environ["PATH"], XDG_STATE_HOME=top)
        build, train = commands(folder)
        run(build, folder, env)
        line = f"{train} --output json --set env.args.skill=0 --set stop.env_steps={STEPS}"
        ends = [json.loads(run(f"{line} --set collector.replicas={count}", folder, env)) for count in (1, 3)]
        if ends[0]["weights_sha256"] != ends[1]["weights_sha256"]:
            sys.exit(f"different weights: {ends}")
        # against an opponent who drops at random, another who does so wins as often as not
        if not SANITIZED and not ends[0]["return_mean"] > 0.6:
            sys.exit(f"it has not learned: {ends[0]}")
        said = run(f"{train} --set env.args.skil=0", folder, env, code=78)
        if "'skill'" not in said:
            sys.exit(f"a wrong argument: {said}")


if __name__ == "__main__":
    main()
