#!/usr/bin/env python3
"""The guide's page, typed: its program is written, the commands of its first section run as they stand, but on a port of the master's choice."""
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess

from rig import DEADLINE, TUTTI, ask, main, wait

PAGE = pathlib.Path(os.environ["TT_SOURCE_DIR"]) / "docs/guide/elasticdl.md"
STATES = ["making workers", "configuring", "starting workers", "running", "ending", "succeeded"]


def typed(folder):
    if not shutil.which("curl"):
        raise SystemExit(77)
    text = PAGE.read_text().split("## A first task\n")[1].split("\n## ")[0]
    promised = re.search(r"--wait\n\n```\n(.*?)^```", text, re.M | re.S).group(1)
    (folder / "exec.py").write_text(re.search(r"^```python\n# exec.py\n(.*?)^```", text, re.M | re.S).group(1))
    outside = re.sub(r"^```.*?^```", "", text, flags=re.M | re.S)
    commands = re.findall(r"^    (\S[^\n]*)$", outside, re.M)
    assert len(commands) == 7, commands
    env = {**os.environ, "PATH": os.path.dirname(TUTTI) + ":" + os.environ["PATH"]}
    assert commands[0] == "tutti master"
    master = subprocess.Popen([TUTTI, "master", "--listen", "127.0.0.1:0"], cwd=folder, env=env, stderr=subprocess.PIPE, text=True)
    try:
        told = folder / "runs/master-1/master.json"
        wait("the master", told.exists)
        port = json.loads(told.read_text())["url"].rsplit(":", 1)[1]
        said = []
        for command in commands[1:]:
            line = command.replace("7897", port).replace("tutti submit", f"tutti submit --master http://127.0.0.1:{port}")
            done = subprocess.run(line, shell=True, cwd=folder, env=env, capture_output=True, text=True, timeout=DEADLINE, check=False)
            assert done.returncode == 0, (line, done)
            said.append(done.stdout.replace(port, "7897"))
        # a state that is short is not seen, and one that the page does not show may be
        lines, shown = promised.splitlines(), said[0].splitlines()
        assert shown[:4] == lines[:4] and shown[-1] == lines[-1], said[0]
        assert [state for state in STATES if state in shown] == shown[4:] and set(lines[4:]) <= set(STATES), said[0]
        assert said[1] == "worker 1 of 2 workers\n", said[1]
        assert said[3] == "worker 0 of 2 workers\n", said[3]
        assert said[4] == "OK", said[4]
        assert [task["name"] for task in json.loads(said[5])] == ["hello", "servers", "again"], said[5]
        wait("the last task", lambda: '"succeeded"' in ask(f"http://127.0.0.1:{port}/status?name=again")[1])
    finally:
        master.send_signal(signal.SIGINT)
        assert master.wait(DEADLINE) == 0
        master.stderr.close()


main([typed])
