#!/usr/bin/env python3
"""The README's picture can be made again: its script gives a picture that holds what the block shows."""

import os
import re
import subprocess
import sys
import tempfile
import xml.etree.ElementTree

SOURCE, TUTTI = os.environ["TT_SOURCE_DIR"], os.environ["TUTTI"]
WANTED = ["tutti run configs/acrobot-ppo.yaml", "acrobot-ppo-1", "return", "steps", "losses", "entropy", "time", "collector",
          "of the time"]


def texts(path):
    return [node.text for node in xml.etree.ElementTree.parse(path).iter("{http://www.w3.org/2000/svg}text")]


def check(path):
    said = "\n".join(texts(path))
    missing = [word for word in WANTED if word not in said]
    if missing or not re.search(r"\d\d:\d\d:\d\d", said):
        sys.exit(f"{path}: {missing or 'a clock'} missing in {said}")


def main():
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "run.svg")
        subprocess.run([os.path.join(SOURCE, "tools", "screenshot"), path, TUTTI], check=True, timeout=300)
        check(path)
        left = [name for name in os.listdir(folder) if name != "run.svg"]
        if left:
            sys.exit(f"left behind: {left}")
    check(os.path.join(SOURCE, "docs", "images", "run.svg"))


if __name__ == "__main__":
    main()
