#!/usr/bin/env python3
"""TFJobs in real pods: they find each other by the names in TF_CONFIG, an exit code decides who comes again, and who serves is stopped.
TensorFlow itself trains and evaluates in them, in parameter servers without a template, too, and TensorBoard shows it, where build/venv-tf and
build/venv have them."""

import contextlib
import json
import os
import re
import sys
import tempfile

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

# Who is the job's end waits till the other worker has met all; that one serves till it is stopped.
LAST = ASK + r"""
echo all > /tmp/www/met
case $(hostname) in
*-worker-0) until [ "$(wget -q -O - http://$(echo "$hosts" | grep worker-1)/met)" = all ]; do sleep 0.2; done ;;
*) sleep 3600 ;;
esac
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
    """Two workers ask a parameter server, an evaluator and each other; when worker 0 is done who serves is stopped."""
    with operator(k8s):
        s_create(k8s, "meet", {"PS": (1, "Never", SERVE), "Evaluator": (1, "Never", SERVE), "Worker": (2, "Never", LAST)})
        s_await(k8s, "meet", "Succeeded")
        text = k8s.kubectl("logs", "meet-worker-0").stdout
        check({f"met meet-{place}" for place in ("ps-0", "evaluator-0", "worker-0", "worker-1")} <= set(text.split("\n")), text)
        wait_for(lambda: not {"meet-ps-0", "meet-evaluator-0"} & set(s_pods(k8s, "meet")), "who serves to be gone", DEADLINE)
        s_delete(k8s, "meet")


def test_killed_and_made_anew(k8s):
    """A worker that is killed comes again under its name, and is found; one that fails by itself has failed the job."""
    with operator(k8s):
        s_create(k8s, "again", {"Chief": (1, "Never", SERVE), "Worker": (1, "ExitCode", ASK + "sleep 3600 & echo sleeps; wait $!; exit $?")})
        s_await(k8s, "again", "Running")
        wait_for(lambda: "sleeps" in k8s.kubectl("logs", "again-worker-0", check=False).stdout, "the worker to have met all", DEADLINE)
        first = s_pods(k8s, "again")["again-worker-0"]["metadata"]["uid"]
        k8s.kubectl("exec", "again-worker-0", "--", "sh", "-c", "kill -9 -1", check=False)  # all but the first, which says with what its sleep ended: 137
        wait_for(lambda: s_pods(k8s, "again").get("again-worker-0", {}).get("metadata", {}).get("uid", first) != first, "another worker", DEADLINE)
        wait_for(lambda: "sleeps" in k8s.kubectl("logs", "again-worker-0", check=False).stdout, "the new one to have met all", DEADLINE)
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


@contextlib.contextmanager
def s_shared():
    """A folder that every user may write into, here and in pods: (its path, the volume)."""
    with tempfile.TemporaryDirectory(prefix="tt-shared-") as folder:
        os.chmod(folder, 0o777)
        yield folder, {"name": "shared", "hostPath": {"path": folder}}


def s_python(program, volume=None):
    """A template of it."""
    container = {"name": "tensorflow", "image": tensorflow_rig.IMAGE, "command": ["python3", "-c", program]}
    if not volume:
        return {"spec": {"containers": [container]}}
    return {"spec": {"containers": [{**container, "volumeMounts": [{"name": volume["name"], "mountPath": "/shared"}]}], "volumes": [volume]}}


# The chief saves what it has trained and goes on to be there; the evaluator takes each checkpoint as it comes, till one is good.
EVALUATED = """
import os, time
import numpy as np
import tensorflow as tf
resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
x = np.array([1, 2, 3], np.float32)
if resolver.task_type == "evaluator":
    slope = tf.Variable(0.0)
    saved = tf.train.Checkpoint(slope=slope)
    for path in tf.train.checkpoints_iterator("/shared", timeout=120):
        saved.restore(path).assert_consumed()
        loss = float(tf.reduce_mean((slope * x - 3 * x) ** 2))
        print("evaluated %s: loss %.3f" % (os.path.basename(path), loss), flush=True)
        if loss < 0.001:
            raise SystemExit(0)
    raise SystemExit("no checkpoint was good")
