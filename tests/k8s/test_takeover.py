#!/usr/bin/env python3
"""Jobs that DI-orchestrator's operator left running, with its own schema and its own pods, and TFJobs that Kubeflow's left: under our
schema and our operator nothing of them is deleted, made anew or failed, and they go on to their end."""

import json
import sys
import time

sys.dont_write_bytecode = True
import cluster
import test_operator as rig
from cluster import check, wait_for

GROUP = "diengine.opendilab.org"
PODS, SERVICES = rig.PODS, rig.SERVICES
UPSTREAM = f"{rig.SOURCE}/tests/k8s/upstream"
LONG = "a-job-whose-name-has-forty-six-characters-in-it"[:46]


def s_path(version, name=""):
    return f"/apis/{GROUP}/{version}/namespaces/default/dijobs" + (f"/{name}" if name else "")


# --- what DI-orchestrator leaves behind

def s_schema(k8s, version):
    """Its own, and no other."""
    k8s.kubectl("delete", "crd", f"dijobs.{GROUP}", "--ignore-not-found")
    wait_for(lambda: not k8s.find(s_path("v1alpha1")) and not k8s.find(s_path("v2alpha1")), "the schema to go", rig.DEADLINE)
    k8s.kubectl("create", "-f", f"{UPSTREAM}/dijob-{version}.yaml")
    wait_for(lambda: k8s.find(s_path(version)), "DI-orchestrator's schema to be served", rig.DEADLINE)


def s_job(k8s, version, name, spec, status):
    job = {"apiVersion": f"{GROUP}/{version}", "kind": "DIJob", "metadata": {"name": name}, "spec": spec}
    made = k8s.api("POST", s_path(version), job)
    k8s.patch(f"{s_path(version, name)}/status", {"status": status})
    return made


def s_owner(job, version, **more):
    return [{"apiVersion": f"{GROUP}/{version}", "kind": "DIJob", "name": job["metadata"]["name"],
             "uid": job["metadata"]["uid"], "controller": True, **more}]


def s_pod(k8s, name, labels, annotations, owner, **spec):
    """One that runs."""
    k8s.api("POST", PODS, {"apiVersion": "v1", "kind": "Pod", "spec": {**rig.s_template("x")["template"]["spec"], **spec},
                           "metadata": {"name": name, "labels": labels, "annotations": annotations,
                                        "ownerReferences": owner}})
    rig.s_move(k8s, name, "Running", "10.9.9.9")


def s_service(k8s, name, labels, owner):
    k8s.api("POST", SERVICES, {"apiVersion": "v1", "kind": "Service",
                               "metadata": {"name": name, "labels": labels, "ownerReferences": owner},
                               "spec": {"clusterIP": "None", "selector": labels,
                                        "ports": [{"name": "di-port", "port": 22270}]}})


def s_task(kind, replicas=1, **more):
    return {"type": kind, "replicas": replicas, **more, **rig.s_template(kind)}


def s_left_by_v11(k8s, name, release="1.1.3", spec=None):
    """A job of a learner and two collectors as a release of 1.1 has it while it runs. 1.1.0 labels no task and has the
    service named as the job; from 1.1.1 on tasks are labels, from 1.1.2 on the service is di-NAME."""
    tasks = [s_task("learner", name="learner"), s_task("collector", 2, name="collector")]
    job = s_job(k8s, "v2alpha1", name, spec or {"tasks": tasks, "priority": "normal"},
                {"phase": "Running", "restarts": 1, "replicas": 3, "readyReplicas": 3,
                 "taskStatus": {"learner": {"Running": 1}, "collector": {"Running": 2}},
                 "conditions": [{"type": "Running", "status": "True", "reason": "JobRunning", "message": "job is running"}]})
    labels = {"diengine/job": name, "diengine/operator": "di-operator"}
    owner = s_owner(job, "v2alpha1", blockOwnerDeletion=True)
    service = f"di-{name}" if release >= "1.1.2" else name
    for rank, (task, task_rank) in enumerate((("learner", 0), ("collector", 0), ("collector", 1))):
        pod = f"{name}-{task}-{task_rank}"
        notes = {"diengine/replicas": "3", "diengine/rank": str(rank), "diengine/task-rank": str(task_rank), "diengine/node": ""}
        its = {**labels, "diengine/pod": pod}
        if release == "1.1.0":
            its["diengine/rank"], notes["diengine/task-type"] = str(rank), task
        else:
            its.update({"diengine/task-type": task, "diengine/task-name": task})
        s_pod(k8s, pod, its, notes, owner, restartPolicy="Never", hostname=pod, subdomain=service)
    s_service(k8s, service, labels, owner)


