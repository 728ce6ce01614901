#!/usr/bin/env python3
"""TensorFlow itself on TF_CONFIG as we make it: the samples for it run as they are, and what its resolver makes of each form."""

import glob
import json
import os
import shutil
import subprocess
import sys
import tempfile

TUTTI = os.environ["TUTTI"]
SOURCE = os.environ["TT_SOURCE_DIR"]
VENV = f"{SOURCE}/build/venv-tf"
SLOW = 4 if os.environ.get("TT_SANITIZE") else 1
sys.path.append(f"{SOURCE}/tests")
import transcript  # noqa: E402

if not os.path.exists(f"{VENV}/.complete"):
    print("SKIP: TensorFlow is not there (tools/test-venv)")
    sys.exit(77)

# What its resolver makes of each TF_CONFIG of some folders, {"a folder": {"worker-0": ...}}. One process for all: to import TensorFlow is
# three seconds of a core, and it looks at the environment when it is asked.
READ = """
import json, os, sys, tensorflow as tf
read = {folder: {} for folder in sys.argv[1:]}
for folder, found in read.items():
    for name in os.listdir(folder):
        with open(os.path.join(folder, name)) as file:
            os.environ["TF_CONFIG"] = file.read()
        resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
        try:
            spec = resolver.cluster_spec().as_dict()
        except Exception as error:
            spec = str(error)
        found[f"{resolver.task_type}-{resolver.task_id}"] = {"spec": spec}
print(json.dumps(read))
"""
s_page = transcript.Transcript("transcript-tfjob-local.md", "TFJobs on one machine, with TensorFlow", """\
What [tfjob.md](tfjob.md#without-a-cluster) has for a machine without a cluster, on samples that train, and what it prints, written down by
`tests/local/by_tensorflow.py --record docs/guide`. The `python3` of `PATH` is one with TensorFlow.""", [
    (r"^\d\d:\d\d:\d\d .*(?:worker-\d|ps-0) +(?! |Running).*\n", ""), (r"^(?:\d\d:\d\d:\d\d +)?\d+ processes that cleanPodPolicy keeps .*\n", ""),  # whoever is not the last
    (r"^\d\d:\d\d:\d\d +", ""), (r"(?:^(?:multi|ps)-worker\S* .*\n)+", transcript.any_order)])
ENV = {"CUDA_VISIBLE_DEVICES": "", "TF_CPP_MIN_LOG_LEVEL": "2"}


def check(condition, text):
    if not condition:
        sys.exit(f"FAILED: {text}")


def s_run(folder, path, name):
    done = subprocess.run([TUTTI, "run", path, "--run-dir", os.path.join(folder, name)], capture_output=True, text=True, timeout=150 * SLOW,
                          env={**os.environ, "PATH": f"{VENV}/bin:{os.environ['PATH']}", "XDG_STATE_HOME": folder, "TERM": "dumb",
                               **ENV})
    check(done.returncode == 0, f"{name}: {done.returncode}\n{done.stdout}{done.stderr}")


def s_log(folder, name, place):
    found = glob.glob(os.path.join(folder, name, "logs", f"{place}.log"))
    check(len(found) == 1, f"{name}: {place} has {len(found)} logs")
    with open(found[0], encoding="utf-8", errors="replace") as file:
        return file.read()


def s_session(folder):
    """The first two samples as a person types them, in a tree like the reader's."""
    tree = os.path.join(folder, "tree")
    shutil.copytree(f"{SOURCE}/k8s/samples", f"{tree}/k8s/samples")
    env = {**os.environ, **ENV, "PATH": f"{VENV}/bin:{os.path.dirname(os.path.abspath(TUTTI))}:{os.environ['PATH']}", "XDG_STATE_HOME": tree,
           "TERM": "dumb"}

    def type_in(command, words):
        done = subprocess.run(["bash", "-o", "pipefail", "-c", command], cwd=tree, env=env, capture_output=True, text=True, timeout=150 * SLOW, check=False)
        s_page.typed(command, (done.stdout + done.stderr).replace(os.path.realpath(tree), "/home/me/tutti").replace(tree, "/home/me/tutti"))
        check(done.returncode == 0 and words in done.stdout + done.stderr, f"{command}: {done.returncode}: {done.stdout}{done.stderr}")
    for title, name, place, words in (("Two workers that add up their gradients", "multi-worker", "worker-0", "y = 3.000 x + 2.000"),
                                      ("A chief, a parameter server, two workers", "ps-worker", "chief-0", "slope 3.0")):
        s_page.say(f"## {title}")
        sample = f"k8s/samples/tfjob/{name}.yaml"
        type_in(f"tutti check {sample}", "the TFJob can be run")
        type_in(f"tutti run {sample}", "succeeded: ")
        type_in(f"tutti logs {name}-1 {place} | tail -1", words)


