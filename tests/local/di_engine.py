#!/usr/bin/env python3
"""DI-engine 0.5.3 as it comes from PyPI asks `tutti run` for collectors and learners, as it asks an operator in a cluster: its
CommCoordinator, its LearnerAggregator, its OperatorServer, its Slave (tests/k8s/di_engine)."""

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request

sys.dont_write_bytecode = True
TUTTI = os.environ["TUTTI"]
SOURCE = os.environ["TT_SOURCE_DIR"]
HERE = f"{SOURCE}/tests/k8s/di_engine"
VENV = f"{SOURCE}/build/venv-ding"
PYTHON = f"{VENV}/bin/python"

if not os.path.exists(f"{VENV}/.complete"):
    print("SKIP: DI-engine is not there (tools/test-venv)")
    sys.exit(77)


def s_template(command, shared):
    return {"template": {"spec": {
        "terminationGracePeriodSeconds": 5,  # DI-engine's workers know no SIGTERM
        "containers": [{
            "name": "di-container", "command": [PYTHON, *command],
            "env": [{"name": "PYTHONUNBUFFERED", "value": "1"}, {"name": "PYTHONDONTWRITEBYTECODE", "value": "1"}],
            "volumeMounts": [{"name": "shared", "mountPath": "/shared"}]}],
        "volumes": [{"name": "shared", "hostPath": {"path": shared}}]}}}


def s_job(shared):
    return {"apiVersion": "diengine.opendilab.org/v1alpha1", "kind": "DIJob", "metadata": {"name": "ding"}, "spec": {
        "coordinator": s_template([f"{HERE}/coordinator.py", "2", "1"], shared),
        "collector": s_template([f"{HERE}/worker.py", "collector"], shared),
        "learner": s_template([f"{HERE}/worker.py", "learner"], shared),
        "aggregator": s_template([f"{HERE}/aggregator.py"], shared)}}


def s_read(path):
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except FileNotFoundError:
        return ""


def s_objects(text):
    """Of a log's lines those that are JSON objects; not one that is being written, or has another thread's word behind it."""
    found = []
    for line in text.splitlines():
        with contextlib.suppress(ValueError):
            found += [json.loads(line)] if line.startswith("{") else []
    return found


class Run:
    """A DIJob on this machine."""

    def __init__(self, directory, *options):
        self.shared = f"{directory}/shared"
        self.dir = f"{directory}/run"
        self.out = f"{directory}/out"
        os.mkdir(self.shared)
        with open(f"{directory}/job.json", "w", encoding="utf-8") as file:
            json.dump(s_job(self.shared), file)
        with open(self.out, "wb") as out:
            self.process = subprocess.Popen(  # pylint: disable=consider-using-with
                [TUTTI, "run", f"{directory}/job.json", "-d", self.dir, *options], stdout=out, stderr=out,
                env=dict(os.environ, XDG_STATE_HOME=directory))

    def log(self):
        return s_read(f"{self.dir}/logs/coordinator.log")

    def sees(self):
        """What the coordinator was last connected to."""
        return (s_objects(self.log()) or [{"collectors": [], "learners": [], "space": 0}])[-1]

    def wait_for(self, look, what):
        deadline = time.monotonic() + 180
        while time.monotonic() < deadline and self.process.poll() is None:
            if look():
                return
            time.sleep(0.05)
        if look():
            return
        sys.exit(f"waited in vain for {what() if callable(what) else what}\n{s_read(self.out)[-3000:]}\n{self.log()[-3000:]}")

    def await_connected(self, collectors, learners, besides=()):
        def look():
            seen = self.sees()
            return (len(seen["collectors"]), len(seen["learners"]), seen["space"]) == (collectors, learners, collectors) and \
                not set(besides) & set(seen["collectors"])
        self.wait_for(look, f"{collectors} collectors and {learners} learners to be connected")

    def ask(self, method, **body):
        """What `ding -m dist --add` does with curl."""
        server = re.search(r"^(127\.[0-9.]+) di-server\.di-system ", s_read(f"{self.dir}/hosts"), re.M)[1]
        data = json.dumps({"namespace": "default", "coordinator": "ding-coordinator", **body}).encode()
        request = urllib.request.Request(f"http://{server}:8080/v1alpha1/replicas", data, method=method)
        with urllib.request.urlopen(request, timeout=30) as answer:
            return json.load(answer)["data"]

    def coordinator(self):
        mark = f"TT_RUN_DIR={self.dir}".encode()
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{pid}/environ", "rb") as file:
                    env = file.read().split(b"\0")
            except OSError:
                continue
            if mark in env and b"KUBERNETES_POD_NAME=ding-coordinator" in env:
                return int(pid)
        return sys.exit("no coordinator runs")

    def end(self):
        os.kill(self.coordinator(), signal.SIGTERM)
        code = self.process.wait(60)
        if code != 0 or "Succeeded" not in s_read(self.out):
            sys.exit(f"exit code {code}\n{s_read(self.out)}")


