#!/usr/bin/env python3
"""The cluster commands of the guide's pages about TFJobs, ElasticDL's tasks and tasks, typed from the pages themselves with the real kubectl and
tutti against one cluster. `test_transcript_fronts.py --record docs/guide` writes down what a person sees (transcript-tfjob.md and its neighbours).

Images have the guide's names. Those with a Python have this machine's, and the pages' own programs run in them; TensorFlow's has a program that
trains nothing (TensorFlow itself in pods: test_tfjob_pods.py, test_elasticdl.py)."""

import json
import os
import re
import sys

sys.dont_write_bytecode = True
import cluster

cluster.require(full=True)
import image_rig  # noqa: E402
import images  # noqa: E402
import python_rig  # noqa: E402
from cluster import check, wait_for  # noqa: E402
from test_task import JOBS, volume  # noqa: E402, adds taskrig's folder
import taskrig  # noqa: E402
from transcript_rig import SOURCE, Prompt, Terminal, Transcript, blocks, main, programs  # noqa: E402

PODS = "/api/v1/namespaces/default/pods"
TFJOBS = "/apis/kubeflow.org/v1/namespaces/default/tfjobs"
MEMBERS = "/api/v1/namespaces/elasticdl/pods?labelSelector=tutti-elasticdl"
SERVICES = "/api/v1/namespaces/elasticdl/services?labelSelector=tutti-elasticdl"
SETS = "/apis/apps/v1/namespaces/elasticdl/statefulsets"
IMAGE = "registry.example/tutti:0.1.0"
MNIST = "registry.example/mnist:1"
VOLUME = "/mnt/cluster-volume/me"
# In place of TensorFlow: the master waits to be told that it has trained, the others that they are ended.
TRAINER = rb"""#!/bin/sh
trap 'exit 0' TERM
case $TF_CONFIG in
*'"type":"master"'*) until [ -e /tmp/trained ]; do sleep 0.1; done; echo trained;;
*) sleep 100000 & wait;;
esac
"""
HEAD = "The commands of [{page}]({page}#{anchor}) for a cluster and what they print, written down by\n" \
       "`tests/k8s/test_transcript_fronts.py --record docs/guide` on a cluster of one node."
s_tfjob = Transcript("transcript-tfjob.md", "A session with TFJobs", HEAD.format(page="tfjob.md", anchor="how-to-run-one") + """
Nothing is trained here: the first sample needs no TensorFlow, and for the second an image of another program has TensorFlow's name.
TensorFlow itself is run in pods by `tests/k8s/test_tfjob_pods.py`, and on one machine by `tests/local/by_tensorflow.py`.""", [
    (r"-(master|worker|ps)-[a-z0-9]{4}-(\d)\b", r"-\1-ID-\2"),  # and whether the second worker has ended when the first does:
    (r"( Worker:\n +Succeeded: +)[12]$", r"\1N"), (r"^  Normal .* Delete pod: tf-config-worker-1\n", ""),
    # and whether the kubelet has said by then that the parameter server runs, or that the first worker did, which prints a line and ends:
    (r"( PS:\n) +Succeeded: +1\n", r"\1"), (r"^  Normal +TFJobRunning .*\n", ""),
    (r"^ +Last Transition Time: .*\n +Last Update Time: .*\n +Message: +TFJob \S+ is running\.\n(?: .*\n){2} +Type: +Running\n", "")])
s_elasticdl = Transcript("transcript-elasticdl.md", "A session with ElasticDL's tasks on a cluster",
                         HEAD.format(page="elasticdl.md", anchor="on-a-cluster") + """
The image has a Python and the program of [the first task](elasticdl.md#a-first-task). TensorFlow itself is run in pods by
`tests/k8s/test_elasticdl.py`, and on one machine by `tests/elasticdl/`.""", [
    (r"^(?:(?:making|starting) (?:parameter servers|workers)|configuring|running|ending)\n", "")])  # some are too short to be seen
s_tasks = Transcript("transcript-tasks.md", "A session with tasks on a cluster", HEAD.format(page="tasks.md", anchor="on-a-cluster") + """
The folder is a volume of the cluster, known there as the claim `volume`. The programs are those of [the first task](tasks.md#a-first-task).""", [
    (r"^\S+Z (warn  cluster: the pod of Job \S+ does not begin: .*\n)(?:\S+Z warn  cluster: the pod of Job .*\n)*", r"\1"),
    (r" job_configId_\d (?=done:)", " job_configId_N "), (r"\b0\.\d{3}\b", "NUMBER")])


# --- TFJobs

def s_await_state(k8s, job, state):
    def states():
        return [one["type"] for one in k8s.get(f"{TFJOBS}/{job}").get("status", {}).get("conditions", [])]
    wait_for(lambda: states()[-1:] == [state], lambda: f"{job} to be {state}: {states()}")


