#!/usr/bin/env python3
"""TFJobs in real pods: they find each other by the names in TF_CONFIG, an exit code decides who comes again, and who serves is stopped.
TensorFlow itself trains in them, where build/venv-tf has it."""

import os
import sys

sys.dont_write_bytecode = True
import cluster
from cluster import check, wait_for

cluster.require(full=True)
import tensorflow_rig  # noqa: E402
from test_tfjob import JOBS, operator, s_await, s_await_pods, s_conditions, s_delete, s_pods, s_status  # noqa: E402

IMAGE = "docker.io/local/busybox:1"
DEADLINE = 60.0
# Every host of TF_CONFIG, and who this is: what a cluster resolver of TensorFlow's reads.
READ = r"""
hosts=$(echo "$TF_CONFIG" | sed 's/"task".*//' | grep -o '[a-z0-9-]*\.[a-z0-9-]*\.svc:[0-9]*')
port=$(echo "$hosts" | grep "^$(hostname)\." | sed 's/.*://')
"""
SERVE = READ + 'echo "$(hostname) at $port"; mkdir -p /tmp/www; hostname > /tmp/www/name; exec httpd -f -p $port -h /tmp/www'
# Asks everybody for their name till all have said it.
ASK = READ + r"""
mkdir -p /tmp/www; hostname > /tmp/www/name; httpd -p $port -h /tmp/www
for host in $hosts; do
  until [ "$(wget -q -O - http://$host/name)" = "${host%%.*}" ]; do sleep 0.2; done
  echo "met ${host%%.*}"
done
"""


def s_create(k8s, name, replicas, **spec):
    """replicas: {type: (count, policy, script)}"""
    def template(script):
        return {"spec": {"terminationGracePeriodSeconds": 1, "containers": [
            {"name": "tensorflow", "image": IMAGE, "imagePullPolicy": "IfNotPresent", "command": ["sh", "-c", script]}]}}
    k8s.api("POST", JOBS, {"apiVersion": "kubeflow.org/v1", "kind": "TFJob", "metadata": {"name": name}, "spec": {"tfReplicaSpecs": {
        kind: {"replicas": count, "restartPolicy": policy, "template": template(script)} for kind, (count, policy, script) in replicas.items()},
        **spec}})


def test_they_find_each_other(k8s):
    """Two workers ask a parameter server and each other; when worker 0 is done the server is stopped."""
    with operator(k8s):
        s_create(k8s, "meet", {"PS": (1, "Never", SERVE), "Worker": (2, "Never", ASK + "sleep 2")})
        s_await(k8s, "meet", "Succeeded")
        text = k8s.kubectl("logs", "meet-worker-0").stdout
        check({"met meet-ps-0", "met meet-worker-0", "met meet-worker-1"} <= set(text.split("\n")), text)
        wait_for(lambda: "meet-ps-0" not in s_pods(k8s, "meet"), "the parameter server to be gone", DEADLINE)
        s_delete(k8s, "meet")


def test_killed_and_made_anew(k8s):
    """A worker that is killed comes again under its name, and is found; one that fails by itself has failed the job."""
    with operator(k8s):
        s_create(k8s, "again", {"Chief": (1, "Never", SERVE), "Worker": (1, "ExitCode", ASK + "sleep 3600 & wait $!; exit $?")})
        s_await(k8s, "again", "Running")
        wait_for(lambda: "met again-worker-0" in k8s.kubectl("logs", "again-worker-0", check=False).stdout, "the worker to have met all", DEADLINE)
        first = s_pods(k8s, "again")["again-worker-0"]["metadata"]["uid"]
        k8s.kubectl("exec", "again-worker-0", "--", "sh", "-c", "kill -9 -1", check=False)  # all but the first, which says with what its sleep ended: 137
        wait_for(lambda: s_pods(k8s, "again").get("again-worker-0", {}).get("metadata", {}).get("uid", first) != first, "another worker", DEADLINE)
        wait_for(lambda: "met again-worker-0" in k8s.kubectl("logs", "again-worker-0", check=False).stdout, "the new one to have met all", DEADLINE)
        s_await(k8s, "again", "Running")
        check(s_status(k8s, "again")["restarts"] == 1, s_status(k8s, "again"))
        s_delete(k8s, "again")
        s_create(k8s, "fails", {"Worker": (1, "ExitCode", "echo this is why >&2; exit 3")})
        s_await(k8s, "fails", "Failed")
        words = s_conditions(k8s, "fails")["Failed"]["message"]
        check("fails-worker-0 exited with code 3 (Error: this is why" in words, words)
        s_delete(k8s, "fails")