def s_between(k8s, name, phase, pods=None, tasks=None):
    """A job of a task, at a moment at which it has no pod, or one that ended so."""
    job = s_job(k8s, "v2alpha1", name, {"tasks": tasks or [s_task("learner", name="learner")], "cleanPodPolicy": "Running"},
                {"phase": phase, "restarts": int(phase == "Restarting"), "replicas": 1, "readyReplicas": 0,
                 "conditions": [{"type": phase, "status": "True", "reason": f"Job{phase}", "message": "as it was"}]})
    if pods:
        labels = {"diengine/job": name, "diengine/operator": "di-operator", "diengine/pod": f"{name}-learner-0",
                  "diengine/task-type": "learner", "diengine/task-name": "learner"}
        notes = {"diengine/replicas": "1", "diengine/rank": "0", "diengine/task-rank": "0", "diengine/node": ""}
        s_pod(k8s, f"{name}-learner-0", labels, notes, s_owner(job, "v2alpha1", blockOwnerDeletion=True), restartPolicy="Never")
        rig.s_move(k8s, f"{name}-learner-0", pods)


def s_left_by_v02(k8s, name, served=True):
    """A coordinator that asked di-server for two collectors and a learner. A service needs a name that begins with a letter
    and has no dot: without one where the job's has."""
    job = s_job(k8s, "v1alpha1", name, {role: rig.s_template(role) for role in ("coordinator", "collector", "learner")},
                {"phase": "Running", "replicaStatus": {"Coordinator": {"active": 1}, "Collector": {"active": 2}}})
    owner = s_owner(job, "v1alpha1")
    for role, suffix in (("coordinator", ""), ("collector", "-bcdfg"), ("collector", "-hjklm"), ("learner", "-npqrs")):
        pod = f"{name}-{role}{suffix}"
        labels = {"group-name": GROUP, "dijob-name": name, "controller-name": "di-operator", "replica-type": role, "pod-name": pod}
        s_pod(k8s, pod, labels, {}, owner)
        if served:
            s_service(k8s, pod, labels, owner)


# --- what becomes of it

def s_take_over(k8s):
    """Our schema in the place of theirs, both versions served: their pods' owners are of theirs."""
    parts = k8s.kubectl("kustomize", f"{rig.SOURCE}/k8s/overlays/v2alpha1").stdout.split("\n---\n")
    crds = [text for text in parts if "kind: CustomResourceDefinition" in text]
    theirs = [name for name in k8s.kubectl("get", "crd", "-o", "name").stdout.split() if "diengine" in name]
    k8s.kubectl("patch", *theirs, "--type", "merge", "-p", '{"spec":{"conversion":{"strategy":"None","webhook":null}}}')
    k8s.kubectl("apply", "-f", "-", input="\n---\n".join(crds))
    wait_for(lambda: k8s.find(s_path("v1alpha1")) and k8s.find(s_path("v2alpha1")), "both versions to be served", rig.DEADLINE)
    k8s.await_kind("dijob")
    k8s.knows_dijobs = True


def s_uids(k8s, path):
    """What there is, and that it is to stay."""
    return {item["metadata"]["name"]: item["metadata"]["uid"] for item in k8s.get(path)["items"]
            if "deletionTimestamp" not in item["metadata"] and item["metadata"]["name"] != "kubernetes"}


def s_await_looked_at(k8s, name):
    wait_for(lambda: k8s.get(s_path("v1alpha1", name)).get("status", {}).get("observedGeneration"),
             f"a first look at {name}", rig.DEADLINE)