strategy = tf.distribute.MultiWorkerMirroredStrategy()
with strategy.scope():
    slope = tf.Variable(0.0)

@tf.function
def step():
    def replica():
        gradient = tf.reduce_mean(2 * (slope * x - 3 * x) * x)
        slope.assign_sub(0.05 * tf.distribute.get_replica_context().all_reduce("mean", gradient))
    strategy.run(replica)

chief = resolver.task_type == "chief"
manager = tf.train.CheckpointManager(tf.train.Checkpoint(slope=slope), "/shared" if chief else "/tmp/aside", max_to_keep=None)
for _ in range(3):
    manager.save()
    for _ in range(20):
        step()
manager.save()
while chief and not os.path.exists("/shared/go"):
    time.sleep(0.1)
"""


def test_an_evaluator(k8s):
    """It is no part of TensorFlow's cluster, and ends by itself while the others go on: it stays as it ended, and the job's end is the chief's."""
    tensorflow_rig.make(k8s)
    with operator(k8s), s_shared() as (folder, volume):
        replicas = {kind: {"replicas": 1, "restartPolicy": "Never", "template": s_python(EVALUATED, volume)} for kind in ("Chief", "Worker", "Evaluator")}
        k8s.api("POST", JOBS, {"apiVersion": "kubeflow.org/v1", "kind": "TFJob", "metadata": {"name": "judged"}, "spec": {"tfReplicaSpecs": replicas}})
        evaluator = lambda: s_pods(k8s, "judged").get("judged-evaluator-0", {}).get("status", {})
        wait_for(lambda: evaluator().get("phase") == "Succeeded" or "Failed" in s_conditions(k8s, "judged"), lambda: f"the evaluator to end: {s_status(k8s, 'judged')}", 240)
        said = {place: k8s.kubectl("logs", f"judged-{place}-0").stdout for place in ("evaluator", "chief", "worker")}
        check(re.findall(r"^evaluated ckpt-\d: loss (\S+)$", said["evaluator"], re.M)[-1:] == ["0.000"], said)  # of the third, or the fourth
        wait_for(lambda: s_status(k8s, "judged")["replicaStatuses"].get("Evaluator") == {"succeeded": 1}, lambda: s_status(k8s, "judged"), DEADLINE)
        check([one["type"] for one in s_status(k8s, "judged")["conditions"]][-1] == "Running", s_status(k8s, "judged"))
        with open(os.path.join(folder, "go"), "w", encoding="ascii"):
            pass
        s_await(k8s, "judged", "Succeeded")
        check(s_status(k8s, "judged")["replicaStatuses"]["Evaluator"] == {"succeeded": 1}, s_status(k8s, "judged"))
        check([one["restartCount"] for one in evaluator()["containerStatuses"]] == [0], evaluator())
        s_delete(k8s, "judged")


LAST_LINE = "            assert abs(value - 3) < 0.01\n"
# The pods of a job go with its end: the master is there, and its log, till both have been looked at.
WAITS = LAST_LINE + """            import time
            while task["type"] == "master" and not os.path.exists("/tmp/go"):
                time.sleep(0.1)
"""