def s_await_events(k8s, job, *wanted):
    """They come a moment after what they tell of."""
    path = f"/api/v1/namespaces/default/events?fieldSelector=involvedObject.name={job}"
    there = lambda: {word for event in k8s.get(path)["items"] for word in (event["reason"], event["message"])}
    wait_for(lambda: set(wanted) <= there(), lambda: f"{wanted} among the events of {job}: {there()}")


def s_left(k8s, job):
    """Pods and services of a job."""
    paths = (f"/api/v1/namespaces/default/{what}?labelSelector=group-name=kubeflow.org,job-name={job}" for what in ("pods", "services"))
    return [one["metadata"]["name"] for path in paths for one in k8s.get(path)["items"]]


def test_tfjob(k8s):
    image_rig.load(k8s, name=IMAGE)
    k8s.make_image("docker.io/library/busybox:1.36", images.busybox_files())
    prompt = Prompt(k8s, SOURCE, s_tfjob)

    def ended():
        s_await_state(k8s, "tf-config", "Succeeded")
        members = ("ps-0", "worker-0", "worker-1")
        s_await_events(k8s, "tf-config", "TFJobCreated", "TFJobSucceeded", "Delete pod: tf-config-ps-0",
                       *(f"Create {what}: tf-config-{member}" for what in ("pod", "service") for member in members),
                       *(f"Delete service: tf-config-{member}" for member in members))
        counted = lambda: k8s.get(f"{TFJOBS}/tf-config")["status"]["replicaStatuses"]
        wait_for(lambda: not any(one.get("active") for one in counted().values()), lambda: f"nobody to be active: {counted()}")
    s_tfjob.say("## How to run one")
    said = prompt.follow(
        blocks("How to run one", "tfjob.md")[0],
        ("kubectl apply -k k8s/overlays/tfjob", r"^customresourcedefinition\S*/tfjobs\.kubeflow\.org created$"),
        ("kubectl -n di-system set image", "updated$"), ("kubectl -n di-system rollout status", r"successfully rolled out$"),
        ("kubectl create -f k8s/samples/tfjob/tf-config.yaml", r"^tfjob\.kubeflow\.org/tf-config created$", ended),
        ("kubectl get tfjobs", r"^NAME +STATE +AGE *\ntf-config +Succeeded +\d"),
        ("kubectl logs tf-config-worker-0", r'^{"cluster":{.*},"task":{"type":"worker","index":0},"environment":"cloud"}$'),
        ("kubectl describe tfjob tf-config", r"^ +Normal +TFJobSucceeded ",
         lambda: check("tf-config-worker-0" in s_left(k8s, "tf-config"), "the pod whose end is the job's is left for its log")),
        ("kubectl delete tfjob tf-config", r'^tfjob\.kubeflow\.org "tf-config" deleted'))
    check(re.search(r"Replica Statuses:\n(?: .*\n)*? +Worker:\n +Succeeded: +[12]\n", said[6]), said[6])  # 1: the other had not begun yet
    check("No resources found" in prompt.type("kubectl get tfjobs"), "no job is left")


def test_tfjob_of_the_first_generation(k8s):
    k8s.make_image("docker.io/tensorflow/tensorflow:2.21.0", {**images.busybox_files(), "usr/bin/python3": TRAINER, "usr/bin/python": TRAINER})
    prompt = Prompt(k8s, SOURCE, s_tfjob)
    create, look = blocks("Jobs of v1alpha1", "tfjob.md")[0]
    table = r"^NAME +STATE +PHASE +AGE *\nexample-job +{} +{} +\d"

    def old():
        return k8s.get(f"{TFJOBS.replace('/v1/', '/v1alpha1/')}/example-job").get("status", {})

    def running():
        pods = k8s.get(f"{PODS}?labelSelector=tf_job_name=example-job")["items"]
        return old().get("state") == "Running" and [pod["status"].get("phase") for pod in pods] == ["Running"] * 4
    s_tfjob.say("## A job of v1alpha1")
    prompt.follow([create, look],
                  ("kubectl create -f k8s/samples/tfjob/v1alpha1.yaml", r"^tfjob\.kubeflow\.org/example-job created$",
                   lambda: wait_for(running, lambda: f"example-job to run: {old()}")),
                  ("kubectl get tfjobs.v1alpha1.kubeflow.org", table.format("Running", "Running")))
    s_await_state(k8s, "example-job", "Running")
    check(re.search(r"^example-job +Running +\d", prompt.type("kubectl get tfjobs"), re.M), "as of v1")
    pods = prompt.type("kubectl get pods -l tf_job_name=example-job")
    check(len(s_left(k8s, "example-job")) == 8, s_left(k8s, "example-job"))
    check(len(re.findall(r"^example-job-(?:master|worker|ps)-[a-z0-9]{4}-[01] +1/1 +Running ", pods, re.M)) == 4, pods)
    s_tfjob.say("Its master ends well.")
    k8s.let_go(re.search(r"^\S+-master-\S+", pods, re.M)[0], "/tmp/trained")
    wait_for(lambda: old().get("phase") == "Done", lambda: f"example-job to be done: {old()}")
    done = prompt.type(look)
    check(re.search(table.format("Succeeded", "Done"), done), done)
    wait_for(lambda: not s_left(k8s, "example-job"), lambda: f"pods and services to go: {s_left(k8s, 'example-job')}")
    prompt.follow(["kubectl delete tfjob example-job"], ("kubectl", r'^tfjob\.kubeflow\.org "example-job" deleted'))