def s_first_generation(folder):
    """The variable lies on a server that our script has started."""
    s_run(folder, f"{SOURCE}/k8s/samples/tfjob/v1alpha1.yaml", "v1alpha1")
    text = s_log(folder, "v1alpha1", "master-*-0")
    check("slope 3.0" in text and "variables at /job:ps/task:0" in text, text[-2000:])


def s_given(folder, name, replicas, version="v1", **spec):
    """A folder with what each replica has in TF_CONFIG, a file each."""
    out = os.path.join(folder, f"{name}-read")
    os.mkdir(out)
    template = {"spec": {"restartPolicy": "OnFailure", "containers": [
        {"name": "tensorflow", "image": "x", "command": ["sh", "-c", 'printenv TF_CONFIG >"$(mktemp "$0/XXXXXX")"', out]}]}}
    new = {"successPolicy": "AllWorkers", "runPolicy": {"cleanPodPolicy": "None"},
           "tfReplicaSpecs": {kind: {"replicas": count, "restartPolicy": "OnFailure", "template": template} for kind, count in replicas.items()}}
    old = {"replicaSpecs": [{"tfReplicaType": kind, "replicas": count, "template": template} for kind, count in replicas.items()]}
    job = {"apiVersion": f"kubeflow.org/{version}", "kind": "TFJob", "metadata": {"name": name},
           "spec": {**(new if version == "v1" else old), **spec}}
    path = os.path.join(folder, f"{name}.json")
    with open(path, "w", encoding="utf-8") as file:
        json.dump(job, file)
    s_run(folder, path, name)
    return out


def s_read(*folders):
    done = subprocess.run([f"{VENV}/bin/python3", "-c", READ, *folders], capture_output=True, text=True, timeout=150 * SLOW,
                          env={**os.environ, **ENV}, check=False)
    check(done.returncode == 0, done.stderr)
    return json.loads(done.stdout).values()


def s_forms(folder):
    dense, old, sparse = s_read(s_given(folder, "dense", {"Worker": 2}), s_given(folder, "old", {"MASTER": 1}, "v1alpha1", RuntimeId="x7f2"),
                                s_given(folder, "sparse", {"Worker": 2}, enableDynamicWorker=True))
    check({place: {kind: len(hosts) for kind, hosts in one["spec"].items()} for place, one in dense.items()} ==
          {"worker-0": {"worker": 2}, "worker-1": {"worker": 2}}, dense)
    check(dense["worker-0"]["spec"] == dense["worker-1"]["spec"], dense)
    hosts = old["master-0"]["spec"]["master"]
    check(len(hosts) == 1 and hosts[0].startswith("old-master-x7f2-0:"), old)
    print("what TensorFlow makes of the sparse form:", json.dumps(sparse, sort_keys=True))
    check(sparse["worker-0"]["spec"]["worker"][0].startswith("sparse-worker-0.default.svc:"), sparse)  # a list, as index 0 begins one
    check(list(sparse["worker-1"]["spec"]["worker"]) == ["1"], sparse)


def main():
    record = transcript.record_folder()
    with tempfile.TemporaryDirectory(prefix="tt-tensorflow-") as folder:
        s_session(folder)
        s_first_generation(folder)
        s_forms(folder)
    transcript.finish(record, s_page)
    print("ok")


if __name__ == "__main__":
    main()
