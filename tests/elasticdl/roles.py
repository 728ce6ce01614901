#!/usr/bin/env python3
"""docs/examples/elasticdl/exec.py: Tutti's own roles as a task's program, with the weights of `tutti run` by either strategy."""
import json
import os
import pathlib
import re
import shutil
import subprocess

from rig import DEADLINE, TUTTI, Server, main, wait

EXAMPLE = pathlib.Path(os.environ["TT_SOURCE_DIR"]) / "docs/examples/elasticdl/exec.py"
BATCH = 16 * 64
# A run begins without who is late, and who is held up for a lease is out: this one goes on until it is stopped, with leases that last.
JOB = """env: CartPole-v1
num_envs: 16
num_steps: 64
network: {hidden: [32, 32]}
algorithm: {name: ppo, learning_rate: 3e-3, epochs: 2, minibatch_size: 64}
learner: {shards: 2}
net: {lease_ms: 60000}
stop: {env_steps: 1G}
"""


def make_key(folder):
    key = folder / "key"
    key.write_text(subprocess.run([TUTTI, "key"], capture_output=True, text=True, check=True).stdout)
    key.chmod(0o600)


def in_all(logs, words):
    """Is this in all of these files?"""
    return all(path.exists() and words in path.read_text() for path in logs)


def env_steps(run):
    done = subprocess.run([TUTTI, "status", run, "--output", "json"], capture_output=True, text=True, timeout=DEADLINE, check=False)
    return json.loads(done.stdout)["env_steps"] or 0 if done.returncode == 0 else 0


def train(folder, server, name, *args, servers=0):
    """A task of two workers that goes on until all its roles are in, and is stopped then: (its result, its members' logs)."""
    before = set(folder.glob("runs/*"))
    subprocess.run([TUTTI, "submit", "--master", server.url, "--worker-num", "2", "--task", name, *map(str, args)], capture_output=True, timeout=DEADLINE, check=True)
    task = f"/status?name={name}"
    logs = {member["name"]: server.run / f"{name}-{server.json(task)['id']}" / member["name"] / "outputs.log" for member in server.json(task)["members"]}
    over = lambda: server.json(task)["state"] in ("succeeded", "failed")
    everybody = f"2 collectors, 2 learners, {servers or 1} aggregators"
    wait("all of its roles", lambda: over() or in_all([logs["worker-0"]], everybody) and in_all([logs[f"ps-{i}"] for i in range(servers)], "in as aggregator/"))
    assert not over(), (server.json(task), server.said())
    (run,) = set(folder.glob("runs/*")) - before
    last = env_steps(run) + 40 * BATCH
    wait("what they learn", lambda: over() or env_steps(run) >= last)
    wait("tutti stop", lambda: over() or subprocess.run([TUTTI, "stop", run], capture_output=True, timeout=DEADLINE, check=False).returncode == 0)
    wait("its end", over)
    assert server.json(task)["state"] == "succeeded", server.json(task)
    return json.loads((run / "result.json").read_text()), {member: log.read_text() for member, log in logs.items()}


def alone(folder, name, updates):
    """The weights of `tutti run` at that version."""
    done = subprocess.run([TUTTI, "run", "job.yaml", "--run-dir", folder / f"alone-{name}", "--output", "json", "--set", f"stop.env_steps={(updates + 1) * BATCH}"],
                          cwd=folder, capture_output=True, text=True, timeout=240, check=True)
    return json.loads(done.stdout)["weights_sha256"]


def same_bits(folder):
    shutil.copy(EXAMPLE, folder)
    make_key(folder)
    (folder / "job.yaml").write_text(JOB)
    server = Server(folder, "master", TUTTI=TUTTI, TUTTI_CONFIG="job.yaml")
    ring, ring_logs = train(folder, server, "ring", "--strategy", "AllReduce")
    servers, server_logs = train(folder, server, "servers", "--strategy", "ParameterServer", "--ps-num", 2, servers=2)
    assert server.end() == 0
    for name, result in (("ring", ring), ("servers", servers)):
        assert result["weights_sha256"] == alone(folder, name, result["updates"]), result
    for logs in (ring_logs, server_logs):
        for member in ("worker-0", "worker-1"):
            assert "learner: asked to end: tutti stop" in logs[member] and re.search("collector: leaving after .*: tutti stop", logs[member]), (member, logs[member])


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