def s_check_untouched(k8s, op, names, before):
    for name in names:
        s_await_looked_at(k8s, name)
    op.idle()
    after = s_uids(k8s, PODS), s_uids(k8s, SERVICES)
    for now, then in zip(after, before):
        check(now == then, f"came: {sorted(set(now) - set(then))}, gone: {sorted(set(then) - set(now))}, "
                           f"another one: {sorted(name for name in now if now[name] != then.get(name, now[name]))}")
    phases = {name: rig.s_phase(k8s, name) for name in names}
    check(set(phases.values()) == {"Running"}, f"{phases}")


def s_refusal(k8s, name):
    return rig.s_conditions(k8s.get(s_path("v1alpha1", name))["status"]).get("SpecRefused")


def test_jobs_of_v2alpha1_go_on(k8s):
    names = {"plain": "1.1.3", "2048-dqn": "1.1.3", LONG: "1.1.2", "old": "1.1.1", "oldest": "1.1.0"}
    s_schema(k8s, "v2alpha1")
    for name, release in names.items():
        s_left_by_v11(k8s, name, release)
    s_left_by_v11(k8s, "untyped", spec={"tasks": [{"replicas": 3, **rig.s_template("x")}]})  # a spec that we would not take
    s_take_over(k8s)
    before = s_uids(k8s, PODS), s_uids(k8s, SERVICES)
    with rig.Operator(k8s, ready=False) as op:
        s_check_untouched(k8s, op, [*names, "untyped"], before)
        check(s_refusal(k8s, "plain") is None, f"{s_refusal(k8s, 'plain')}")
        for name, reason in (("2048-dqn", "InvalidName"), (LONG, "InvalidName"), ("untyped", "InvalidSpec")):
            check(s_refusal(k8s, name) == ("True", reason), f"{name}: {s_refusal(k8s, name)}")
            wait_for(lambda: any(event[:2] == ("Warning", reason) for event in rig.s_events(k8s, name)), f"an event on {name}")
        status = k8s.get(s_path("v1alpha1", "2048-dqn"))["status"]
        check((status["restarts"], status["readyReplicas"]) == (1, 3), f"{status}")

        # one that fails is replaced in its place, found below the service that the others know
        rig.s_move(k8s, "oldest-collector-1", "Failed")
        again = wait_for(lambda: next((pod for pod in k8s.get(PODS)["items"] if pod["metadata"]["name"] == "oldest-collector-1"
                                       and pod["metadata"]["uid"] != before[0]["oldest-collector-1"]), None), "another one",
                         rig.DEADLINE)
        check(again["spec"]["subdomain"] == "oldest", again["spec"]["subdomain"])
        rig.s_move(k8s, "oldest-collector-1", "Running", "10.9.9.8")
        check(rig.s_await_phase(k8s, "oldest", "Running")["restarts"] == 2, "restarts")
    with rig.Operator(k8s, ready=False) as op:  # and a second look from nothing sees the same
        kept = s_uids(k8s, PODS), s_uids(k8s, SERVICES)
        s_check_untouched(k8s, op, [*names, "untyped"], kept)
        for name in [*names, "untyped"]:
            for pod in (f"{name}-learner-0", f"{name}-collector-0", f"{name}-collector-1"):
                rig.s_move(k8s, pod, "Succeeded")
            rig.s_await_phase(k8s, name, "Succeeded")
        op.idle()
        check(set(s_uids(k8s, PODS)) == set(kept[0]) and not s_uids(k8s, SERVICES), "the pods that ended stay, services go")
    k8s.kubectl("delete", "dijob", "--all", "--wait=false")
    wait_for(lambda: not s_uids(k8s, PODS), "nothing to be left", rig.DEADLINE)


