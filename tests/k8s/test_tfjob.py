#!/usr/bin/env python3
"""TFJobs by `tutti operator` against a real API server and garbage collector, the samples among them; this test plays the kubelet."""

import json
import os
import re
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
import cluster
from cluster import check, wait_for

cluster.require()
from test_operator import DEADLINE, TUTTI, Operator  # noqa: E402

SOURCE = os.environ.get("TT_SOURCE_DIR", os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
SAMPLES = os.path.join(SOURCE, "k8s/samples/tfjob")
UPSTREAM = os.path.join(SOURCE, "tests/k8s/upstream/tfjob")
NAMESPACE = "/api/v1/namespaces/default"
JOBS = "/apis/kubeflow.org/v1/namespaces/default/tfjobs"
OLD_JOBS = JOBS.replace("/v1/", "/v1alpha1/")
OLD_SAMPLE = "v1alpha1.yaml"
TEMPLATE = {"spec": {"containers": [{"name": "tensorflow", "image": "x:1"}]}}


# The public examples, their shape (tests/k8s/upstream/tfjob): the namespace they name and who there is to be.
PUBLIC = {
    "simple": ("kubeflow", "tfjob-simple", ["worker-0", "worker-1"]),
    "dist-mnist": ("default", "dist-mnist-for-e2e-test", ["ps-0", "ps-1", "worker-0", "worker-1", "worker-2", "worker-3"]),
    "mnist-with-summaries": ("kubeflow", "mnist", ["worker-0"]), "mnist-with-summaries-old": ("kubeflow", "mnist", ["worker-0"]),
    "estimator": ("kf-latest", "distributed-training", ["worker-0", "worker-1", "worker-2"]),
    "estimator-old": ("kf-latest", "distributed-training", ["worker-0", "worker-1", "worker-2"]),
    "keras": ("default", "multi-worker", ["worker-0", "worker-1"]), "keras-old": ("default", "multi-worker", ["worker-0", "worker-1"]),
    "v1alpha1": ("default", "example-job", ["master-ID-0", "ps-ID-0", "ps-ID-1", "worker-ID-0"]),
    "v1alpha1-defaults": ("default", "example-job-defaults", ["master-ID-0"]), "v1alpha1-gpu": ("default", "tf-smoke-gpu", ["master-ID-0"]),
}


def operator(k8s, *options):
    """One that looks after TFJobs, too; the cluster knows them."""
    if not getattr(k8s, "knows_tfjobs", False):
        k8s.kubectl("apply", "-k", f"{SOURCE}/k8s/crd/tfjob")
        k8s.await_kind("tfjob")
        k8s.knows_tfjobs = True
    return Operator(k8s, "--also=tfjob", *options)


def s_replicas(count=1, policy=None, template=None):
    return {"replicas": count, **({"restartPolicy": policy} if policy else {}), "template": template or TEMPLATE}


def s_create(k8s, name, replicas, **spec):
    body = {"apiVersion": "kubeflow.org/v1", "kind": "TFJob", "metadata": {"name": name},
            "spec": {"tfReplicaSpecs": replicas, **spec}}
    return k8s.api("POST", JOBS, body)


def s_named(k8s, what, job):
    items = k8s.get(f"{NAMESPACE}/{what}?labelSelector=group-name=kubeflow.org,job-name={job}")["items"]
    return {item["metadata"]["name"]: item for item in items if "deletionTimestamp" not in item["metadata"]}


def s_pods(k8s, job):
    return s_named(k8s, "pods", job)


def s_await_pods(k8s, job, *places):
    names = {f"{job}-{place}" for place in places}
    wait_for(lambda: set(s_pods(k8s, job)) == names, lambda: f"{names}, and not {set(s_pods(k8s, job))}", DEADLINE)
    return s_pods(k8s, job)


def s_await_services(k8s, job, *places):
    names = {f"{job}-{place}" for place in places}
    wait_for(lambda: set(s_named(k8s, "services", job)) == names, f"the services {names}", DEADLINE)


def s_move(k8s, name, phase, code=None, restarts=0):
    """What a kubelet says of a pod."""
    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    state = {"running": {"startedAt": now}}
    if phase in ("Succeeded", "Failed"):
        state = {"terminated": {"exitCode": code or 0, "reason": "Error" if code else "Completed", "finishedAt": now}}
    status = {"phase": phase, "conditions": [{"type": "Ready", "status": str(phase == "Running")}],
              "containerStatuses": [{"name": "tensorflow", "state": state, "ready": phase == "Running", "restartCount": restarts,
                                     "image": "x:1", "imageID": ""}]}
    k8s.patch(f"{NAMESPACE}/pods/{name}/status", {"status": status})


def s_run(k8s, job):
    for name, pod in s_pods(k8s, job).items():
        if pod["status"].get("phase") == "Pending":
            s_move(k8s, name, "Running")


def s_status(k8s, job):
    return k8s.get(f"{JOBS}/{job}").get("status", {})


def s_conditions(k8s, job):
    return {c["type"]: c for c in s_status(k8s, job).get("conditions", [])}


def s_last(k8s, job):
    return ([""] + [c["type"] for c in s_status(k8s, job).get("conditions", [])])[-1]


def s_await(k8s, job, state):
    wait_for(lambda: s_last(k8s, job) == state, lambda: f"{job} to be {state}; it is {s_status(k8s, job)}", DEADLINE)
    return s_status(k8s, job)


def s_start(k8s, job, replicas, *places, **spec):
    s_create(k8s, job, replicas, **spec)
    s_await_pods(k8s, job, *places)
    s_run(k8s, job)
    return s_await(k8s, job, "Running")


def s_reasons(k8s, job):
    items = k8s.get(f"{NAMESPACE}/events?fieldSelector=involvedObject.name={job}")["items"]
    return {(event["type"], event["reason"]) for event in items}


def s_delete(k8s, job):
    k8s.kubectl("delete", "tfjob", job, "--wait=false")
    wait_for(lambda: not s_named(k8s, "pods", job) and not s_named(k8s, "services", job), f"{job} to leave nothing", DEADLINE)


def s_tf_config(pod):
    containers = {c["name"]: c for c in pod["spec"]["containers"]}
    return {e["name"]: e["value"] for e in containers["tensorflow"].get("env", [])}.get("TF_CONFIG")


# --- what others have written

def s_begun(k8s, space, name):
    """Its pods, without its name and the four characters of v1alpha1."""
    pods = k8s.get(f"/api/v1/namespaces/{space}/pods")["items"]
    names = [pod["metadata"]["name"] for pod in pods if pod["metadata"]["ownerReferences"][0]["name"] == name and "deletionTimestamp" not in pod["metadata"]]
    return sorted(re.sub(r"^([a-z]+)-[a-z0-9]{4}-(\d)$", r"\1-ID-\2", one[len(name) + 1:]) for one in names)


def test_the_public_examples(k8s):
    """As their authors type it, strictly: taken by the schema, begun by the operator, nothing of them refused."""
    check(sorted(os.listdir(UPSTREAM)) == sorted(f"{example}.yaml" for example in PUBLIC), os.listdir(UPSTREAM))
    for space in {space for space, _, _ in PUBLIC.values()} - {"default"}:
        k8s.api("POST", "/api/v1/namespaces", {"metadata": {"name": space}})
        wait_for(lambda space=space: k8s.find(f"/api/v1/namespaces/{space}/serviceaccounts/default"), f"the account of {space}", DEADLINE)
    with operator(k8s):
        for example, (space, name, places) in PUBLIC.items():
            job = f"{JOBS.replace('/default/', f'/{space}/')}/{name}"
            k8s.kubectl("create", "--validate=strict", "-f", os.path.join(UPSTREAM, f"{example}.yaml"))
            there = lambda: (s_begun(k8s, space, name), [c["type"] for c in k8s.get(job).get("status", {}).get("conditions", [])])
            wait_for(lambda: there() == (places, ["Created"]), lambda: f"{example}: {places}, and not {there()}", DEADLINE)
            k8s.api("DELETE", job)
            wait_for(lambda: not s_begun(k8s, space, name), f"{example} to go", DEADLINE)


# --- the samples

def test_the_samples(k8s):
    """Each as it is: made, run by its places, done when the one that decides is."""
    ends = {"tf-config.yaml": "worker-0", "multi-worker.yaml": "worker-0", "ps-worker.yaml": "chief-0"}
    check({*ends, OLD_SAMPLE} == {name for name in os.listdir(SAMPLES) if name.endswith(".yaml")}, os.listdir(SAMPLES))
    with operator(k8s):
        for sample, decides in ends.items():
            job = sample.removesuffix(".yaml")
            k8s.kubectl("create", "-f", os.path.join(SAMPLES, sample))
            spec = k8s.get(f"{JOBS}/{job}")["spec"]["tfReplicaSpecs"]
            places = [f"{kind.lower()}-{i}" for kind, replicas in spec.items() for i in range(replicas.get("replicas", 1))]
            pods = s_await_pods(k8s, job, *places)
            s_await_services(k8s, job, *places)
            for name, pod in pods.items():
                config = json.loads(s_tf_config(pod))
                me = config["cluster"][config["task"]["type"]][config["task"]["index"]]
                check(me == f"{name}.default.svc:2222", f"{name} is {config}")
                check(sum(map(len, config["cluster"].values())) == len(places), config)
            s_run(k8s, job)
            s_await(k8s, job, "Running")
            s_move(k8s, f"{job}-{decides}", "Succeeded")
            s_await(k8s, job, "Succeeded")
            s_delete(k8s, job)


# --- one job

def test_from_created_to_succeeded(k8s):
    with operator(k8s) as op:
        s_create(k8s, "mnist", {"PS": s_replicas(), "worker": s_replicas(2)})
        pods = s_await_pods(k8s, "mnist", "ps-0", "worker-0", "worker-1")
        s_await_services(k8s, "mnist", "ps-0", "worker-0", "worker-1")
        check(s_tf_config(pods["mnist-worker-1"]) ==
              '{"cluster":{"ps":["mnist-ps-0.default.svc:2222"],"worker":["mnist-worker-0.default.svc:2222",'
              '"mnist-worker-1.default.svc:2222"]},"task":{"type":"worker","index":1},"environment":"cloud"}', pods)
        owner = pods["mnist-ps-0"]["metadata"]["ownerReferences"][0]
        check(owner["kind"] == "TFJob" and owner["controller"] and owner["blockOwnerDeletion"], owner)
        check(pods["mnist-worker-0"]["metadata"]["labels"].get("job-role") == "master", "worker 0 is who decides")
        s_await(k8s, "mnist", "Created")
        s_run(k8s, "mnist")
        s_await(k8s, "mnist", "Running")  # with the first worker; the other is told of a moment later
        wait_for(lambda: s_status(k8s, "mnist")["replicaStatuses"] == {"PS": {"active": 1}, "Worker": {"active": 2}},
                 lambda: f"all to be active: {s_status(k8s, 'mnist')}", DEADLINE)
        check("Running" in k8s.kubectl("get", "tfjobs").stdout, "kubectl get tfjobs shows State")
        s_move(k8s, "mnist-worker-0", "Succeeded")
        status = s_await(k8s, "mnist", "Succeeded")
        check(status["startTime"] <= status["completionTime"], status)
        s_await_pods(k8s, "mnist", "worker-0")
        s_await_services(k8s, "mnist")
        wait_for(lambda: {("Normal", "TFJobCreated"), ("Normal", "TFJobRunning"), ("Normal", "TFJobSucceeded"),
                          ("Normal", "SuccessfulCreate"), ("Normal", "SuccessfulDelete")} <= s_reasons(k8s, "mnist"), "the events")
        text = k8s.http(op.probes, "/metrics")[1].decode()
        check('tutti_operator_jobs_finished_total{kind="tfjob",result="succeeded",reason=""} 1' in text and
              'tutti_operator_jobs_by_phase{kind="tfjob",phase="Succeeded"} 1' in text, text)
        s_delete(k8s, "mnist")


def test_no_writes_in_steady_state(k8s):
    """What changes nothing for us writes nothing, and a fresh operator has nothing to do either."""
    with operator(k8s) as op:
        s_start(k8s, "calm", {"PS": s_replicas(1, "Always"), "Worker": s_replicas(2)}, "ps-0", "worker-0", "worker-1")
        wait_for(lambda: s_status(k8s, "calm")["replicaStatuses"] == {"PS": {"active": 1}, "Worker": {"active": 2}}, "all known as active")
        op.idle()
        wait_for(lambda: (lambda n: (time.sleep(1), len(k8s.audit(agent="tutti-operator", writes=True)) == n)[1])(
            len(k8s.audit(agent="tutti-operator", writes=True))), "the last event to be written")
        before = time.time()
        k8s.kubectl("annotate", "tfjob", "calm", "note=1")
        for name in s_pods(k8s, "calm"):
            k8s.patch(f"{NAMESPACE}/pods/{name}", {"metadata": {"annotations": {"note": "1"}}})
        with operator(k8s) as other:
            other.idle()
            time.sleep(1)
        writes = [e for e in k8s.audit(agent="tutti-operator", writes=True, since=before) if e["objectRef"]["resource"] != "leases"]
        check(not writes, f"{[(e['verb'], e['objectRef']) for e in writes]}")
        s_delete(k8s, "calm")


def test_by_exit_code(k8s):
    with operator(k8s):
        s_start(k8s, "codes", {"Chief": s_replicas(1, "ExitCode"), "Worker": s_replicas(1, "ExitCode")}, "chief-0", "worker-0")
        first = s_pods(k8s, "codes")["codes-worker-0"]["metadata"]["uid"]
        service = s_named(k8s, "services", "codes")["codes-worker-0"]["metadata"]["uid"]
        s_move(k8s, "codes-worker-0", "Failed", 137)
        s_await(k8s, "codes", "Restarting")
        wait_for(lambda: s_pods(k8s, "codes").get("codes-worker-0", {}).get("metadata", {}).get("uid", first) != first,
                 "another worker 0", DEADLINE)
        check(s_named(k8s, "services", "codes")["codes-worker-0"]["metadata"]["uid"] == service, "its service stayed")
        s_run(k8s, "codes")
        s_await(k8s, "codes", "Running")
        check(s_status(k8s, "codes")["restarts"] == 1, s_status(k8s, "codes"))
        s_move(k8s, "codes-worker-0", "Failed", 1)
        s_await(k8s, "codes", "Failed")
        check("codes-worker-0 exited with code 1" in s_conditions(k8s, "codes")["Failed"]["message"], s_conditions(k8s, "codes"))
        wait_for(lambda: ("Normal", "ExitedWithCode") in s_reasons(k8s, "codes"), "the event of the exit code")
        s_delete(k8s, "codes")


def test_all_workers(k8s):
    """successPolicy AllWorkers: worker 0's success is not the job's, till each of them has it; one that fails has failed it."""
    with operator(k8s):
        for job, code in (("all", 0), ("but-one", 3)):
            s_start(k8s, job, {"PS": s_replicas(), "Worker": s_replicas(3)}, "ps-0", "worker-0", "worker-1", "worker-2", successPolicy="AllWorkers")
            for done in (1, 2):
                s_move(k8s, f"{job}-worker-{done - 1}", "Succeeded")
                counts = {"PS": {"active": 1}, "Worker": {"active": 3 - done, "succeeded": done}}
                counted = lambda job=job: (s_last(k8s, job), s_status(k8s, job)["replicaStatuses"])
                wait_for(lambda counted=counted, counts=counts: counted()[0] != "Running" or counted()[1] == counts, "that worker's end to be counted", DEADLINE)
                check(counted() == ("Running", counts), s_status(k8s, job))
            s_move(k8s, f"{job}-worker-2", "Failed" if code else "Succeeded", code)
            s_await(k8s, job, "Failed" if code else "Succeeded")
            s_await_pods(k8s, job, "worker-0", "worker-1", "worker-2")
            s_delete(k8s, job)
        for policy, taken in (("", True), ("ChiefOnly", False)):
            try:
                s_create(k8s, "words", {"Worker": s_replicas()}, successPolicy=policy, runPolicy={"suspend": True})
                check(taken, f"taken: {policy}")
                s_delete(k8s, "words")
            except cluster.ApiError as error:
                check(not taken and "Unsupported value" in str(error), f"{policy}: {error}")


def test_every_clean_pod_policy(k8s):
    """In its old place and in the new one."""
    with operator(k8s):
        for i, (spec, left) in enumerate([({"cleanPodPolicy": "All"}, []), ({"runPolicy": {"cleanPodPolicy": "Running"}}, ["worker-0"]),
                                          ({}, ["worker-0"]), ({"runPolicy": {"cleanPodPolicy": "None"}}, ["ps-0", "worker-0"])]):
            job = f"clean-{i}"
            s_start(k8s, job, {"PS": s_replicas(), "Worker": s_replicas()}, "ps-0", "worker-0", **spec)
            s_move(k8s, f"{job}-worker-0", "Succeeded")
            s_await(k8s, job, "Succeeded")
            s_await_pods(k8s, job, *left)
            s_await_services(k8s, job, *(left if len(left) == 2 else []))
            s_delete(k8s, job)


def test_deadline_backoff_and_time_to_live(k8s):
    with operator(k8s):
        s_start(k8s, "late", {"Worker": s_replicas()}, "worker-0", runPolicy={"cleanPodPolicy": "All"})
        k8s.patch(f"{JOBS}/late", {"spec": {"runPolicy": {"activeDeadlineSeconds": 1}}})  # with it from its beginning it may be over before it runs
        s_await(k8s, "late", "Failed")
        check("longer than specified deadline" in s_conditions(k8s, "late")["Failed"]["message"], s_conditions(k8s, "late"))
        s_await_pods(k8s, "late")
        s_start(k8s, "often", {"Worker": s_replicas(1, "OnFailure")}, "worker-0", runPolicy={"backoffLimit": 2})
        s_move(k8s, "often-worker-0", "Running", restarts=2)
        s_await(k8s, "often", "Failed")
        check("backoff limit" in s_conditions(k8s, "often")["Failed"]["message"], s_conditions(k8s, "often"))
        s_start(k8s, "short", {"Worker": s_replicas()}, "worker-0", runPolicy={"ttlSecondsAfterFinished": 1})
        s_move(k8s, "short-worker-0", "Succeeded")
        wait_for(lambda: not k8s.find(f"{JOBS}/short"), "a job whose time is over to go", DEADLINE)
        wait_for(lambda: not s_pods(k8s, "short"), "and its pods with it", DEADLINE)
        for job in ("late", "often"):
            s_delete(k8s, job)


def test_invalid_specs(k8s):
    """What the schema refuses, and what only the operator can."""
    with operator(k8s):
        for replicas, words in [({"Chief": s_replicas(2)}, "exactly 1 replica of Chief or Master"), ({}, "minProperties"),
                                ({"Boss": s_replicas()}, "expected types out of"),
                                ({"Worker": s_replicas(1, "Sometimes")}, "Unsupported value"),
                                ({"Worker": s_replicas(0)}, "at least 1 replica")]:
            try:
                s_create(k8s, "wrong", replicas)
                check(False, f"taken: {replicas}")
            except cluster.ApiError as error:
                check(words in str(error) or words == "minProperties", f"{error}")
        template = {"spec": {"restartPolicy": "Always", "containers": [{"name": "main", "image": "x"}]}}
        s_create(k8s, "wrong", {"Worker": s_replicas(1, None, template)})
        s_await(k8s, "wrong", "Failed")
        failed = s_conditions(k8s, "wrong")["Failed"]
        check(failed["reason"] == "InvalidTFJobSpec" and "the spec is invalid" in failed["message"] and
              "no container named tensorflow" in failed["message"], failed)
        check(not s_pods(k8s, "wrong"), "nothing was made")
        s_delete(k8s, "wrong")
        template = {"spec": {"restartPolicy": "Always", "containers": [{"name": "tensorflow", "image": "x", "ports": [{}]}]}}
        s_create(k8s, "refused", {"Worker": s_replicas(1, None, template)})
        s_await(k8s, "refused", "TemplateRefused")
        wait_for(lambda: {("Warning", "SettedPodTemplateRestartPolicy"), ("Warning", "TemplateRefused")} <= s_reasons(k8s, "refused"),
                 "the warnings")
        s_delete(k8s, "refused")


def test_suspended_scaled_and_both_kinds(k8s):
    """A TFJob waits till it is let go, is made smaller, and a DIJob beside it is none of its business."""
    with operator(k8s):
        s_create(k8s, "waits", {"Worker": s_replicas(3, "OnFailure")}, runPolicy={"suspend": True})
        s_await(k8s, "waits", "Suspended")
        check(not s_pods(k8s, "waits"), "no pod of a suspended job")
        k8s.patch(f"{JOBS}/waits", {"spec": {"runPolicy": {"suspend": False}}})
        s_await_pods(k8s, "waits", "worker-0", "worker-1", "worker-2")
        s_run(k8s, "waits")
        s_await(k8s, "waits", "Running")
        dijob = {"apiVersion": "diengine.opendilab.org/v1alpha1", "kind": "DIJob", "metadata": {"name": "waits"}, "spec": {
            "coordinator": {"template": {"spec": {"containers": [{"name": "di-container", "image": "x:1"}]}}}}}
        k8s.api("POST", "/apis/diengine.opendilab.org/v1alpha1/namespaces/default/dijobs", dijob)
        wait_for(lambda: k8s.find(f"{NAMESPACE}/pods/waits-coordinator"), "the DIJob's coordinator", DEADLINE)
        k8s.patch(f"{JOBS}/waits", {"spec": {"tfReplicaSpecs": {"Worker": {"replicas": 1}}}})
        s_await_pods(k8s, "waits", "worker-0")
        s_await_services(k8s, "waits", "worker-0")
        check(k8s.find(f"{NAMESPACE}/pods/waits-coordinator"), "the DIJob's is left alone")
        k8s.kubectl("delete", "dijob", "waits", "--wait=false")
        s_delete(k8s, "waits")


# --- v1alpha1

def s_old_sample(k8s):
    """As it is: its parameter servers get a program, and with the master's end all of it goes."""
    k8s.kubectl("create", "-f", os.path.join(SAMPLES, OLD_SAMPLE))
    wait_for(lambda: len(s_pods(k8s, "example-job")) == 4, "four pods", DEADLINE)
    pods = s_pods(k8s, "example-job")
    master = next(name for name in pods if "-master-" in name)
    rtid = master.split("-")[-2]
    check(set(pods) == {f"example-job-{place}" for place in (f"master-{rtid}-0", f"worker-{rtid}-0", f"ps-{rtid}-0", f"ps-{rtid}-1")}, set(pods))
    ps = pods[f"example-job-ps-{rtid}-1"]["spec"]["containers"][0]
    check(ps["image"] == "tensorflow/tensorflow:2.21.0" and ps["command"] == [
        "python", "/ps-server/grpc_tensorflow_server.py", "--cluster_spec",
        f"master|example-job-master-{rtid}-0:2222,ps|example-job-ps-{rtid}-0:2222;example-job-ps-{rtid}-1:2222,"
        f"worker|example-job-worker-{rtid}-0:2222", "--job_name", "ps", "--task_id", "1"], ps)
    uid = k8s.get(f"{JOBS}/example-job")["metadata"]["uid"]
    script = f"cm-ps-{rtid}-{uid[:8]}"
    check("tf.train.Server" in k8s.get(f"{NAMESPACE}/configmaps/{script}")["data"]["grpc_tensorflow_server.py"], "the script")
    check(json.loads(s_tf_config(pods[master]))["cluster"]["master"] == [f"{master}:2222"], s_tf_config(pods[master]))
    s_run(k8s, "example-job")
    s_await(k8s, "example-job", "Running")
    s_move(k8s, master, "Succeeded")
    s_await(k8s, "example-job", "Succeeded")
    wait_for(lambda: not s_pods(k8s, "example-job") and not s_named(k8s, "services", "example-job"), "nothing of it to be left", DEADLINE)
    wait_for(lambda: s_status(k8s, "example-job")["phase"] == "Done", lambda: s_status(k8s, "example-job"), DEADLINE)
    s_delete(k8s, "example-job")
    wait_for(lambda: not k8s.find(f"{NAMESPACE}/configmaps/{script}"), "the script to go with its job", DEADLINE)


def s_old_whole():
    template = {"spec": {"containers": [{"name": "tensorflow", "image": "x:1", "command": ["true"]}], "restartPolicy": "OnFailure"}}
    return {"replicaSpecs": [{"replicas": 1, "tfReplicaType": "MASTER", "tfPort": 2000, "template": template},
                             {"replicas": 2, "tfReplicaType": "WORKER", "tfPort": 2222, "template": template}],
            "RuntimeId": "zz9z", "tfImage": "tf:1", "schedulerName": "other", "terminationPolicy": {"chief": {
                "replicaName": "WORKER", "replicaIndex": 1}},
            "tensorboard": {"logDir": "/logs", "serviceType": "NodePort", "volumeMounts": [{"name": "logs", "mountPath": "/logs"}],
                            "volumes": [{"name": "logs", "emptyDir": {}}]}}


def s_old_board(k8s):
    board = k8s.get("/apis/apps/v1/namespaces/default/deployments/whole-tensorboard-zz9z")["spec"]["template"]["spec"]
    check(board["containers"][0]["image"] == "tf:1" and board["containers"][0]["command"][:3] == ["tensorboard", "--logdir", "/logs"], board)
    check(board["volumes"] == [{"name": "logs", "emptyDir": {}}], board)
    service = k8s.get(f"{NAMESPACE}/services/whole-tensorboard-zz9z")["spec"]
    check(service["type"] == "NodePort" and (service["ports"][0]["port"], service["ports"][0]["targetPort"]) == (80, 6006), service)


def s_old_fields(k8s):
    """Every field of a job survives in both versions; worker 1 is the chief, and what it does to its last container counts."""
    whole = s_old_whole()
    body = {"apiVersion": "kubeflow.org/v1alpha1", "kind": "TFJob", "metadata": {"name": "whole"}, "spec": whole}
    k8s.kubectl("create", "--validate=strict", "-f", "-", input=json.dumps(body))
    for jobs in (JOBS, OLD_JOBS):
        check(k8s.get(f"{jobs}/whole")["spec"] == whole, k8s.get(f"{jobs}/whole"))
    pods = s_await_pods(k8s, "whole", "master-zz9z-0", "worker-zz9z-0", "worker-zz9z-1")
    check(all(pod["spec"]["schedulerName"] == "other" for pod in pods.values()), pods)
    chief = pods["whole-worker-zz9z-1"]
    check(s_tf_config(chief) == '{"cluster":{"master":["whole-master-zz9z-0:2000"],"worker":["whole-worker-zz9z-0:2222",'
          '"whole-worker-zz9z-1:2222"]},"task":{"type":"worker","index":1},"environment":"cloud"}', s_tf_config(chief))
    labels = {"kubeflow.org": "", "job_type": "WORKER", "runtime_id": "zz9z", "tf_job_name": "whole", "task_index": "1"}
    check(labels.items() <= chief["metadata"]["labels"].items(), chief["metadata"]["labels"])
    s_await_services(k8s, "whole", "master-zz9z-0", "worker-zz9z-0", "worker-zz9z-1")
    port = s_named(k8s, "services", "whole")["whole-master-zz9z-0"]["spec"]["ports"][0]
    check((port["name"], port["port"]) == ("tf-port", 2000), port)
    s_old_board(k8s)
    s_run(k8s, "whole")
    s_await(k8s, "whole", "Running")
    check("Running" in k8s.kubectl("get", "tfjobs.v1alpha1.kubeflow.org", "whole").stdout, "its State")
    s_move(k8s, "whole-master-zz9z-0", "Succeeded")  # it has no say
    s_move(k8s, "whole-worker-zz9z-1", "Failed", 3)
    s_await(k8s, "whole", "Failed")
    wait_for(lambda: s_status(k8s, "whole")["phase"] == "Done", lambda: s_status(k8s, "whole"), DEADLINE)
    status = k8s.get(f"{OLD_JOBS}/whole")["status"]
    check(status["state"] == "Failed" and "whole-worker-zz9z-1 exited with code 3" in status["reason"], status)
    check([(one["tf_replica_type"], one["ReplicasStates"]) for one in status["replicaStatuses"]] ==
          [("MASTER", {"Succeeded": 1}), ("WORKER", {"Running": 1, "Failed": 1})], status)
    check({"Failed", "Done"} <= set(k8s.kubectl("get", "tfjobs.v1alpha1.kubeflow.org", "whole").stdout.split()), "State and Phase")
    s_delete(k8s, "whole")


def s_old_refused(k8s):
    """Neither generation, or both; and one of v1 is whole where it is read as v1alpha1."""
    one = s_old_whole()
    for spec, words in (({}, "expected tfReplicaSpecs"), ({**one, "tfReplicaSpecs": {"Worker": s_replicas()}}, "expected tfReplicaSpecs"),
                        ({"replicaSpecs": [{"replicas": 2, "template": TEMPLATE}]}, "exactly 1 replica of MASTER"),
                        ({"replicaSpecs": [{}]}, "only a PS has one"),
                        ({"replicaSpecs": 2 * one["replicaSpecs"][:1]}, "each tfReplicaType once")):
        try:
            k8s.api("POST", OLD_JOBS, {"apiVersion": "kubeflow.org/v1alpha1", "kind": "TFJob", "metadata": {"name": "wrong"}, "spec": spec})
            check(False, f"taken: {spec}")
        except cluster.ApiError as error:
            check(words in str(error), f"{error}")
    one["tensorboard"]["volumes"][0]["name"] = "No_Name"
    k8s.api("POST", OLD_JOBS, {"apiVersion": "kubeflow.org/v1alpha1", "kind": "TFJob", "metadata": {"name": "mounts"}, "spec": one})
    wait_for(lambda: ("Warning", "FailedCreate") in s_reasons(k8s, "mounts"), "an event of a TensorBoard that is refused", DEADLINE)
    check(not s_pods(k8s, "mounts"), "no pod before it is mended")
    s_delete(k8s, "mounts")
    s_create(k8s, "new", {"Worker": s_replicas(2)}, runPolicy={"suspend": True})
    check(k8s.get(f"{OLD_JOBS}/new")["spec"] == k8s.get(f"{JOBS}/new")["spec"], k8s.get(f"{OLD_JOBS}/new"))
    s_delete(k8s, "new")


def test_v1alpha1(k8s):
    with operator(k8s):
        s_old_sample(k8s)
        s_old_fields(k8s)
        s_old_refused(k8s)


# --- the operator

ACCELERATORS = """accelerators:
  example.com/gpu:
    volumes: [{name: lib, hostPath: /opt/gpu/lib, mountPath: /usr/local/gpu}]
    envVars: [{name: LD_LIBRARY_PATH, value: /usr/local/gpu}]
"""


def test_what_comes_with_a_resource(k8s):
    """Who asks for it gets folders of the node and variables; a template that has taken the name is refused in words. A file that is
    none ends the operator before it has asked the API server for anything."""
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
        file.write(ACCELERATORS)
        file.flush()
        with operator(k8s, f"--controller-config-file={file.name}"):
            worker = {"spec": {"containers": [{**TEMPLATE["spec"]["containers"][0], "resources": {"limits": {"example.com/gpu": 1}}}]}}
            s_create(k8s, "cards", {"PS": s_replicas(), "Worker": s_replicas(template=worker)})
            pods = s_await_pods(k8s, "cards", "ps-0", "worker-0")
            for name, has in (("cards-ps-0", []), ("cards-worker-0", ["lib"])):
                spec = pods[name]["spec"]
                (container,) = spec["containers"]
                check([mount["name"] for mount in container.get("volumeMounts", []) if mount["mountPath"] == "/usr/local/gpu"] == has, container)
                check([volume["name"] for volume in spec.get("volumes", []) if volume.get("hostPath", {}).get("path") == "/opt/gpu/lib"] == has, spec)
                check(({"name": "LD_LIBRARY_PATH", "value": "/usr/local/gpu"} in container["env"]) == bool(has), container["env"])
            s_delete(k8s, "cards")
            taken = {"spec": {**worker["spec"], "volumes": [{"name": "lib", "emptyDir": {}}]}}
            s_create(k8s, "taken", {"Worker": s_replicas(template=taken)})
            s_await(k8s, "taken", "TemplateRefused")
            check("volume lib that is not hostPath /opt/gpu/lib" in s_conditions(k8s, "taken")["TemplateRefused"]["message"], s_conditions(k8s, "taken"))
            s_delete(k8s, "taken")
        file.write("  example.com/tpu: {volume: []}\n")
        file.flush()
        for options, code, words in ((["--also=tfjob"], 78, f"{file.name}:5: 'volume' is no key here; there are: volumes, envVars"),
                                     ([], 64, "it needs --also tfjob")):
            done = subprocess.run([TUTTI, "operator", *options, f"--controller-config-file={file.name}"], capture_output=True, text=True, timeout=60)
            check(done.returncode == code and words in done.stderr, f"{done}")


def test_an_operator_that_is_killed_forgets_nothing(k8s):
    """A restart is counted once, whoever counts it."""
    with operator(k8s) as op:
        s_start(k8s, "kept", {"Worker": s_replicas(2, "ExitCode")}, "worker-0", "worker-1", runPolicy={"backoffLimit": 3})
        op.stop(9)
    s_move(k8s, "kept-worker-0", "Failed", 143)
    with operator(k8s):
        wait_for(lambda: s_pods(k8s, "kept").get("kept-worker-0", {}).get("status", {}).get("phase") == "Pending", "another", DEADLINE)
        s_run(k8s, "kept")
        s_await(k8s, "kept", "Running")
        check(s_status(k8s, "kept")["restarts"] == 1, s_status(k8s, "kept"))
        s_delete(k8s, "kept")


if __name__ == "__main__":
    cluster.main(test_the_samples, test_from_created_to_succeeded, test_no_writes_in_steady_state, test_by_exit_code, test_all_workers,
                 test_every_clean_pod_policy, test_deadline_backoff_and_time_to_live, test_invalid_specs, test_suspended_scaled_and_both_kinds, test_v1alpha1,
                 test_what_comes_with_a_resource, test_an_operator_that_is_killed_forgets_nothing, test_the_public_examples,
                 controllers=True, audit=True)
