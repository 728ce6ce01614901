#!/usr/bin/env python3
"""docs/guide/gymnasium.md, typed: its files are written and its commands run, with the Python of build/venv-gym in the place of the one
that the page makes."""

import os
import re
import shutil
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.environ["TT_SOURCE_DIR"], "tests"))
import pythons  # noqa: E402

SOURCE, TUTTI = os.environ["TT_SOURCE_DIR"], os.environ["TUTTI"]
VENV = pythons.folder_of("venv-gym")


def page():
    with open(os.path.join(SOURCE, "docs", "guide", "gymnasium.md"), encoding="utf-8") as file:
        return file.read()


def main():
    text = page()
    files = re.findall(r"```(?:yaml|python)\n# (\S+)\n(.*?)```", text, re.DOTALL)
    prose = re.sub(r"^```.*?^```", "", text, flags=re.M | re.S)
    commands = [line.split("#")[0].strip() for line in re.findall(r"^    (tutti .*)$", prose, re.M)]
    commands += [f"tutti {word} {name}" for name, _ in files if name.endswith(".yaml") for word in ("check", "run")
                 if f"tutti {word} {name}" not in commands]
    assert len(files) == 3 and len(commands) >= 7, (files, commands)
    folder = tempfile.mkdtemp(prefix="tt-gym-page-")
    env = dict(os.environ, VIRTUAL_ENV=VENV, XDG_STATE_HOME=os.path.join(folder, "state"), PYTHONDONTWRITEBYTECODE="1",
               PATH=os.path.dirname(TUTTI) + ":" + os.environ["PATH"])
    env.pop("TT_PYTHON", None)
    failed = 0
    try:
        for name, content in files:
            with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
                file.write(content)
        for command in commands:
            done = subprocess.run(command, shell=True, cwd=folder, env=env, capture_output=True, text=True, timeout=200, check=False)
            print(f"{'ok' if done.returncode == 0 else 'FAILED'}  {command}")
            failed += done.returncode != 0
            if done.returncode != 0:
                print(done.stdout[-1500:], done.stderr[-3000:])
    finally:
        shutil.rmtree(folder)
    sys.exit(1 if failed else 0)


main()
