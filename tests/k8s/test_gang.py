#!/usr/bin/env python3
"""PodGroups by `tutti operator --gang` and `tutti master --gang` against a real API server, for Volcano and for scheduler-plugins, whose
schemas stand here as they document them; this test plays the kubelet."""

import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
import cluster
from cluster import check, wait_for

cluster.require()
import test_tfjob as tf  # noqa: E402
from cluster import guard  # noqa: E402
from test_operator import DEADLINE, JOBS as DIJOBS, TUTTI, Operator  # noqa: E402

s_resources = {"type": "object", "additionalProperties": {"anyOf": [{"type": "integer"}, {"type": "string"}],
                                                           "x-kubernetes-int-or-string": True}}
# volcano-sh/apis, pkg/apis/scheduling/v1beta1/types.go
VOLCANO = ("scheduling.volcano.sh", "v1beta1", {
    "minMember": {"type": "integer", "format": "int32"}, "minResources": s_resources, "priorityClassName": {"type": "string"},
    "minTaskMember": {"type": "object", "additionalProperties": {"type": "integer", "format": "int32"}}, "queue": {"type": "string"}})
# kubernetes-sigs/scheduler-plugins, apis/scheduling/v1alpha1/types.go
PLUGINS = ("scheduling.x-k8s.io", "v1alpha1", {
    "minMember": {"type": "integer", "format": "int32"}, "minResources": s_resources,
    "scheduleTimeoutSeconds": {"type": "integer", "format": "int32"}})


# as each has them, for kubectl
COLUMNS = {"scheduling.volcano.sh": [("STATUS", "string", ".status.phase"), ("minMember", "integer", ".spec.minMember"),
                                     ("RUNNINGS", "integer", ".status.running"), ("AGE", "date", ".metadata.creationTimestamp")],
           "scheduling.x-k8s.io": [("Age", "date", ".metadata.creationTimestamp")]}


def s_groups(which, name=""):
    return f"/apis/{which[0]}/{which[1]}/namespaces/default/podgroups" + (f"/{name}" if name else "")