def test_jobs_between_two_lives(k8s):
    """Pending, Restarting, ended: whatever their state. What the spec says can be kept is done; where we would refuse the spec nothing is."""
    bad = [{"replicas": 1, **rig.s_template("x")}]
    s_schema(k8s, "v2alpha1")
    s_between(k8s, "pending", "Pending")
    s_between(k8s, "restarting", "Restarting")
    s_between(k8s, "done", "Succeeded", pods="Succeeded")
    s_between(k8s, "failed", "Failed", pods="Failed")
    s_between(k8s, "bad-pending", "Pending", tasks=bad)
    s_between(k8s, "bad-restarting", "Restarting", tasks=bad)
    s_between(k8s, "bad-done", "Succeeded", tasks=bad)
    before = s_uids(k8s, PODS)
    s_take_over(k8s)
    with rig.Operator(k8s, ready=False) as op:
        for name in ("pending", "restarting"):
            s_await_looked_at(k8s, name)
            wait_for(lambda: f"{name}-learner-0" in s_uids(k8s, PODS), f"the pod of {name}", rig.DEADLINE)
            rig.s_move(k8s, f"{name}-learner-0", "Running", "10.9.9.7")
            check(rig.s_await_phase(k8s, name, "Running").get("restarts", 0) == int(name == "restarting"), f"restarts of {name}")
        for name, phase in (("done", "Succeeded"), ("failed", "Failed"), ("bad-pending", "Pending"),
                            ("bad-restarting", "Restarting"), ("bad-done", "Succeeded")):
            s_await_looked_at(k8s, name)
            op.idle()
            check(rig.s_phase(k8s, name) == phase, f"{name}: {rig.s_phase(k8s, name)}")
            refused = s_refusal(k8s, name)
            check(refused == (("True", "InvalidSpec") if name in ("bad-pending", "bad-restarting") else None), f"{name}: {refused}")
        after = s_uids(k8s, PODS)
        check({name: uid for name, uid in after.items() if name in before} == before, f"{before} became {after}")
        check(set(after) - set(before) == {"pending-learner-0", "restarting-learner-0"}, f"{after}")
    k8s.kubectl("delete", "dijob", "--all", "--wait=false")
    wait_for(lambda: not s_uids(k8s, PODS), "nothing to be left", rig.DEADLINE)


def test_jobs_of_v1alpha1_go_on(k8s):
    names = {"qbert": True, "2048-dqn": False, "exp.v1": False, LONG: True}
    s_schema(k8s, "v1alpha1")
    for name, served in names.items():
        s_left_by_v02(k8s, name, served)
    s_take_over(k8s)
    before = s_uids(k8s, PODS), s_uids(k8s, SERVICES)
    with rig.Operator(k8s, "--open-api", ready=False) as op:
        s_check_untouched(k8s, op, names, before)
        who = {"namespace": "default", "coordinator": "exp.v1-coordinator"}
        code, words, data = op.call("POST", rig.REPLICAS, {**who, "collectors": {"replicas": 1}})
        check(code == 200 and data["collectors"][0].startswith("exp.v1-collector-"), f"{code} {words} {data}")
        for name in names:
            rig.s_move(k8s, f"{name}-coordinator", "Succeeded")
            rig.s_await_phase(k8s, name, "Succeeded")
        wait_for(lambda: set(s_uids(k8s, PODS)) == {f"{name}-coordinator" for name in names}, "the others to go", rig.DEADLINE)
    k8s.kubectl("delete", "dijob", "--all", "--wait=false")
    wait_for(lambda: not s_uids(k8s, PODS), "nothing to be left", rig.DEADLINE)


# --- TFJobs of Kubeflow's

TFJOBS = "/apis/kubeflow.org/v1/namespaces/default/tfjobs"
TFJOB_TEMPLATE = {"spec": {"containers": [{"name": "tensorflow", "image": "x:1"}]}}
KUBEFLOW = "training.kubeflow.org/"


def s_labels_of(generation, job, kind, index, chief):
    """As tf-operator had them, the last time and till version 1.0.0, as the training operator has them, and as its first releases
    had them: both."""
    labels = {}
    if generation == "older":
        labels.update({"group-name": "kubeflow.org", "controller-name": "tf-operator", "job-name": job, "tf-job-name": job,
                       "tf-replica-type": kind, "tf-replica-index": str(index)})
        labels.update({"job-role": "master"} if chief else {})
        return labels
    if generation != "today":
        labels.update({"group-name": "kubeflow.org", "job-name": job, "replica-type": kind, "replica-index": str(index)})
        labels.update({"job-role": "master"} if chief else {})
    if generation != "old":
        labels.update({f"{KUBEFLOW}operator-name": "tfjob-controller", f"{KUBEFLOW}job-name": job,
                       f"{KUBEFLOW}replica-type": kind, f"{KUBEFLOW}replica-index": str(index)})
        labels.update({f"{KUBEFLOW}job-role": "master"} if chief else {})
    return labels