def test_parameter_servers_without_a_template(k8s):
    """The sample of v1alpha1, whose master ends when it may: TensorFlow's own server, by a script from a ConfigMap, keeps the variables that the
    master trains, and ends when it is told to, though it is its container's first process."""
    tensorflow_rig.make(k8s)
    with operator(k8s):
        text = s_sample("v1alpha1", tensorflow_rig.IMAGE, "tensorflow/tensorflow:2.21.0")
        check(LAST_LINE in text, text)
        k8s.kubectl("create", "-f", "-", input=text.replace(LAST_LINE, WAITS))
        first = lambda role: next((name for name in s_pods(k8s, "example-job") if re.fullmatch(f"example-job-{role}-.*-0", name)), None)
        master, server = (wait_for(lambda role=role: first(role), f"the first {role}", DEADLINE) for role in ("master", "ps"))
        path = f"/api/v1/namespaces/default/pods/{server}"
        k8s.patch(path, {"metadata": {"finalizers": ["example.com/look"]}})  # it is there to be looked at when it has ended
        wait_for(lambda: re.search("^slope", k8s.logs(master), re.M),
                 lambda: f"it to have trained: {s_status(k8s, 'example-job')} {k8s.logs(master)[-2000:]}", 240)
        text = k8s.logs(master)
        check("variables at /job:ps/" in text and re.search(r"^slope (3\.00|2\.99)", text, re.M), text)
        k8s.let_go(master, "/tmp/go")
        s_await(k8s, "example-job", "Succeeded")
        ended = wait_for(lambda: k8s.get(path)["status"]["containerStatuses"][0]["state"].get("terminated"), f"{server} to end", DEADLINE)
        check(ended["exitCode"] == 143, ended)
        k8s.patch(path, {"metadata": {"finalizers": None}})
        wait_for(lambda: s_status(k8s, "example-job")["phase"] == "Done", lambda: f"its end: {s_status(k8s, 'example-job')}", DEADLINE)
        s_delete(k8s, "example-job")


LOGGED = """
import tensorflow.compat.v1 as tf
tf.disable_eager_execution()
with tf.summary.FileWriter("/shared") as log:
    for step in range(3):
        log.add_summary(tf.Summary(value=[tf.Summary.Value(tag="slope", simple_value=step / 2)]), step)
"""


def test_tensorboard(k8s):
    """Beside a job of v1alpha1: by its Service it shows what the master has written, also when that has ended; it goes with the job."""
    tensorflow_rig.make(k8s, tensorflow_rig.board())
    with operator(k8s), s_shared() as (_, volume):
        k8s.api("POST", JOBS.replace("/v1/", "/v1alpha1/"), {
            "apiVersion": "kubeflow.org/v1alpha1", "kind": "TFJob", "metadata": {"name": "shown"}, "spec": {
                "RuntimeId": "b0rd", "tfImage": tensorflow_rig.IMAGE, "replicaSpecs": [{"template": s_python(LOGGED, volume)}],
                "tensorboard": {"logDir": "/shared", "serviceType": "NodePort", "volumes": [volume],
                                "volumeMounts": [{"name": volume["name"], "mountPath": "/shared", "readOnly": True}]}}})
        path = "/api/v1/namespaces/default/services/shown-tensorboard-b0rd"
        port = wait_for(lambda: k8s.find(path), "the Service", DEADLINE)["spec"]["ports"][0]["nodePort"]
        wait_for(lambda: s_status(k8s, "shown").get("phase") == "Done", lambda: f"its end: {s_status(k8s, 'shown')}", 240)
        check(s_status(k8s, "shown")["state"] == "Succeeded", s_status(k8s, "shown"))
        asked = lambda where: wait_for(lambda: k8s.http(port, where), f"an answer to {where}")
        wait_for(lambda: asked("/data/plugin/scalars/tags")[1].startswith(b'{".": {"slope"'), lambda: f"what was written: {asked('/data/plugin/scalars/tags')}")
        points = lambda: [point[1:] for point in json.loads(asked("/data/plugin/scalars/scalars?run=.&tag=slope")[1])]
        wait_for(lambda: points() == [[0, 0.0], [1, 0.5], [2, 1.0]], lambda: f"all of it: {points()}")
        code, page = asked("/")
        check(code == 200 and b"<title>TensorBoard</title>" in page, (code, page[:400]))
        s_delete(k8s, "shown")
        wait_for(lambda: not k8s.find(path), "the Service to go with the job", DEADLINE)
        wait_for(lambda: not k8s.find("/apis/apps/v1/namespaces/default/deployments/shown-tensorboard-b0rd"), "the Deployment to go, too", DEADLINE)


if __name__ == "__main__":
    cluster.main(test_they_find_each_other, test_killed_and_made_anew, test_the_kubelet_restarts, test_v1alpha1, test_the_first_sample, test_tensorflow,
                 test_an_evaluator, test_parameter_servers_without_a_template, test_tensorboard, full=True, folders=tensorflow_rig.folders())
