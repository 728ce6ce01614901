#!/usr/bin/env python3
"""DI-engine 0.5.3 as it comes from PyPI asks our operator for collectors and learners, from within pods, and gets them: its
CommCoordinator, its LearnerAggregator, its OperatorServer, its Slave (tests/k8s/di_engine)."""

import contextlib
import json
import os
import re
import subprocess
import sys

sys.dont_write_bytecode = True
import cluster
from cluster import check, wait_for

TUTTI = os.environ["TUTTI"]
SOURCE = os.environ["TT_SOURCE_DIR"]
HERE = f"{SOURCE}/tests/k8s/di_engine"
VENV = f"{SOURCE}/build/venv-ding"
PYTHON = f"{VENV}/bin/python"
SERVER = "http://10.89.0.1:8080"
PODS = "/api/v1/namespaces/default/pods"

cluster.require(full=True)
if not os.path.exists(f"{VENV}/.complete"):
    print("SKIP: DI-engine is not there (tools/test-venv)")
    sys.exit(77)


def s_base_prefix():
    return subprocess.run([PYTHON, "-c", "import sys; print(sys.base_prefix)"], capture_output=True, text=True,
                          check=True).stdout.strip()


def s_mounts(shared):
    """The machine's own Python in a pod: container path by host path."""
    return {"/usr": "/usr", "/lib": "/usr/lib", "/lib64": "/usr/lib64", s_base_prefix(): s_base_prefix(), VENV: VENV,
            HERE: HERE, "/shared": shared}


def s_template(command, shared):
    mounts = {to: source for to, source in s_mounts(shared).items() if to == "/usr" or not to.startswith("/usr/")}
    names = {to: f"v{number}" for number, to in enumerate(mounts)}
    return {"template": {"spec": {
        "terminationGracePeriodSeconds": 5,  # DI-engine's workers know no SIGTERM
        "containers": [{
            "name": "di-container", "image": "docker.io/local/busybox:1", "imagePullPolicy": "IfNotPresent",
            "command": [PYTHON, *command], "env": [{"name": "PYTHONUNBUFFERED", "value": "1"},
                                                   {"name": "PYTHONDONTWRITEBYTECODE", "value": "1"}],
            "volumeMounts": [{"name": names[to], "mountPath": to} for to in mounts]}],
        "volumes": [{"name": names[to], "hostPath": {"path": source}} for to, source in mounts.items()]}}}


def s_job(shared):
    return {"apiVersion": "diengine.opendilab.org/v1alpha1", "kind": "DIJob", "metadata": {"name": "ding"}, "spec": {
        "cleanPodPolicy": "Running",
        "coordinator": s_template([f"{HERE}/coordinator.py", "2", "1"], shared),
        "collector": s_template([f"{HERE}/worker.py", "collector"], shared),
        "learner": s_template([f"{HERE}/worker.py", "learner"], shared),
        "aggregator": s_template([f"{HERE}/aggregator.py"], shared)}}


def s_sees(k8s):
    """What the coordinator was last connected to."""
    lines = k8s.logs("ding-coordinator").splitlines()
    seen = [json.loads(line) for line in lines if line.startswith("{")]
    return seen[-1] if seen else {"collectors": [], "learners": [], "space": 0}


def s_await(k8s, collectors, learners, besides=()):
    """And a task for each collector: DI-engine counts those a moment after it has changed the list."""
    def look():
        seen = s_sees(k8s)
        return (len(seen["collectors"]), len(seen["learners"]), seen["space"]) == (collectors, learners, collectors) and \
            not set(besides) & set(seen["collectors"]) and seen
    try:
        return wait_for(look, f"{collectors} collectors and {learners} learners to be connected, {collectors} tasks")
    except cluster.Failed as error:
        log = k8s.kubectl("logs", "--tail=60", "ding-coordinator", check=False).stdout
        raise cluster.Failed(f"{error}; the coordinator's log ends so:\n{log}") from error


def s_ask(k8s, verb, **data):
    """DI-engine's OperatorServer, in the coordinator's pod: what `ding -m dist --add` does there with curl."""
    code = (f"import sys, json; sys.path.insert(0, {HERE!r}); import ding_parts; parts = ding_parts.load(); "
            "server = parts.OperatorServer(**parts.server_kwargs({})); server.set_worker_type('coordinator'); "
            f"print(json.dumps(server.{verb}(**json.loads({json.dumps(data)!r}))))")
    return json.loads(k8s.kubectl("exec", "ding-coordinator", "--", PYTHON, "-c", code).stdout)


def s_start(k8s):
    k8s.kubectl("apply", "-f", f"{SOURCE}/k8s/crd/dijob.yaml", "-f", f"{SOURCE}/k8s/crd/aggregatorconfig.yaml")
    wait_for(lambda: k8s.api("GET", "/apis/diengine.opendilab.org/v1alpha1/dijobs") is not None, "the kind to be served")
    k8s.await_kind("dijob")
    shared = os.path.join(k8s.directory, "shared")
    os.mkdir(shared)
    log = open(os.path.join(k8s.directory, "logs", "operator.log"), "wb")  # pylint: disable=consider-using-with
    k8s.exec_in([TUTTI, "operator", f"--server-address={SERVER}", "--gpus-per-node=2"], env={"KUBECONFIG": k8s.kubeconfig}, stderr=log)
    k8s.apply(s_job(shared))
    return shared