def test_the_kubelet_restarts(k8s):
    """OnFailure: the same pod, another container, up to the limit."""
    with operator(k8s):
        s_create(k8s, "often", {"Worker": (1, "OnFailure", "exit 1")}, runPolicy={"backoffLimit": 1, "cleanPodPolicy": "All"})
        s_await(k8s, "often", "Failed")
        words = s_conditions(k8s, "often")["Failed"]["message"]
        check("backoff limit (1)" in words, words)
        s_await_pods(k8s, "often")
        s_delete(k8s, "often")


def test_v1alpha1(k8s):
    """A master finds a worker by the name that v1alpha1 gives it, and has ended though the kubelet begins it again."""
    def replicas(kind, script):
        return {"tfReplicaType": kind, "template": {"spec": {"terminationGracePeriodSeconds": 1, "containers": [
            {"name": "tensorflow", "image": IMAGE, "imagePullPolicy": "IfNotPresent", "command": ["sh", "-c", script]}]}}}
    with operator(k8s):
        k8s.api("POST", JOBS.replace("/v1/", "/v1alpha1/"), {
            "apiVersion": "kubeflow.org/v1alpha1", "kind": "TFJob", "metadata": {"name": "first"}, "spec": {"RuntimeId": "x7f2", "replicaSpecs": [
                replicas("MASTER", "until wget -q -O - http://first-worker-x7f2-0:2222/name | grep met; do sleep 0.2; done"),
                replicas("WORKER", "mkdir -p /tmp/www; echo met > /tmp/www/name; exec httpd -f -p 2222 -h /tmp/www")]}})
        s_await(k8s, "first", "Succeeded")
        s_await_pods(k8s, "first")
        s_delete(k8s, "first")


def s_sample(name, image, of):
    """Its text, with an image that the cluster has in place of `of`."""
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../k8s/samples/tfjob", f"{name}.yaml")
    with open(path, encoding="utf-8") as file:
        text = file.read()
    check(of in text, f"{name} has no image {of}")
    return text.replace(of, image)


def test_the_first_sample(k8s):
    """As it is: what it prints is what it is told."""
    with operator(k8s):
        k8s.kubectl("create", "-f", "-", input=s_sample("tf-config", IMAGE, "busybox:1.36"))
        s_await(k8s, "tf-config", "Succeeded")
        check(k8s.kubectl("logs", "tf-config-worker-0").stdout ==
              '{"cluster":{"ps":["tf-config-ps-0.default.svc:2222"],"worker":["tf-config-worker-0.default.svc:2222",'
              '"tf-config-worker-1.default.svc:2222"]},"task":{"type":"worker","index":0},"environment":"cloud"}\n', "TF_CONFIG")
        s_delete(k8s, "tf-config")


def test_tensorflow(k8s):
    """The samples for it as they are: MultiWorkerMirroredStrategy over two pods, ParameterServerStrategy over four."""
    tensorflow_rig.make(k8s)
    with operator(k8s):
        for name, pod, words in (("multi-worker", "worker-0", "y = 3.000 x + 2.000"), ("ps-worker", "chief-0", "slope 3.0")):
            k8s.kubectl("create", "-f", "-", input=s_sample(name, tensorflow_rig.IMAGE, "tensorflow/tensorflow:2.21.0"))
            last = lambda name=name: [c["type"] for c in s_status(k8s, name).get("conditions", [])][-1:]
            wait_for(lambda last=last: last() in (["Succeeded"], ["Failed"]), lambda name=name: f"{name} to end: {s_status(k8s, name)}", 240)
            text = k8s.kubectl("logs", f"{name}-{pod}").stdout
            check(last() == ["Succeeded"] and words in text, f"{name}: {s_conditions(k8s, name)} {text[-2000:]}")
            s_delete(k8s, name)


if __name__ == "__main__":
    cluster.main(test_they_find_each_other, test_killed_and_made_anew, test_the_kubelet_restarts, test_v1alpha1, test_the_first_sample, test_tensorflow,
                 full=True, folders=tensorflow_rig.folders())