def test_tfjob_accelerators(k8s):
    s_tfjob.say("## What comes with a resource\n\nOther operators come, which have read the file.")
    prompt = Prompt(k8s, SOURCE, s_tfjob)
    prompt.follow(blocks("What comes with a resource", "tfjob.md")[0],
                  ("kubectl apply -k k8s/samples/accelerators", r"^configmap/di-operator-accelerators-\w+ created\n(?:.*\n)*deployment.apps/di-operator configured$"),
                  ("kubectl -n di-system set image", "updated$"), ("kubectl -n di-system rollout status", r"successfully rolled out$"))


def test_tfjob_leaves_nothing(k8s):
    """Late: a cluster's garbage collector learns of new kinds twice a minute."""
    wait_for(lambda: not s_left(k8s, "tf-config"), lambda: f"pods and services to go: {s_left(k8s, 'tf-config')}")


# --- ElasticDL's tasks

def s_ended(k8s, name):
    """Neither pods nor Services of a task are left, and its sets count no pod any more."""
    of = lambda path: [one for one in k8s.get(path)["items"] if one["metadata"]["name"].startswith(name)]
    for path in (MEMBERS, SERVICES):
        wait_for(lambda path=path: not of(path), f"{name} to leave nothing")
    wait_for(lambda: not any(one["status"].get("readyReplicas") for one in of(SETS)), f"the sets of {name} to count none")


def test_elasticdl(k8s):
    k8s.make_image(MNIST, {**images.busybox_files(), **python_rig.files(), "exec.py": programs("A first task", "elasticdl.md")["exec.py"].encode()},
                   user="1000:1000")
    install, forward, submit = blocks("On a cluster", "elasticdl.md")
    log, servers, servers_log, create, look = [block[0] for block in blocks("A first task", "elasticdl.md")][2:]
    check(MNIST in submit[0], submit)
    prompt = Prompt(k8s, SOURCE, s_elasticdl)
    s_elasticdl.say("## A master in pods")
    prompt.follow(install, ("kubectl apply -k k8s/samples/elasticdl", r"^deployment\.apps/tutti-master created$"), ("kubectl -n elasticdl set image", "updated$"),
                  ("kubectl -n elasticdl rollout status", r"successfully rolled out$"))
    tunnel = Terminal(prompt, forward[0])
    tunnel.until("[::1]:7897 -> 7897")  # the last of its lines
    s_elasticdl.say("The tunnel, in a terminal of its own, to be ended with Ctrl-C:")
    tunnel.write()
    s_elasticdl.say("## A task")
    (said,) = prompt.follow(submit, ("tutti submit", r"^task hello has id 0 (?:.*\n)*succeeded$"))  # of its steps those are said that a look meets
    state, logs, end = re.findall(r"^  (?:state|logs|end) +(curl .*)$", said, re.M)
    s_ended(k8s, "hello")
    prompt.follow([state, logs, log], ("curl", r'"state": ?"succeeded"'), ("curl", r"^worker 0 of 2 workers$"), ("curl", r"^worker 1 of 2 workers$"))
    s_elasticdl.say("Its StatefulSet is the record that it was.")
    sets = "kubectl -n elasticdl get statefulset,service"
    prompt.follow([sets], ("kubectl", r"^statefulset\.apps/hello-worker-0 +0/0 "))

    s_elasticdl.say("## With a parameter server")
    check("--image mnist " in servers and "img=mnist&" in create, f"{servers} {create}")
    prompt.follow([servers.replace("mnist", MNIST), servers_log], ("tutti submit --strategy ParameterServer", r"^task servers has id 1 (?:.*\n)*succeeded$"),
                  ("curl", r"^worker 0 of 2 workers$"))

    s_elasticdl.say("## The original's request")

    def again():
        found = json.loads(k8s.http(7897, "/status?name=again", host="127.0.0.1")[1])
        return found["state"] == "succeeded"
    prompt.follow([create.replace("mnist", MNIST)], ("curl", r"^OK$", lambda: wait_for(again, "the task to succeed")))
    s_ended(k8s, "servers")
    s_ended(k8s, "again")
    (said,) = prompt.follow([look], ("curl", "."))
    check([(task["name"], task["state"]) for task in json.loads(said)] == [(name, "succeeded") for name in ("hello", "servers", "again")], said)
    s_elasticdl.say("Without an image there is nothing that members could run:")
    prompt.follow([re.sub("img=[^&]*&", "", create)], ("curl", "^img is missing"))

    s_elasticdl.say("## A task is forgotten")
    gone = lambda: k8s.find("/apis/apps/v1/namespaces/elasticdl/statefulsets/hello-worker-0") is None
    prompt.follow([end, sets], ("curl", "^OK$", lambda: wait_for(gone, "the set to go")), ("kubectl", r"\A(?!(?:.*\n)*.*hello-)(?:.*\n)*statefulset\.apps/again-worker-2 "))
    tunnel.end(interrupt=True)


