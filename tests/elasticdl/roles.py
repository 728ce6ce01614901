#!/usr/bin/env python3
"""docs/examples/elasticdl/exec.py: Tutti's own roles as a task's program, with the same weights by either strategy and by `tutti run`."""
import json
import os
import pathlib
import shutil
import subprocess

from rig import TUTTI, Server, main

EXAMPLE = pathlib.Path(os.environ["TT_SOURCE_DIR"]) / "docs/examples/elasticdl/exec.py"


def submit(server, *args):
    done = subprocess.run([TUTTI, "submit", "--master", server.url, "--wait", *map(str, args)], capture_output=True, text=True,
                          timeout=240)
    assert done.returncode == 0, (done, server.said())


def make_key(folder):
    key = folder / "key"
    key.write_text(subprocess.run([TUTTI, "key"], capture_output=True, text=True, check=True).stdout)
    key.chmod(0o600)


def same_bits(folder):
    shutil.copy(EXAMPLE, folder)
    make_key(folder)
    shutil.copy(EXAMPLE.parents[3] / "configs/cartpole-ppo.yaml", folder / "job.yaml")
    server = Server(folder, "master", TUTTI=TUTTI, TUTTI_CONFIG="job.yaml")
    submit(server, "--strategy", "AllReduce", "--worker-num", 2, "--task", "ring")
    submit(server, "--strategy", "ParameterServer", "--ps-num", 2, "--worker-num", 2, "--task", "servers")
    assert server.end() == 0
    results = [json.loads(path.read_text()) for path in folder.glob("runs/elasticdl-*/result.json")]
    assert len(results) == 2, results
    alone = subprocess.run([TUTTI, "run", "job.yaml", "--run-dir", str(folder / "alone"), "--output", "json"], cwd=folder,
                           capture_output=True, text=True, timeout=240, check=True)
    weights = {result["weights_sha256"] for result in [*results, json.loads(alone.stdout)]}
    assert len(weights) == 1, weights
    for name in ("ring-0", "servers-1"):
        for member in ("worker-0", "worker-1"):
            log = (server.run / name / member / "outputs.log").read_text()
            assert "leaving: finished" in log or "asked to end: finished" in log, (name, member, log)
    for member in ("ps-0", "ps-1"):  # ended with their task: what they still say of the end is chance
        log = (server.run / "servers-1" / member / "outputs.log").read_text()
        assert "in as aggregator/" in log, (member, log)


def lacking(folder):
    """No such config: the others do not wait for a coordinator that ended, and it is the task's reason."""
    shutil.copy(EXAMPLE, folder)
    make_key(folder)
    server = Server(folder, "master", TUTTI=TUTTI, TUTTI_CONFIG="there-is-none")
    done = subprocess.run([TUTTI, "submit", "--master", server.url, "--wait", "--worker-num", "2"], capture_output=True, text=True, timeout=240)
    assert done.returncode == 66 and "worker-0: exit code 66: tutti coordinator ended with 66, as it says above" in done.stderr, (done, server.said())
    assert server.end() == 0
    assert "tutti coordinator: no file 'there-is-none'" in (server.run / "default-0/worker-0/outputs.log").read_text()


main([same_bits, lacking])
