#!/usr/bin/env python3
"""TFJobs on this machine: replicas that find each other by TF_CONFIG, one that is killed and comes again where it was, how a run ends."""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

TUTTI = os.environ["TUTTI"]
SOURCE = os.environ["TT_SOURCE_DIR"]
SLOW = 4 if os.environ.get("TT_SANITIZE") else 1

# Listens where TF_CONFIG says, and says hello to everybody in it till all have answered; then worker 1 is killed once.
PROGRAM = r"""
import json, os, socket, sys, threading, time
config = json.loads(os.environ["TF_CONFIG"])
kind, index = config["task"]["type"], config["task"]["index"]
me = config["cluster"][kind][index]
listener = socket.create_server(("", int(me.rsplit(":", 1)[1])))
heard = set()
def serve():
    while True:
        connection, _ = listener.accept()
        heard.add(connection.makefile().readline().strip())
        connection.sendall(f"{kind}-{index}\n".encode())
        connection.close()
threading.Thread(target=serve, daemon=True).start()
peers = [(name, i, host) for name, hosts in config["cluster"].items() for i, host in enumerate(hosts)]
for name, i, host in peers:
    address, port = host.rsplit(":", 1)
    end = time.monotonic() + 60
    while True:
        try:
            with socket.create_connection((address, int(port)), 5) as connection:
                connection.sendall(f"{kind}-{index}\n".encode())
                answer = connection.makefile().readline().strip()
            if answer == f"{name}-{i}":
                break
        except OSError:
            pass
        if time.monotonic() > end:
            sys.exit(f"no {name}-{i} at {host}")
        time.sleep(0.05)
def await_(condition, words):
    end = time.monotonic() + 60
    while not condition():
        if time.monotonic() > end:
            sys.exit(words)
        time.sleep(0.05)
def lives(name):
    try:
        with open(os.path.join(sys.argv[1], name)) as file:
            return len(file.readlines())
    except FileNotFoundError:
        return 0
with open(os.path.join(sys.argv[1], f"{kind}-{index}"), "a") as file:
    file.write(me + "\n")
if lives("worker-1") < 2:
    await_(lambda: heard >= {f"{name}-{i}" for name, i, _ in peers}, f"heard of {heard} only")
if kind == "ps":
    time.sleep(3600)
if kind == "worker" and index == 1 and lives("worker-1") == 1:
    await_(lambda: lives("worker-0") and lives("ps-0"), "the others have not met")
    os.kill(os.getpid(), 15)
    time.sleep(60)
if index == 0:
    await_(lambda: lives("worker-1") == 2, "worker 1 has not come again")
"""


def check(condition, text):
    if not condition:
        sys.exit(f"FAILED: {text}")


def s_run(folder, replicas, name, *options, **spec):
    def template(argv):
        return {"spec": {"terminationGracePeriodSeconds": 5, "containers": [{"name": "tensorflow", "image": "x", "command": argv}]}}

    job = {"apiVersion": "kubeflow.org/v1", "kind": "TFJob", "metadata": {"name": name}, "spec": {
        "tfReplicaSpecs": {kind: {"replicas": count, "restartPolicy": policy, "template": template(argv)}
                           for kind, count, policy, argv in replicas}, **spec}}
    path = os.path.join(folder, f"{name}.json")
    with open(path, "w", encoding="utf-8") as file:
        json.dump(job, file)
    return subprocess.run([TUTTI, "run", path, "--run-dir", os.path.join(folder, name), *options], capture_output=True, text=True,
                          timeout=100 * SLOW, env={**os.environ, "XDG_STATE_HOME": folder, "TERM": "dumb"})


def s_status(folder, name):
    with open(os.path.join(folder, name, "job.json"), encoding="utf-8") as file:
        return json.load(file)["status"]


def s_meet(folder, name, *options):
    """All of them meet; worker 1 comes again with the address that the others have been told."""
    marks = os.path.join(folder, f"{name}-marks")
    os.mkdir(marks)
    argv = [sys.executable, "-c", PROGRAM, marks]
    done = s_run(folder, [("PS", 1, "Never", argv), ("Worker", 2, "ExitCode", argv)], name, *options)
    check(done.returncode == 0, f"{name}: {done.returncode}\n{done.stdout}{done.stderr}")
    with open(os.path.join(marks, "worker-1"), encoding="utf-8") as file:
        one, two = file.read().split()
    check(one == two, f"{name}: worker 1 was {one} and then {two}")
    check("Warning TFJobRestarting" in done.stdout + done.stderr, done.stdout)
    status = s_status(folder, name)
    last = status["conditions"][-1]
    check(last["type"] == "Succeeded" and status["restarts"] == 1, status)
    check(status["replicaStatuses"]["PS"] == {"succeeded": 1}, status)
    return one