def s_crd(which):
    group, version, spec = which
    names = {"kind": "PodGroup", "listKind": "PodGroupList", "plural": "podgroups", "singular": "podgroup"}
    schema = {"type": "object", "properties": {"spec": {"type": "object", "properties": spec},
                                               "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}}
    # x-k8s.io is a protected group: its CRDs say who approved them
    return {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {
        "name": f"podgroups.{group}", "annotations": {
            "api-approved.kubernetes.io": "https://github.com/kubernetes-sigs/scheduler-plugins/pull/50"}},
            "spec": {"group": group, "scope": "Namespaced", "names": names, "versions": [
                {"name": version, "served": True, "storage": True, "schema": {"openAPIV3Schema": schema},
                 "subresources": {"status": {}}, "additionalPrinterColumns": [
                     {"name": name, "type": kind, "jsonPath": path} for name, kind, path in COLUMNS[group]]}]}}


def s_serve(k8s, which):
    """The cluster has that scheduler's PodGroups."""
    path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    if not k8s.find(f"{path}/podgroups.{which[0]}"):
        k8s.api("POST", path, s_crd(which))
    wait_for(lambda: k8s.get(s_groups(which))["items"] is not None, "the API server to serve PodGroups", DEADLINE)


def s_operator(k8s, gang):
    with tf.operator(k8s):  # the cluster knows TFJobs
        pass
    return Operator(k8s, "--also=tfjob", f"--gang={gang}")


def s_template(name="tensorflow", scheduler=None, **resources):
    spec = {"containers": [{"name": name, "image": "x:1", "resources": resources}]}
    return {"spec": {**spec, **({"schedulerName": scheduler} if scheduler else {})}}


def s_number(k8s, thing):
    return int(thing["metadata"]["resourceVersion"])


def s_created(k8s, kind, name, agent="tutti-operator"):
    """Its place in the audit log: what was made first."""
    for i, event in enumerate(k8s.audit(agent=agent, writes=True)):
        about = event["objectRef"]
        if about["resource"] == kind and about.get("name") == name and event["responseStatus"]["code"] in (200, 201):
            return i
    return -1


def s_check_group(which, group, job, kind, members, resources, **more):
    owner, spec = group["metadata"]["ownerReferences"][0], group["spec"]
    check(owner["uid"] == job["metadata"]["uid"] and owner["controller"] and owner["kind"] == kind, owner)
    check(spec == {"minMember": members, "minResources": resources, **more}, f"{which[0]}: {spec}")


def s_check_pods(which, pods, job, scheduler):
    for name, pod in pods.items():
        meta = pod["metadata"]
        label, note = meta["labels"].get("scheduling.x-k8s.io/pod-group"), meta["annotations"].get("scheduling.k8s.io/group-name")
        check((label, note) == ((None, job) if which is VOLCANO else (job, None)), f"{name}: {label} {note}")
        component = meta["labels"]["app.kubernetes.io/component"]
        check(meta["annotations"].get("volcano.sh/task-spec") == (component if which is VOLCANO else None), meta["annotations"])
        check(pod["spec"]["schedulerName"] == ("mine" if component == "ps" else scheduler), f"{name}: {pod['spec']['schedulerName']}")


def s_await_another(k8s, job, pod):
    """In the place of this one."""
    old = pod["metadata"]
    wait_for(lambda: tf.s_pods(k8s, job).get(old["name"], {}).get("metadata", {}).get("uid") not in (None, old["uid"]),
             f"another {old['name']}", DEADLINE)


def s_tfjob_with(k8s, which, gang, scheduler, policy, more):
    """From the group, which comes before its pods, to the end, after which there is none."""
    s_serve(k8s, which)
    job = gang + "-tf"
    with s_operator(k8s, gang):
        ps = tf.s_replicas(1, None, s_template(scheduler="mine", requests={"cpu": "500m", "memory": "1Gi"}))
        worker = tf.s_replicas(2, "OnFailure", s_template(limits={"cpu": "2", "nvidia.com/gpu": 1}))
        made = tf.s_create(k8s, job, {"PS": ps, "Worker": worker}, runPolicy={"schedulingPolicy": policy})
        pods = tf.s_await_pods(k8s, job, "ps-0", "worker-0", "worker-1")
        group = k8s.get(s_groups(which, job))
        s_check_group(which, group, made, "TFJob", 3, {"cpu": "4500m", "memory": "1073741824", "nvidia.com/gpu": "2"}, **more)
        s_check_pods(which, pods, job, scheduler)
        # worker 0 is made anew, nothing of the group has changed: it is not written again
        tf.s_run(k8s, job)
        tf.s_await(k8s, job, "Running")
        k8s.kubectl("delete", "pod", f"{job}-worker-1", "--wait=false")
        s_await_another(k8s, job, pods[f"{job}-worker-1"])
        check(s_number(k8s, k8s.get(s_groups(which, job))) == s_number(k8s, group), "the group was written again")
        # a higher number, a lower one
        for count, cpu in ((3, "6500m"), (1, "2500m")):
            k8s.patch(f"{tf.JOBS}/{job}", {"spec": {"tfReplicaSpecs": {"Worker": {"replicas": count}}}})
            wait_for(lambda count=count, cpu=cpu: (lambda spec: spec["minMember"] == count + 1 and spec["minResources"]["cpu"] == cpu)(
                k8s.get(s_groups(which, job))["spec"]), f"a group of {count + 1}", DEADLINE)
            tf.s_await_pods(k8s, job, "ps-0", *(f"worker-{i}" for i in range(count)))
        tf.s_move(k8s, f"{job}-worker-0", "Succeeded")
        tf.s_await(k8s, job, "Succeeded")
        wait_for(lambda: not k8s.find(s_groups(which, job)), "the group of a job that is done to go", DEADLINE)
        order = [s_created(k8s, "podgroups", job)] + [s_created(k8s, "pods", name) for name in pods]
        check(order[0] >= 0 and order[0] == min(order), f"what was made in which order: {order}")
        tf.s_delete(k8s, job)


def test_volcano(k8s):
    s_tfjob_with(k8s, VOLCANO, "volcano", "volcano", {"queue": "q", "priorityClass": "high"}, {"queue": "q", "priorityClassName": "high"})


def test_scheduler_plugins(k8s):
    s_tfjob_with(k8s, PLUGINS, "scheduler-plugins", "scheduler-plugins-scheduler", {"scheduleTimeoutSeconds": 30, "queue": "q"},
                 {"scheduleTimeoutSeconds": 30})


def test_what_a_scheduling_policy_says_counts(k8s):
    """minAvailable: of two members, the first in the order of the spec; minResources: as it stands."""
    s_serve(k8s, VOLCANO)
    with s_operator(k8s, "volcano"):
        replicas = {"PS": tf.s_replicas(1, None, s_template(requests={"cpu": 1})), "Worker": tf.s_replicas(3, None, s_template(requests={"cpu": 2}))}
        tf.s_create(k8s, "some", replicas, runPolicy={"schedulingPolicy": {"minAvailable": 2}})
        tf.s_create(k8s, "said", replicas, runPolicy={"schedulingPolicy": {"minResources": {"cpu": 9}}})
        for job, spec in (("some", {"minMember": 2, "minResources": {"cpu": "3"}}), ("said", {"minMember": 4, "minResources": {"cpu": 9}})):
            tf.s_await_pods(k8s, job, "ps-0", "worker-0", "worker-1", "worker-2")
            check(k8s.get(s_groups(VOLCANO, job))["spec"] == spec, k8s.get(s_groups(VOLCANO, job))["spec"])
            tf.s_delete(k8s, job)


def test_a_dijob(k8s):
    """Roles that the spec asks for; who is asked for over HTTP comes to the group, but nobody waits for it. A queue by annotation."""
    s_serve(k8s, VOLCANO)
    with s_operator(k8s, "volcano"):
        role = s_template("di-container", requests={"cpu": 1})
        made = k8s.api("POST", DIJOBS, {
            "apiVersion": "diengine.opendilab.org/v1alpha1", "kind": "DIJob",
            "metadata": {"name": "roles", "annotations": {"scheduling.volcano.sh/queue-name": "rl"}},
            "spec": {"coordinator": {"template": role}, "collector": {"replicas": 2, "template": role}, "learner": {"template": role}}})
        path = "/api/v1/namespaces/default/pods?labelSelector=dijob-name=roles"
        wait_for(lambda: len(k8s.get(path)["items"]) == 3, "the coordinator and two collectors", DEADLINE)
        s_check_group(VOLCANO, k8s.get(s_groups(VOLCANO, "roles")), made, "DIJob", 3, {"cpu": "3"}, queue="rl")
        s_check_pods(VOLCANO, {pod["metadata"]["name"]: pod for pod in k8s.get(path)["items"]}, "roles", "volcano")
        # the fewest that are enough: nobody waits for the rest, who are made as well
        k8s.patch(f"{DIJOBS}/roles", {"spec": {"collector": {"replicas": 4, "minReplicas": 1}}})
        wait_for(lambda: len(k8s.get(path)["items"]) == 5, "the coordinator and four collectors", DEADLINE)
        s_check_group(VOLCANO, k8s.get(s_groups(VOLCANO, "roles")), made, "DIJob", 2, {"cpu": "2"}, queue="rl")
        k8s.patch(f"{DIJOBS}/roles", {"spec": {"collector": {"replicas": 2, "minReplicas": None}}})
        wait_for(lambda: len(k8s.get(path)["items"]) == 3 and k8s.get(s_groups(VOLCANO, "roles"))["spec"]["minMember"] == 3,
                 "the coordinator and two collectors, all of them together", DEADLINE)
        k8s.patch(f"{DIJOBS}/roles", {"spec": {"suspend": True}})
        wait_for(lambda: not k8s.find(s_groups(VOLCANO, "roles")) and not k8s.get(path)["items"], "nothing of a suspended job", DEADLINE)
        k8s.patch(f"{DIJOBS}/roles", {"spec": {"suspend": False}})
        wait_for(lambda: k8s.find(s_groups(VOLCANO, "roles")) and len(k8s.get(path)["items"]) == 3, "all of it again", DEADLINE)
        k8s.kubectl("delete", "dijob", "roles", "--wait=false")
        wait_for(lambda: not k8s.find(s_groups(VOLCANO, "roles")), "the garbage collector to take the group", DEADLINE)


def s_told(k8s, job, reason):
    items = k8s.get(f"{tf.NAMESPACE}/events?fieldSelector=involvedObject.name={job}")["items"]
    return [event for event in items if event["reason"] == reason]


def test_a_cluster_without_pod_groups(k8s):
    """Said once, and the pods are made without; they stay without when PodGroups come, whoever looks after them."""
    path = f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/podgroups.{PLUGINS[0]}"
    if k8s.find(path):
        k8s.api("DELETE", path)
        wait_for(lambda: not k8s.find(path) and not k8s.find(s_groups(PLUGINS)), "no PodGroups to be served", DEADLINE)
    with s_operator(k8s, "scheduler-plugins"):
        tf.s_start(k8s, "plain", {"Worker": tf.s_replicas(2, "ExitCode")}, "worker-0", "worker-1")
        wait_for(lambda: s_told(k8s, "plain", "NoPodGroups"), "the event", DEADLINE)
        failed = tf.s_pods(k8s, "plain")["plain-worker-1"]
        tf.s_move(k8s, "plain-worker-1", "Failed", 137)
        wait_for(lambda: tf.s_status(k8s, "plain").get("restarts") == 1, "a restart", DEADLINE)
        s_await_another(k8s, "plain", failed)
        check(sum(event.get("count", 1) for event in s_told(k8s, "plain", "NoPodGroups")) == 1, "said once")
    s_serve(k8s, PLUGINS)
    with s_operator(k8s, "scheduler-plugins"):
        k8s.patch(f"{tf.JOBS}/plain", {"spec": {"tfReplicaSpecs": {"Worker": {"replicas": 3}}}})
        pods = tf.s_await_pods(k8s, "plain", "worker-0", "worker-1", "worker-2")
        check(all("scheduling.x-k8s.io/pod-group" not in pod["metadata"]["labels"] and
                  pod["spec"]["schedulerName"] == "default-scheduler" for pod in pods.values()), pods)
        check(not k8s.find(s_groups(PLUGINS, "plain")), "a group that none of the others is of")
        tf.s_delete(k8s, "plain")


def test_a_name_that_another_has(k8s):
    """A PodGroup with another controller is not taken over, nor removed; the job waits and says so."""
    s_serve(k8s, VOLCANO)
    with s_operator(k8s, "volcano"):
        owner = {"apiVersion": "v1", "kind": "Pod", "name": "x", "uid": k8s.get("/api/v1/namespaces/default")["metadata"]["uid"], "controller": True}
        k8s.api("POST", s_groups(VOLCANO), {"apiVersion": "/".join(VOLCANO[:2]), "kind": "PodGroup", "spec": {"minMember": 7},
                                            "metadata": {"name": "taken", "ownerReferences": [{**owner, "kind": "Namespace", "name": "default"}]}})
        tf.s_create(k8s, "taken", {"Worker": tf.s_replicas()})
        wait_for(lambda: s_told(k8s, "taken", "FailedCreate"), "the event", DEADLINE)
        check("controller" in s_told(k8s, "taken", "FailedCreate")[0]["message"].lower(), s_told(k8s, "taken", "FailedCreate"))
        check(not tf.s_pods(k8s, "taken"), "no pod without its group")
        k8s.patch(f"{tf.JOBS}/taken", {"spec": {"runPolicy": {"suspend": True}}})
        tf.s_await(k8s, "taken", "Suspended")
        check(k8s.get(s_groups(VOLCANO, "taken"))["spec"]["minMember"] == 7, "another's group was touched")
        tf.s_delete(k8s, "taken")


def test_an_operator_that_comes_later_writes_nothing(k8s):
    s_serve(k8s, VOLCANO)
    with s_operator(k8s, "volcano") as op:
        tf.s_start(k8s, "calm", {"Worker": tf.s_replicas(2)}, "worker-0", "worker-1")
        tf.s_start(k8s, "done", {"Worker": tf.s_replicas()}, "worker-0")
        tf.s_move(k8s, "done-worker-0", "Succeeded")
        wait_for(lambda: not k8s.find(s_groups(VOLCANO, "done")), "the group to go", DEADLINE)
        wait_for(lambda: tf.s_status(k8s, "calm")["replicaStatuses"] == {"Worker": {"active": 2}}, "both to be known", DEADLINE)
        op.idle()
        time.sleep(2)  # the last events
    before = time.time()
    with s_operator(k8s, "volcano") as op:
        op.idle()
        time.sleep(1)
        k8s.patch(f"{tf.JOBS}/calm", {"metadata": {"annotations": {"note": "1"}}})
        op.idle()
    writes = [e for e in k8s.audit(agent="tutti-operator", writes=True, since=before) if e["objectRef"]["resource"] != "leases"]
    check(not writes, f"{[(e['verb'], e['objectRef']) for e in writes]}")
    for job in ("calm", "done"):
        tf.s_delete(k8s, job)


@contextlib.contextmanager
def s_master(k8s, gang):
    """An ElasticDL master outside of the cluster: it is asked by path."""
    with tempfile.TemporaryDirectory(prefix="tt-gang-") as folder:
        run, log = f"{folder}/run", f"{folder}/log"
        with open(log, "wb") as file:
            process = k8s.exec_in([TUTTI, "master", "--on", "kubernetes", "--namespace", "default", "--agent-image", "t:1", "--run-dir", run,
                                   "--listen", f"{guard.ADDRESS}:0", f"--gang={gang}"], stdout=file, stderr=file, stdin=subprocess.DEVNULL)

        def said():
            with open(log, encoding="utf-8") as file:
                return file.read()

        def serves():
            check(process.poll() is None, f"the master ended: {said()}")
            return os.path.exists(f"{run}/master.json")

        def ask(path):
            code, text = k8s.http(port, path)
            return code, text.decode()
        try:
            wait_for(serves, "the master", DEADLINE)
            with open(f"{run}/master.json", encoding="utf-8") as file:
                port = int(json.load(file)["url"].rpartition(":")[2])
            yield ask
            process.terminate()
            check(process.wait(60) == 0 and "Sanitizer" not in said(), said())
        finally:
            process.kill()
            process.wait()


def s_task_with(k8s, which, gang, scheduler):
    """A task's members are made at once, parameter servers beside workers, after their group, which goes with the task. No agent answers here:
    the pods are of nobody's node."""
    s_serve(k8s, which)
    label = "/api/v1/namespaces/default/pods?labelSelector=app%3Dservers-0"
    with s_master(k8s, gang) as ask:
        check(ask("/create?strategy=ParameterServer&n_worker=2&n_ps=1&img=i:1&name=servers") == (200, "OK"), "the answer")
        pods = wait_for(lambda: (lambda found: len(found) == 3 and found)(k8s.get(label)["items"]), "three pods", DEADLINE)
        check(k8s.get(s_groups(which, "servers-0"))["spec"] == {"minMember": 3}, k8s.get(s_groups(which, "servers-0")))
        for pod in pods:
            meta, component = pod["metadata"], pod["metadata"]["labels"]["type"]
            told = (meta["labels"].get("scheduling.x-k8s.io/pod-group"), meta.get("annotations", {}).get("scheduling.k8s.io/group-name"))
            check(told == ((None, "servers-0") if which is VOLCANO else ("servers-0", None)), meta)
            check(meta.get("annotations", {}).get("volcano.sh/task-spec") == (component if which is VOLCANO else None), meta)
            check(pod["spec"]["schedulerName"] == scheduler, pod["spec"])
        check(ask("/delete?name=servers") == (200, "OK"), "the answer")
        wait_for(lambda: json.loads(ask("/status?name=servers")[1])["state"] == "deleted", "the task to end", DEADLINE)
        wait_for(lambda: not k8s.find(s_groups(which, "servers-0")), "the group to go", DEADLINE)
        order = [s_created(k8s, "podgroups", "servers-0", "tutti-master")] + [
            s_created(k8s, "statefulsets", name, "tutti-master") for name in ("servers-ps-0", "servers-worker-0")]
        check(order[0] >= 0 and order[0] == min(order), f"what was made in which order: {order}")
        wait_for(lambda: not k8s.find("/apis/apps/v1/namespaces/default/statefulsets/servers-worker-0"), "the set to go", DEADLINE)
        # somebody else's of the name that the next task's would have
        k8s.api("POST", s_groups(which), {"apiVersion": "/".join(which[:2]), "kind": "PodGroup", "metadata": {"name": "taken-1"},
                                          "spec": {"minMember": 7}})
        check(ask("/create?strategy=AllReduce&n_worker=1&n_ps=0&img=i:1&name=taken") == (200, "OK"), "the answer")
        wait_for(lambda: json.loads(ask("/status?name=taken")[1])["state"] == "failed", "the task to fail", DEADLINE)
        told = json.loads(ask("/status?name=taken")[1])["reason"]
        check(told.startswith("worker-0: the API server refuses PodGroup taken-1: ") and "already exists" in told, told)
        check(ask("/delete?name=taken") == (200, "OK"), "the answer")
        check(k8s.get(s_groups(which, "taken-1"))["spec"]["minMember"] == 7, "another's group was touched")
        check(not k8s.find("/apis/apps/v1/namespaces/default/statefulsets/taken-worker-1"), "a set without its group")
    k8s.api("DELETE", s_groups(which, "taken-1"))


def test_a_task_with_volcano(k8s):
    s_task_with(k8s, VOLCANO, "volcano", "volcano")


def test_a_task_with_scheduler_plugins(k8s):
    s_task_with(k8s, PLUGINS, "scheduler-plugins", "scheduler-plugins-scheduler")


if __name__ == "__main__":
    cluster.main(test_volcano, test_scheduler_plugins, test_what_a_scheduling_policy_says_counts, test_a_dijob,
                 test_a_cluster_without_pod_groups, test_a_name_that_another_has, test_an_operator_that_comes_later_writes_nothing,
                 test_a_task_with_volcano, test_a_task_with_scheduler_plugins, controllers=True, audit=True)