def s_deaf(run):
    """The next worker that starts will never serve."""
    with open(f"{run.shared}/deaf", "w", encoding="utf-8"):
        pass


@contextlib.contextmanager
def s_impatient(run, role):
    """Meanwhile a role of DI-engine's tries the worker that never serves, which has started, for a second and not for minutes. The
    others stay patient: what is slow to start is not to be given up."""
    run.wait_for(lambda: not os.path.exists(f"{run.shared}/deaf"), "the worker that never serves to start")
    path = f"{run.shared}/impatient-{role}"
    with open(path, "w", encoding="utf-8"):
        pass
    yield
    os.unlink(path)


def s_unreachable_learner(run):
    """Of an aggregator that is asked for: it reports its learner, which never serves, and is connected to the one in its place."""
    s_deaf(run)
    name = run.ask("POST", learners={"replicas": 1, "gpus": "2"})["learners"][0].split(".")[0]
    log = lambda: s_read(f"{run.dir}/logs/{name}.log") or s_read(f"{run.dir}/logs/{name.removeprefix('ding-')}.log")
    lost = lambda: set(re.findall(r"Fail to connect to learner\(([^)]*)\)", log()))
    with s_impatient(run, "aggregator"):  # two addresses, one after the other
        run.wait_for(lambda: len(lost()) == 2, lambda: f"{name} to give its learner up: {log()[-2000:]}")
    never = lost()
    connected = lambda: [seen["learners"] for seen in s_objects(log())]
    run.wait_for(lambda: any(len(learners) == 2 for learners in connected()), f"{name} to have its two learners")
    seen = set(connected()[-1])
    if seen & never or "Failed to send failed list" in log():
        sys.exit(f"{seen} in place of {never}\n{log()[-3000:]}")


def s_play(run, deaf):
    run.await_connected(2, 1)
    more = run.ask("POST", collectors={"replicas": 1})["collectors"]
    run.await_connected(3, 1)
    if not set(more) <= set(run.sees()["collectors"]):
        sys.exit(f"{more} is not among {run.sees()}")
    gone = run.ask("DELETE", collectors={"replicas": 1})["collectors"]
    run.await_connected(2, 1, besides=gone)
    if deaf:  # the next worker that starts never serves; DI-engine tries it, for a second now, reports it, and gets another one
        s_deaf(run)
        never = run.ask("POST", collectors={"replicas": 1})["collectors"]
        with s_impatient(run, "coordinator"):
            run.wait_for(lambda: f"Fail to connect to collector({never[0]})" in run.log(), f"{never} to be given up")
        run.await_connected(3, 1, besides=never)
        s_unreachable_learner(run)
    run.end()


def main():
    for options in ((), ("--no-namespaces",)):
        with tempfile.TemporaryDirectory(prefix="tutti-ding-", ignore_cleanup_errors=True) as directory:
            run = Run(directory, *options)
            try:
                s_play(run, deaf=not options)  # where /shared is to be seen
            finally:
                run.process.kill()
                run.process.wait()
        print(f"{' '.join(options) or 'with names'}: ok")


if __name__ == "__main__":
    main()