# Worker 1 ends as it is told when the master, who has nothing to say, has failed once and come again.
OLD = r"""
import json, os, sys, time
task = json.loads(os.environ["TF_CONFIG"])["task"]
mark = os.path.join(sys.argv[1], task["type"])
if task["type"] == "master":
    if not os.path.exists(mark):
        open(mark, "w").close()
        sys.exit(9)
    open(mark + "-again", "w").close()
    time.sleep(3600)
end = time.monotonic() + 60
while not os.path.exists(os.path.join(sys.argv[1], "master-again")) and time.monotonic() < end:
    time.sleep(0.05)
sys.exit(int(sys.argv[2]) if task["index"] == 1 else 0)
"""


def s_run_old(folder, name, code, *options, env=None, **spec):
    marks = os.path.join(folder, f"{name}-marks")
    os.mkdir(marks)
    template = {"spec": {"restartPolicy": "Never", "terminationGracePeriodSeconds": 1, "containers": [
        {"name": "tensorflow", "image": "x", "command": [sys.executable, "-c", OLD, marks, str(code)]}]}}
    job = {"apiVersion": "tensorflow.org/v1alpha1", "kind": "TfJob", "metadata": {"name": name}, "spec": {
        "RuntimeId": "x7f2", "terminationPolicy": {"chief": {"replicaName": "WORKER", "replicaIndex": 1}},
        "replicaSpecs": [{"template": template}, {"tfReplicaType": "WORKER", "replicas": 2, "template": template}], **spec}}
    path = os.path.join(folder, f"{name}.json")
    with open(path, "w", encoding="utf-8") as file:
        json.dump(job, file, indent=1)
    return subprocess.run([TUTTI, "run", path, "--run-dir", os.path.join(folder, name), *options], capture_output=True, text=True,
                          timeout=100 * SLOW, env={**os.environ, "XDG_STATE_HOME": folder, "TERM": "dumb", **(env or {})})


def s_old(folder):
    """The first generation, by its first name."""
    done = s_run_old(folder, "old-well", 0)
    status = s_status(folder, "old-well")
    check(done.returncode == 0 and (status["state"], status["phase"]) == ("Succeeded", "Done"), f"{done.stdout}{done.stderr}{status}")
    done = s_run_old(folder, "old-ill", 5)
    status = s_status(folder, "old-ill")
    check(done.returncode == 5 and status["state"] == "Failed", f"{done.returncode}: {done.stdout}{done.stderr}{status}")
    check("old-ill-worker-x7f2-1 exited with code 5" in status["reason"], status)
    done = s_run_old(folder, "old-misspelt", 0, terminationPolicy={"chief": {"replicaname": "WORKER"}})
    check(done.returncode == 78 and "TFJobChief has no field 'replicaname'; did you mean 'replicaName'?" in done.stderr,
          f"{done.returncode}: {done.stderr}")
    s_servers(folder, "one", "train")
    s_servers(folder, "two", "distribute", "--no-namespaces")


# What the script of a parameter server asks of TensorFlow, of 1 or of 2.
TENSORFLOW = """
import json, os
class Server:
    def __init__(self, cluster, job_name, task_index, protocol):
        self.told = [cluster, job_name, task_index, protocol]
    def join(self):
        with open(os.path.join(os.environ["TOLD"], str(self.told[2])), "w") as file:
            json.dump(self.told, file)
class Names:
    ClusterSpec = dict
train = Names()
distribute = Names()
HAS.Server = Server
"""


def s_servers(folder, name, module, *options):
    """Parameter servers without a template, where a folder can be shown to them and where none can."""
    told = os.path.join(folder, f"{name}-told")
    os.makedirs(os.path.join(told, "bin"))
    os.symlink(sys.executable, os.path.join(told, "bin", "python"))
    with open(os.path.join(told, "tensorflow.py"), "w", encoding="utf-8") as file:
        file.write(TENSORFLOW.replace("HAS", module))
    done = s_run_old(folder, name, 0, *options, replicaSpecs=[{"tfReplicaType": "PS", "replicas": 2}], terminationPolicy={
        "chief": {"replicaName": "PS"}}, env={"PYTHONPATH": told, "TOLD": told, "PATH": f"{told}/bin:{os.environ['PATH']}"})
    check(done.returncode == 0, f"{done.returncode}: {done.stdout}{done.stderr}")
    with open(os.path.join(told, "0"), encoding="utf-8") as file:
        cluster, *rest = json.load(file)
    check(rest == ["ps", 0, "grpc"] and list(cluster) == ["ps"] and len(set(cluster["ps"])) == 2, f"{cluster} {rest}")
    check(all(re.fullmatch(r"(\S+-ps-x7f2-\d|127\.\S+):\d+", host) for host in cluster["ps"]), cluster)


