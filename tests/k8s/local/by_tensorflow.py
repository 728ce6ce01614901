#!/usr/bin/env python3
"""TensorFlow itself on TF_CONFIG as we make it: the samples for it run as they are, and what its resolver makes of each form."""

import glob
import json
import os
import subprocess
import sys
import tempfile

TUTTI = os.environ["TUTTI"]
SOURCE = os.environ["TT_SOURCE_DIR"]
VENV = f"{SOURCE}/build/venv-tf"
SLOW = 4 if os.environ.get("TT_SANITIZE") else 1

if not os.path.exists(f"{VENV}/.complete"):
    print("SKIP: TensorFlow is not there (tools/test-venv)")
    sys.exit(77)

READ = """
import json, sys, tensorflow as tf
resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
try:
    spec = resolver.cluster_spec().as_dict()
except Exception as error:
    spec = str(error)
with open(sys.argv[1] + f"/{resolver.task_type}-{resolver.task_id}", "w") as file:
    json.dump({"spec": spec}, file)
"""


def check(condition, text):
    if not condition:
        sys.exit(f"FAILED: {text}")


def s_run(folder, path, name):
    done = subprocess.run([TUTTI, "run", path, "--run-dir", os.path.join(folder, name)], capture_output=True, text=True, timeout=150 * SLOW,
                          env={**os.environ, "PATH": f"{VENV}/bin:{os.environ['PATH']}", "XDG_STATE_HOME": folder, "TERM": "dumb",
                               "CUDA_VISIBLE_DEVICES": "", "TF_CPP_MIN_LOG_LEVEL": "2"})
    check(done.returncode == 0, f"{name}: {done.returncode}\n{done.stdout}{done.stderr}")


def s_log(folder, name, place):
    found = glob.glob(os.path.join(folder, name, "logs", f"{place}.log"))
    check(len(found) == 1, f"{name}: {place} has {len(found)} logs")
    with open(found[0], encoding="utf-8", errors="replace") as file:
        return file.read()


def s_samples(folder):
    """In that of v1alpha1 the variable lies on a server that our script has started."""
    for name, place, *words in (("multi-worker", "worker-0", "y = 3.000 x + 2.000"), ("ps-worker", "chief-0", "slope 3.0"),
                                ("v1alpha1", "master-*-0", "slope 3.0", "variables at /job:ps/task:0")):
        s_run(folder, f"{SOURCE}/k8s/samples/tfjob/{name}.yaml", name)
        text = s_log(folder, name, place)
        check(all(word in text for word in words), text[-2000:])


def s_read(folder, name, replicas, version="v1", **spec):
    """{"worker-0": what TensorFlow read there}"""
    out = os.path.join(folder, f"{name}-read")
    os.mkdir(out)
    template = {"spec": {"restartPolicy": "OnFailure", "containers": [
        {"name": "tensorflow", "image": "x", "command": ["python3", "-c", READ, out]}]}}
    new = {"successPolicy": "AllWorkers", "runPolicy": {"cleanPodPolicy": "None"},
           "tfReplicaSpecs": {kind: {"replicas": count, "restartPolicy": "OnFailure", "template": template} for kind, count in replicas.items()}}
    old = {"replicaSpecs": [{"tfReplicaType": kind, "replicas": count, "template": template} for kind, count in replicas.items()]}
    job = {"apiVersion": f"kubeflow.org/{version}", "kind": "TFJob", "metadata": {"name": name},
           "spec": {**(new if version == "v1" else old), **spec}}
    path = os.path.join(folder, f"{name}.json")
    with open(path, "w", encoding="utf-8") as file:
        json.dump(job, file)
    s_run(folder, path, name)
    read = {}
    for place in os.listdir(out):
        with open(os.path.join(out, place), encoding="utf-8") as file:
            read[place] = json.load(file)
    return read


def s_forms(folder):
    read = s_read(folder, "dense", {"Worker": 2})
    check({place: {kind: len(hosts) for kind, hosts in one["spec"].items()} for place, one in read.items()} ==
          {"worker-0": {"worker": 2}, "worker-1": {"worker": 2}}, read)
    check(read["worker-0"]["spec"] == read["worker-1"]["spec"], read)
    read = s_read(folder, "old", {"MASTER": 1}, "v1alpha1", RuntimeId="x7f2")
    hosts = read["master-0"]["spec"]["master"]
    check(len(hosts) == 1 and hosts[0].startswith("old-master-x7f2-0:"), read)
    read = s_read(folder, "sparse", {"Worker": 2}, enableDynamicWorker=True)
    print("what TensorFlow makes of the sparse form:", json.dumps(read, sort_keys=True))
    check(read["worker-0"]["spec"]["worker"][0].startswith("sparse-worker-0.default.svc:"), read)  # a list, as index 0 begins one
    check(list(read["worker-1"]["spec"]["worker"]) == ["1"], read)


def main():
    with tempfile.TemporaryDirectory(prefix="tt-tensorflow-") as folder:
        s_samples(folder)
        s_forms(folder)
    print("ok")


if __name__ == "__main__":
    main()