# --- tasks

def test_tasks(k8s):
    k8s.make_image("docker.io/library/python:3", {**images.busybox_files(), **python_rig.files()})
    folder = os.path.join(k8s.directory, "volume")
    os.mkdir(folder)
    volume(k8s, folder)
    for name, text in programs("A first task", "tasks.md").items():
        with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
            file.write(text)
    task = taskrig.name("on_cluster")
    prompt = Prompt(k8s, folder, s_tasks, {"XDG_STATE_HOME": os.path.join(k8s.directory, "state"), "USER": taskrig.USER}, VOLUME)
    goes, *typed, run, look, best = blocks("On a cluster", "tasks.md")[0]
    check(goes == f"cd {VOLUME}", goes)
    s_tasks.say("## A task is made\n\nFive files will do here, one way to begin.")
    s_tasks.typed(goes, "")
    prompt.follow(typed, ("python3 make_files.py", r"\A\Z", lambda: prompt.type("rm configs/*_init[123].json")), ("tutti dataset add -d user.$USER.my_data", r"\A\Z"),
                  ("tutti dataset add -d user.$USER.my_configs", r"\A\Z"), ("tutti task create", rf"^{re.escape(task)}: 5 jobs in "))

    s_tasks.say("## It runs\n\nThe node is being repaired when it begins.")
    node = cluster.parts.NODE
    prompt.follow([f"kubectl cordon {node}"], ("kubectl", f"^node/{node} cordoned$"))
    engine = Terminal(prompt, run)
    engine.until("does not begin")
    wait_for(lambda: len(k8s.get(PODS)["items"]) == 5, "a pod for each of five jobs")
    wait_for(lambda: all("startTime" in job["status"] for job in k8s.get(JOBS)["items"]), "their Jobs to say since when they run")
    s_tasks.say("`tutti task run` has been started in a terminal of its own, and waits:")
    prompt.follow([look, "kubectl get jobs,pods", f"kubectl uncordon {node}"], ("tutti task list", rf" {re.escape(task)} +0 +5 +0 +0 +0 +testing$"),
                  ("kubectl", r"(?:^pod/\S+ +0/1 +Pending .*\n){5}"), ("kubectl", f"^node/{node} uncordoned$"))
    code, said = engine.end()
    check(code == 0 and "Unschedulable" in said, (code, said))
    s_tasks.say("There, from its beginning to its end:")
    engine.write()

    s_tasks.say("## What came of it")
    prompt.follow([look, "tutti task jobs -t user.$USER.on_cluster", "cat user.$USER.on_cluster/logs/job_configId_4.log", best, "kubectl get jobs"],
                  ("tutti task list", rf" {re.escape(task)} +0 +0 +0 +0 +5 +done$"), ("tutti task jobs", r"(?:.* done .*\n){5}"),
                  ("cat", rf"^/volume/{re.escape(task)}/job_configId_4/output_s4_i0\.json: 0\.\d+$"),
                  ("python3 best.py", r"^5 results; init 0 is right 0\.[6-9]\d+ of the time$",
                   lambda: wait_for(lambda: not k8s.get(JOBS)["items"], "Jobs that have ended to be deleted")), ("kubectl", "^No resources found"))
    s_tasks.say("## When the results are no longer wanted")
    typed = [line.replace("my_task", "on_cluster") for line in blocks("A first task", "tasks.md")[2]]
    prompt.follow(typed, ("tutti task delete -t user.$USER.on_cluster --remove", r"\A\Z"), ("tutti dataset rm", r"\A\Z"))
    check(not os.path.exists(os.path.join(folder, task)), "the task's directory is gone")


if __name__ == "__main__":
    main([s_tfjob, s_elasticdl, s_tasks], test_tfjob, test_tfjob_of_the_first_generation, test_tfjob_accelerators, test_elasticdl, test_tasks,
         test_tfjob_leaves_nothing, full=True, folders=python_rig.folders())