def s_ends(folder):
    shell = ["/bin/sh", "-c"]
    done = s_run(folder, [("Worker", 2, "Never", [*shell, "exit 3"])], "fails")
    check(done.returncode == 3, f"{done.returncode}: {done.stdout}{done.stderr}")
    check("exited with code 3" in s_status(folder, "fails")["conditions"][-1]["message"], s_status(folder, "fails"))
    for name, policy, code, limit in (("killed", "Never", 137, {}), ("often", "ExitCode", 143, {"backoffLimit": 1})):
        # nobody comes in its place
        done = s_run(folder, [("Worker", 1, policy, [*shell, f"exit {code}"])], name, runPolicy=limit)
        check(done.returncode == code, f"{name}: {done.returncode}: {done.stdout}{done.stderr}")
    done = s_run(folder, [("Worker", 1, "Never", [*shell, 'test -z "${TF_CONFIG+x}"'])], "alone")
    check(done.returncode == 0, f"who is alone has a TF_CONFIG: {done.stdout}{done.stderr}")
    done = s_run(folder, [("Worker", 1, "Never", [*shell, "sleep 3600"])], "late",
                 runPolicy={"activeDeadlineSeconds": 1, "ttlSecondsAfterFinished": 5})
    check(done.returncode == 75, f"{done.returncode}: {done.stdout}{done.stderr}")
    check("ttlSecondsAfterFinished has no effect" in done.stdout + done.stderr, done.stdout)
    done = s_run(folder, [("Worker", 1, "Never", [*shell, "true"])], "misspelt", runPolicy={"backofLimit": 1})
    check(done.returncode == 78 and "TFJobRunPolicy has no field 'backofLimit'; did you mean 'backoffLimit'?" in done.stderr,
          f"{done.returncode}: {done.stderr}")
    done = s_run(folder, [("PS", 1, "Never", [*shell, "true"])], "nobody")
    check(done.returncode == 78 and "nobody says when the job is done" in done.stderr, f"{done.returncode}: {done.stderr}")


# --- docs/guide/tfjob.md, "Without a cluster"

def s_typed():
    """The commands of the page, without their comments."""
    with open(os.path.join(SOURCE, "docs/guide/tfjob.md"), encoding="utf-8") as file:
        section = re.search(r"^## Without a cluster\n(.*?)^## ", file.read(), re.M | re.S)[1]
    return [re.sub(r" +# .*", "", line.strip()) for line in re.findall(r"^    (.*)$", section, re.M)]


def s_page(folder):
    """Typed as they stand, in a tree like the reader's. For the last one the sample's workers last: as they are they end at once."""
    tree = os.path.join(folder, "tree")
    shutil.copytree(os.path.join(SOURCE, "k8s/samples"), os.path.join(tree, "k8s/samples"))
    env = {**os.environ, "XDG_STATE_HOME": tree, "TERM": "dumb", "PATH": f"{os.path.dirname(os.path.abspath(TUTTI))}:{os.environ['PATH']}"}

    def type_in(command):
        done = subprocess.run(["bash", "-c", command], cwd=tree, env=env, capture_output=True, text=True, timeout=100 * SLOW)
        check(done.returncode == 0, f"{command}: {done.returncode}: {done.stdout}{done.stderr}")
        return done.stdout + done.stderr

    run, look, scale = s_typed()
    said = type_in(run)
    check("succeeded" in said, said)
    check('"worker"' in type_in("tutti logs tf-config-1 worker-0"), "a worker has printed what it is told")
    check(type_in(look).endswith("the TFJob can be run\n"), "check")
    path = os.path.join(tree, run.split()[-1])
    with open(path, encoding="utf-8") as file:
        text = file.read()
    with open(path, "w", encoding="utf-8") as file:
        file.write(text.replace('echo "$TF_CONFIG"\'', 'echo "$TF_CONFIG"; exec sleep 3600\''))
    type_in("tutti rm --all")
    type_in(run.replace("run", "run --detach", 1))
    type_in(scale)
    end = time.monotonic() + 60 * SLOW
    while not re.search(r"worker +3 of 3", said := type_in("tutti status tf-config-1")):
        check(time.monotonic() < end, f"three workers: {said}")
    type_in("tutti stop tf-config-1")


def main():
    with tempfile.TemporaryDirectory(prefix="tt-tfjob-") as folder:
        s_meet(folder, "meet")
        address = s_meet(folder, "plain", "--no-namespaces")
        check(address.startswith("127."), address)
        s_ends(folder)
        s_old(folder)
        s_page(folder)
    print("ok")


if __name__ == "__main__":
    main()
