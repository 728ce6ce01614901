#!/usr/bin/env python3
"""The guide's page, typed: its program is written, the commands of its first section run as they stand, but on a free port."""
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess

from rig import DEADLINE, TUTTI, ask, main, wait

PAGE = pathlib.Path(os.environ["TT_SOURCE_DIR"]) / "docs/guide/elasticdl.md"


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def typed(folder):
    if not shutil.which("curl"):
        raise SystemExit(77)
    port = free_port()
    text = PAGE.read_text().split("## A first task\n")[1].split("\n## ")[0]
    promised = re.search(r"--wait\n\n```\n(.*?)^```", text, re.M | re.S).group(1)
    (folder / "exec.py").write_text(re.search(r"^```python\n# exec.py\n(.*?)^```", text, re.M | re.S).group(1))
    outside = re.sub(r"^```.*?^```", "", text, flags=re.M | re.S)
    commands = re.findall(r"^    (\S[^\n]*)$", outside, re.M)
    assert len(commands) == 7, commands
    env = {**os.environ, "PATH": os.path.dirname(TUTTI) + ":" + os.environ["PATH"]}
    assert commands[0] == "tutti master"
    master = subprocess.Popen([TUTTI, "master", "--listen", f"127.0.0.1:{port}"], cwd=folder, env=env, stderr=subprocess.PIPE, text=True)
    try:
        wait("the master", lambda: (folder / "runs/master-1/master.json").exists())
        said = []
        for command in commands[1:]:
            line = command.replace("7897", str(port)).replace("tutti submit", f"tutti submit --master http://127.0.0.1:{port}")
            done = subprocess.run(line, shell=True, cwd=folder, env=env, capture_output=True, text=True, timeout=DEADLINE, check=False)
            assert done.returncode == 0, (line, done)
            said.append(done.stdout.replace(str(port), "7897"))
        # states that were too short to be seen may lack
        lines = promised.splitlines()
        assert said[0].splitlines()[:4] == lines[:4] and said[0].splitlines()[-1] == lines[-1], said[0]
        assert [line for line in said[0].splitlines() if line not in lines and line != "ending"] == [], said[0]
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
