#!/usr/bin/env python3
"""The guide's pages about Gymnasium's environments, typed: their files are written and their commands run, with the Python of build/venv-gym
in the place of the one that they make. Trainings that take long are some thousand steps here."""

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


PAGES = (  # a page of docs/guide, how many files and commands it has at least, and the env steps after which trainings end
    ("gymnasium", 3, 7, None),
    ("atari", 1, 8, 1024),
    ("mujoco", 1, 9, 4096),
)


def shorter(command, steps):
    """What is said last holds. A replay is learned from early enough; of many pictures once, and not four times."""
    if command.startswith("tutti bench"):
        return f"{command} -s 0.2"
    if not steps or not command.startswith("tutti run"):
        return command
    more = f" --set algorithm.learning_starts={steps - 128}" if "-dqn" in command or "-sac" in command or "-td3" in command else ""
    more += " --set algorithm.epochs=1" if "pong-ppo" in command else ""
    return f"{command} --set stop.env_steps={steps}{more}"


def failures(page, least_files, least_commands, steps):
    with open(os.path.join(SOURCE, "docs", "guide", page + ".md"), encoding="utf-8") as file:
        text = file.read()
    files = re.findall(r"```(?:yaml|python)\n# (\S+)\n(.*?)```", text, re.DOTALL)
    prose = re.sub(r"^```.*?^```", "", text, flags=re.M | re.S)
    commands = [line.split("#")[0].strip() for line in re.findall(r"^    (tutti .*)$", prose, re.M)]
    commands += [f"tutti {word} {name}" for name, _ in files if name.endswith(".yaml") for word in ("check", "run")
                 if f"tutti {word} {name}" not in commands]
    assert len(files) >= least_files and len(commands) >= least_commands, (page, files, commands)
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
            done = subprocess.run(shorter(command, steps), shell=True, cwd=folder, env=env, capture_output=True, text=True, timeout=200, check=False)
            print(f"{'ok' if done.returncode == 0 else 'FAILED'}  {command}")
            failed += done.returncode != 0
            if done.returncode != 0:
                print(done.stdout[-1500:], done.stderr[-3000:])
    finally:
        shutil.rmtree(folder)
    return failed


sys.exit(1 if sum(failures(*page) for page in PAGES) else 0)
