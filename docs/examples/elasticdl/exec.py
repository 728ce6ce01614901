"""A Tutti run as a task: worker 0 has the coordinator, each worker a learner and a collector, each parameter server an aggregator.

What all members need lies in the working directory: the file `key`, made by `tutti key`. TUTTI_CONFIG is a config's name or file."""
import json
import os
import signal
import subprocess
import sys

config = json.loads(os.environ["TF_CONFIG"])
cluster, task = config["cluster"], config["task"]
workers, servers = int(os.environ["NUM_WORKERS"]), len(cluster.get("ps", []))
# Learners are summed by aggregators. Without parameter servers the first worker has one, where there is more than one learner.
aggregators = servers or (1 if workers > 1 else 0)
tutti = os.environ.get("TUTTI", "tutti")
first = "tcp://" + cluster["worker"][0]
host, port = cluster["worker"][0].rsplit(":", 1)
# A pod has a name there, which only others can use: it listens at every address of its own.
listen = first if host.startswith("127.") else f"tcp://*:{port}"
key = os.path.abspath("key")

coordinator = [tutti, "coordinator", "--config", os.environ.get("TUTTI_CONFIG", "cartpole-ppo"), "--run", f"runs/elasticdl-{os.getpid()}",
               "--key", key, "--set", f"coordinator.listen={listen}", "--set", f"learner.replicas={workers}",
               "--set", f"collector.replicas={workers}", "--set", f"aggregator.replicas={aggregators}"]


def role(name):
    return [tutti, name, "--coordinator", first, "--key", key]


commands = [role("aggregator")] if task["type"] == "ps" else [role("learner"), role("collector")]
if task["type"] == "worker" and task["index"] == 0:
    commands.insert(0, coordinator)
    if aggregators and not servers:
        commands.append(role("aggregator"))

processes = {process.pid: process for process in map(subprocess.Popen, commands)}


def end(*_):
    for process in processes.values():
        process.terminate()


# Who fails first says with which code this ends, and the others are ended: they would wait for it. The last line is the task's reason.
signal.signal(signal.SIGTERM, end)
code, why = 0, ""
while processes:
    pid, status = os.wait()
    ended = processes.pop(pid)
    failed = os.waitstatus_to_exitcode(status) & 0xFF
    if failed and not code:
        code, why = failed, f"tutti {ended.args[1]} ended with {failed}, as it says above"
        end()
if why:
    print(why, flush=True)
sys.exit(code)