def s_ago(seconds):
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() - seconds))


def s_kubeflows_schema(k8s):
    """As good as tf-operator's, which asks for little."""
    version = {"name": "v1", "served": True, "storage": True, "subresources": {"status": {}},
               "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}}
    names = {"kind": "TFJob", "listKind": "TFJobList", "plural": "tfjobs", "singular": "tfjob"}
    k8s.kubectl("create", "-f", "-", input=json.dumps({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "tfjobs.kubeflow.org"},
        "spec": {"group": "kubeflow.org", "scope": "Namespaced", "names": names, "versions": [version]}}))
    k8s.await_kind("tfjob")


def s_left_by_kubeflow(k8s, generation, name, types=None, **policy):
    """A parameter server and two workers, while they run."""
    types = types or {"PS": 1, "Worker": 2}
    template = TFJOB_TEMPLATE
    spec = {"runPolicy": policy, "tfReplicaSpecs": {kind: {"replicas": count, "restartPolicy": "ExitCode", "template": template}
                                                    for kind, count in types.items()}}
    job = k8s.api("POST", TFJOBS, {"apiVersion": "kubeflow.org/v1", "kind": "TFJob", "metadata": {"name": name}, "spec": spec})
    conditions = [{"type": kind, "status": "True", "reason": f"TFJob{kind}", "message": f"TFJob {name} is {kind.lower()}.",
                   "lastUpdateTime": s_ago(7000), "lastTransitionTime": s_ago(7000)} for kind in ("Created", "Running")]
    k8s.patch(f"{TFJOBS}/{name}/status", {"status": {"conditions": conditions, "startTime": s_ago(7200), "replicaStatuses":
                                                     {kind: {"active": count} for kind, count in types.items()}}})
    owner = [{"apiVersion": "kubeflow.org/v1", "kind": "TFJob", "name": name, "uid": job["metadata"]["uid"], "controller": True,
              "blockOwnerDeletion": True}]
    for kind, index in ((kind.lower(), i) for kind, count in types.items() for i in range(count)):
        labels, place = s_labels_of(generation, name, kind, index, (kind, index) == ("worker", 0)), f"{name}-{kind}-{index}"
        meta = {"name": place, "labels": labels, "ownerReferences": owner}
        k8s.api("POST", PODS, {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": {**template["spec"], "restartPolicy": "Never"}})
        k8s.api("POST", SERVICES, {"apiVersion": "v1", "kind": "Service", "metadata": meta, "spec": {
            "clusterIP": "None", "selector": labels, "ports": [{"name": "tfjob-port", "port": 2222}]}})
        rig.s_move(k8s, place, "Running", "10.9.9.9", container="tensorflow")


def s_tfjob(k8s, name):
    return k8s.get(f"{TFJOBS}/{name}").get("status", {})


def s_tfjob_state(k8s, name):
    return s_tfjob(k8s, name)["conditions"][-1]["type"]


def s_check_tfjobs(k8s, op, names, before):
    for name in names:
        wait_for(lambda: s_tfjob(k8s, name).get("chiefUID") == before[0][f"{name}-worker-0"],
                 lambda: f"the worker that decides of {name} to be known: {s_tfjob(k8s, name)}", rig.DEADLINE)
    op.idle()
    check((s_uids(k8s, PODS), s_uids(k8s, SERVICES)) == before, f"{before}, and now {s_uids(k8s, PODS)}, {s_uids(k8s, SERVICES)}")
    for name in names:
        status = s_tfjob(k8s, name)
        check(s_tfjob_state(k8s, name) == "Running" and status["replicaStatuses"]["Worker"].get("active") == 2, f"{name}: {status}")
        warnings = [event for event in rig.s_events(k8s, name, "TFJob") if event[0] == "Warning" and event[1] != "TFJobRestarting"]
        check(not warnings, f"{warnings}")


def test_tfjobs_go_on(k8s):
    names = ("today", "between", "old", "older")
    s_kubeflows_schema(k8s)
    for name in names:
        s_left_by_kubeflow(k8s, name, name, activeDeadlineSeconds=36000)
    for name in names:  # a spec that we would not take: nobody says when it is done
        s_left_by_kubeflow(k8s, name, f"{name}-bad", {"PS": 1})
    k8s.kubectl("apply", "-k", f"{rig.SOURCE}/k8s/crd/tfjob")
    wait_for(lambda: k8s.find(TFJOBS.replace("/v1/", "/v1alpha1/")), "both versions to be served", rig.DEADLINE)
    elsewhere = {"runPolicy": {"managedBy": "kueue.x-k8s.io/multikueue"}, "tfReplicaSpecs": {"Worker": {"template": TFJOB_TEMPLATE}}}
    k8s.api("POST", TFJOBS, {"apiVersion": "kubeflow.org/v1", "kind": "TFJob", "metadata": {"name": "elsewhere"}, "spec": elsewhere})
    before = s_uids(k8s, PODS), s_uids(k8s, SERVICES)
    with rig.Operator(k8s, "--also=tfjob", ready=False) as op:
        s_check_tfjobs(k8s, op, names, before)
        for name in names:
            wait_for(lambda: any(event[:2] == ("Warning", "InvalidTFJobSpec") for event in rig.s_events(k8s, f"{name}-bad")), f"an event on {name}-bad")
            status = s_tfjob(k8s, f"{name}-bad")
            on = {c["type"] for c in status["conditions"] if c["status"] == "True"}
            check(on == {"Created", "Running", "SpecRefused"}, f"{status}")
        for name in names:  # one that is killed comes again, where the service that is there finds it
            place = f"{name}-worker-1"
            rig.s_move(k8s, place, "Failed", code=137, container="tensorflow")
            wait_for(lambda: s_uids(k8s, PODS).get(place, before[0][place]) != before[0][place], f"another {place}", rig.DEADLINE)
            labels = k8s.get(f"{PODS}/{place}")["metadata"]["labels"].items()
            selector = k8s.get(f"{SERVICES}/{place}")["spec"]["selector"]
            check(selector.items() <= labels, f"{place} has {labels}, and its service selects {selector}")
            rig.s_move(k8s, place, "Running", "10.9.9.8", container="tensorflow")
            wait_for(lambda: s_tfjob_state(k8s, name) == "Running", lambda: f"{name}: {s_tfjob(k8s, name)}", rig.DEADLINE)
        check(s_uids(k8s, SERVICES) == before[1], "services stay")
    s_left_by_kubeflow(k8s, "today", "late", activeDeadlineSeconds=3600)
    kept = s_uids(k8s, PODS), s_uids(k8s, SERVICES)
    with rig.Operator(k8s, "--also=tfjob", ready=False) as op:  # a look from nothing sees the same
        wait_for(lambda: s_tfjob_state(k8s, "late") == "Failed", lambda: f"late: {s_tfjob(k8s, 'late')}", rig.DEADLINE)
        wait_for(lambda: not any(name.startswith("late-") for name in s_uids(k8s, PODS)), "the pods of the late one to go", rig.DEADLINE)
        s_check_tfjobs(k8s, op, names, tuple({key: uid for key, uid in one.items() if not key.startswith("late-")} for one in kept))
        for name in names:
            rig.s_move(k8s, f"{name}-worker-0", "Succeeded", container="tensorflow")
            wait_for(lambda: s_tfjob_state(k8s, name) == "Succeeded", lambda: f"{name}: {s_tfjob(k8s, name)}", rig.DEADLINE)
        bad = {f"{name}-bad-ps-0" for name in names}
        wait_for(lambda: set(s_uids(k8s, PODS)) == {f"{name}-worker-0" for name in names} | bad, "who still runs to go", rig.DEADLINE)
        wait_for(lambda: set(s_uids(k8s, SERVICES)) == bad, "services to go", rig.DEADLINE)
        op.idle()
        check(not s_tfjob(k8s, "elsewhere"), "a job that another cluster runs is nobody's here")
    k8s.kubectl("delete", "tfjob", "--all", "--wait=false")
    wait_for(lambda: not s_uids(k8s, PODS), "nothing to be left", rig.DEADLINE)


if __name__ == "__main__":
    cluster.main(test_jobs_of_v2alpha1_go_on, test_jobs_between_two_lives, test_jobs_of_v1alpha1_go_on, test_tfjobs_go_on,
                 controllers=True)