def s_deaf(k8s):
    """The next worker that starts will never serve."""
    with open(f"{k8s.shared}/deaf", "w", encoding="utf-8"):
        pass


@contextlib.contextmanager
def s_impatient(k8s, role):
    """Meanwhile a role of DI-engine's tries the worker that never serves, which has started, for a second and not for minutes. The
    others stay patient: what is slow to start is not to be given up."""
    wait_for(lambda: not os.path.exists(f"{k8s.shared}/deaf"), "the worker that never serves to start")
    path = f"{k8s.shared}/impatient-{role}"
    with open(path, "w", encoding="utf-8"):
        pass
    yield
    os.unlink(path)


def test_it_gets_what_it_asks_for(k8s):
    k8s.shared = s_start(k8s)
    seen = s_await(k8s, 2, 1)
    pods = sorted(pod["metadata"]["name"] for pod in k8s.get(PODS)["items"])
    urls = [f"{name}.default:{port}" for name in pods for role, port in (("collector", 22270), ("learner", 22271))
            if f"-{role}-" in name]
    check(sorted(seen["collectors"] + seen["learners"]) == sorted(urls), f"{seen} are the pods {urls}")


def test_more_and_fewer_while_it_runs(k8s):
    success, code, message, data = s_ask(k8s, "post_replicas", data={"collectors": {"replicas": 1}, "learners": {"replicas": 0}})
    check(success and code == 0 and message == "successfully create replicas" and len(data["collectors"]) == 1, f"{data}")
    seen = s_await(k8s, 3, 1)
    check(data["collectors"][0] in seen["collectors"], f"{seen} has {data}")
    url = f"{SERVER}/v1alpha1/replicas"
    code = ("import json, requests; print(requests.delete(%r, data=json.dumps({'namespace': 'default', 'coordinator': "
            "'ding-coordinator', 'collectors': {'replicas': 1}, 'learners': {'replicas': 0}})).text)" % url)
    gone = json.loads(k8s.kubectl("exec", "ding-coordinator", "--", PYTHON, "-c", code).stdout)
    check(gone["success"] and gone["message"] == "successfully delete replicas", f"{gone}")
    s_await(k8s, 2, 1, besides=gone["data"]["collectors"])


def test_a_replica_that_cannot_be_reached_is_replaced(k8s):
    s_deaf(k8s)
    _, _, _, data = s_ask(k8s, "post_replicas", data={"collectors": {"replicas": 1}, "learners": {"replicas": 0}})
    deaf = data["collectors"][0]
    log = lambda: k8s.logs("ding-coordinator")
    with s_impatient(k8s, "coordinator"):
        wait_for(lambda: f"Fail to connect to collector({deaf})" in log(), lambda: f"DI-engine to give {deaf} up: {log()}")
    s_await(k8s, 3, 1, besides=[deaf])
    wait_for(lambda: k8s.find(f"{PODS}/{deaf.split('.')[0]}") is None, "the deaf pod to be gone")
    check("Failed to s" not in log(), "no request of its was refused")


def test_an_aggregator_reports_a_learner_that_cannot_be_reached(k8s):
    k8s.set_capacity("nvidia.com/gpu", 8)  # nobody looks for them
    s_deaf(k8s)
    _, _, _, data = s_ask(k8s, "post_replicas", data={"collectors": {"replicas": 0}, "learners": {"replicas": 1, "gpus": "2"}})
    name = data["learners"][0].split(".")[0]
    log = lambda: k8s.logs(name)
    lost = lambda: set(re.findall(r"Fail to connect to learner\(([^)]*)\)", log()))
    with s_impatient(k8s, "aggregator"):  # two addresses, one after the other
        wait_for(lambda: len(lost()) >= 2, lambda: f"{name} to give its learner up: {log()}")  # and perhaps the next one, which starts

    def sees():
        lines = [json.loads(line) for line in log().splitlines() if line.startswith("{")]
        return len(lines[-1]["learners"]) == 2 and lines[-1]["learners"] if lines else None
    seen = wait_for(sees, lambda: f"{name} to have its two learners: {log()}")
    check(not set(seen) & lost(), f"{seen} in place of {lost()}")
    check("Failed to send failed list" not in log(), "its report was taken")


def test_the_job_ends_with_its_coordinator(k8s):
    k8s.kubectl("exec", "ding-coordinator", "--", PYTHON, "-c", "import os; os.kill(1, 15)", check=False)
    job = "/apis/diengine.opendilab.org/v1alpha1/namespaces/default/dijobs/ding"
    wait_for(lambda: k8s.get(job).get("status", {}).get("phase") == "Succeeded", "the job to have succeeded")
    wait_for(lambda: [pod["metadata"]["name"] for pod in k8s.get(PODS)["items"]] == ["ding-coordinator"],
             "the workers to be cleaned away")


if __name__ == "__main__":
    cluster.main(test_it_gets_what_it_asks_for, test_more_and_fewer_while_it_runs,
                 test_a_replica_that_cannot_be_reached_is_replaced,
                 test_an_aggregator_reports_a_learner_that_cannot_be_reached, test_the_job_ends_with_its_coordinator, full=True)
