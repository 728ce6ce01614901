#!/usr/bin/env python3
"""Jobs that wait in a queue of Kueue, by `tutti operator --queue kueue` against a real API server. The schemas are those that Kueue
documents; this test plays Kueue, and the kubelet. No garbage collector: what a job leaves is in nobody's way."""

import sys
import time

sys.dont_write_bytecode = True
import cluster
from cluster import check, wait_for

cluster.require()
import test_tfjob as tf  # noqa: E402
from test_operator import (DEADLINE, JOBS, PODS, Operator, s_await_active, s_await_phase, s_create, s_events,  # noqa: E402
                           s_job, s_move, s_pods, s_template)

GROUP, VERSION = "kueue.x-k8s.io", "v1beta2"
WORKLOADS = f"/apis/{GROUP}/{VERSION}/namespaces/default/workloads"
FLAVORS = f"/apis/{GROUP}/{VERSION}/resourceflavors"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
s_free = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


def s_list(key, item, **more):
    return {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": [key], "maxItems": 8,
            "items": {"type": "object", "required": [key], **item}, **more}


# kubernetes-sigs/kueue, apis/kueue/v1beta2/workload_types.go: as much as an owner writes and reads, and what may not change
s_text = {"type": "string", "maxLength": 63}
s_count = {"type": "integer", "format": "int32", "minimum": 0}
s_spec = {"type": "object", "properties": {
    "priority": {"type": "integer"}, "priorityClassRef": {"type": "object", "properties": {
        "group": s_text, "kind": s_text, "name": {"type": "string"}}}, "queueName": s_text, "active": {"type": "boolean", "default": True},
    "podSets": s_list("name", {"properties": {"name": {**s_text, "pattern": "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"}, "count": s_count, "minCount": s_count,
                                              "template": {"type": "object", "required": ["spec"], "properties": {
                                                  "metadata": s_free, "spec": s_free}}}}, minItems=1)}}
s_condition = {"properties": {"type": s_text, "status": {"enum": ["True", "False", "Unknown"], "type": "string"},
                              "reason": {"type": "string", "minLength": 1, "pattern": "^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$"},
                              "message": {"type": "string", "maxLength": 32768}, "observedGeneration": {"type": "integer"},
                              "lastTransitionTime": {"type": "string", "format": "date-time"}}}
s_condition["required"] = ["type", "status", "reason", "message", "lastTransitionTime"]
s_conditions_schema = {**s_list("type", {}), "maxItems": 16, "items": {"type": "object", **s_condition}}
s_status = {"type": "object", "properties": {
    "conditions": s_conditions_schema, "admissionChecks": {"type": "array", "items": s_free},
    "admission": {"type": "object", "properties": {
        "clusterQueue": s_text, "podSetAssignments": s_list("name", {"properties": {
            "name": s_text, "count": s_count, "flavors": {"type": "object", "additionalProperties": {"type": "string"}}}})}}}}
s_reserved = ("has({0}.status) && has({0}.status.conditions) && {0}.status.conditions.exists(c, c.type == 'QuotaReserved' && "
              "c.status == 'True')")
s_rules = [
    {"rule": f"{s_reserved.format('oldSelf')} && {s_reserved.format('self')} ? oldSelf.spec.queueName == self.spec.queueName : true",
     "message": "queueName is immutable while workload quota reserved"},
    {"rule": f"{s_reserved.format('oldSelf')} ? size(self.spec.podSets) == size(oldSelf.spec.podSets) && self.spec.podSets.all(p, "
             "oldSelf.spec.podSets.exists(o, o.name == p.name && o.count == p.count)) : true",
     "message": "field is immutable"},
    {"rule": "!has(self.spec.podSets) || self.spec.podSets.all(p, !has(p.minCount) || (p.minCount >= 1 && p.minCount <= p.count))",
     "message": "minCount should be positive and less or equal to count"},
    {"rule": "!has(self.spec.podSets) || self.spec.podSets.filter(p, has(p.minCount)).size() <= 1", "message": "at most one podSet can use minCount"},
    {"rule": f"{s_reserved.format('self')} ? has(self.status.admission) && size(self.spec.podSets) == "
             "size(self.status.admission.podSetAssignments) : true",
     "message": "podSetAssignments must have the same number of podSets as the spec"}]


# for kubectl
COLUMNS = [("Queue", "string", ".spec.queueName"), ("Reserved in", "string", ".status.admission.clusterQueue"),
           ("Admitted", "string", ".status.conditions[?(@.type=='Admitted')].status"),
           ("Finished", "string", ".status.conditions[?(@.type=='Finished')].status"), ("Age", "date", ".metadata.creationTimestamp")]


def s_crd(kind, plural, scope, schema, **more):
    names = {"kind": kind, "listKind": f"{kind}List", "plural": plural, "singular": kind.lower()}
    return {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {
        "name": f"{plural}.{GROUP}", "annotations": {  # a protected group: its CRDs say who approved them
            "api-approved.kubernetes.io": "https://github.com/kubernetes-sigs/kueue/pull/3"}},
            "spec": {"group": GROUP, "scope": scope, "names": names, "versions": [
                {"name": VERSION, "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}, **more}]}}


def s_serve(k8s):
    """The cluster has Kueue's kinds, and two flavours."""
    if k8s.find(f"{CRDS}/workloads.{GROUP}"):
        return
    k8s.api("POST", CRDS, s_crd("Workload", "workloads", "Namespaced", {
        "type": "object", "x-kubernetes-validations": s_rules, "properties": {"spec": s_spec, "status": s_status}},
        subresources={"status": {}},
        additionalPrinterColumns=[{"name": name, "type": kind, "jsonPath": path} for name, kind, path in COLUMNS]))
    k8s.api("POST", CRDS, s_crd("ResourceFlavor", "resourceflavors", "Cluster", {
        "type": "object", "properties": {"spec": s_free}}))
    wait_for(lambda: k8s.find(WORKLOADS) and k8s.find(FLAVORS), "Kueue's kinds to be served", DEADLINE)
    for name, spec in {"plain": {}, "fast": {"nodeLabels": {"cards": "h100"}, "tolerations": [
            {"key": "cards", "operator": "Exists", "effect": "NoSchedule"}]}}.items():
        k8s.api("POST", FLAVORS, {"apiVersion": f"{GROUP}/{VERSION}", "kind": "ResourceFlavor", "metadata": {"name": name}, "spec": spec})


# --- Kueue

def s_workload(k8s, job):
    """That of a job; None."""
    uid = k8s.get(f"{JOBS}/{job}")["metadata"]["uid"]
    found = [w for w in k8s.get(WORKLOADS)["items"] if w["metadata"]["ownerReferences"][0]["uid"] == uid]
    check(len(found) < 2, f"{len(found)} Workloads of {job}")
    return found[0] if found else None


def s_await_workload(k8s, job, is_so=lambda workload: True, what="there"):
    def look():
        workload = s_workload(k8s, job)
        return workload if workload and is_so(workload) else None
    return wait_for(look, lambda: f"the Workload of {job} to be {what}: {s_workload(k8s, job)}", DEADLINE)


def s_states(workload):
    return {c["type"]: c["status"] for c in workload.get("status", {}).get("conditions", [])}


def s_say(k8s, job, *conditions, **status):
    """Kueue writes its status: conditions as (type, status, reason, message)."""
    workload = s_await_workload(k8s, job)
    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    there = {c["type"]: c for c in workload.setdefault("status", {}).get("conditions", [])}
    for kind, state, reason, message in conditions:
        there[kind] = {"type": kind, "status": state, "reason": reason, "message": message, "lastTransitionTime": now}
    workload["status"].update(status, conditions=list(there.values()))
    k8s.api("PUT", f"{WORKLOADS}/{workload['metadata']['name']}/status", workload)


def s_admit(k8s, job, flavor="fast", admitted="True", counts=None, **status):
    """counts: {set: how many} of those that are not admitted whole."""
    sets = s_await_workload(k8s, job)["spec"]["podSets"]
    assignments = [{"name": s["name"], "count": (counts or {}).get(s["name"], s["count"]), "flavors": {"cpu": flavor}} for s in sets]
    s_say(k8s, job, ("QuotaReserved", "True", "QuotaReserved", "reserved"), ("Admitted", admitted, "Admitted", "admitted"),
          ("Evicted", "False", "QuotaReserved", ""), admission={"clusterQueue": "all", "podSetAssignments": assignments}, **status)


def s_evict(k8s, job, reason):
    s_say(k8s, job, ("Evicted", "True", reason, f"evicted as {reason}"))


# --- jobs

def s_queued(name, queue="team", **spec):
    """A coordinator of one CPU, two collectors of two."""
    def role(count, cpu, **pod):
        template = s_template("x", **pod)["template"]
        template["spec"]["containers"][0]["resources"] = {"requests": {"cpu": str(cpu)}}
        return {"template": template, **({"replicas": count} if count is not None else {})}
    job = s_job(name, **spec)
    job["metadata"]["labels"] = {f"{GROUP}/queue-name": queue} if queue else {}
    job["spec"].update(coordinator=role(None, 1), collector=role(2, 2, priorityClassName="system-node-critical"))
    del job["spec"]["learner"]
    return job


def s_await_counts(k8s, job, coordinators, collectors):
    want = {"coordinator": coordinators, "collector": collectors}
    wait_for(lambda: {role: len(s_pods(k8s, job, role)) for role in want} == want,
             lambda: f"{want} of {job}: {list(s_pods(k8s, job))}", DEADLINE)
    return s_pods(k8s, job)


def s_await_condition(k8s, job, kind, state, words=""):
    def look():
        for condition in k8s.get(f"{JOBS}/{job}").get("status", {}).get("conditions", []):
            if (condition["type"], condition["status"]) == (kind, state) and words in condition["message"]:
                return condition
    return wait_for(look, lambda: f"{kind} {state} '{words}' of {job}: {k8s.get(f'{JOBS}/{job}').get('status')}", DEADLINE)


def s_start_queued(k8s, name, **admission):
    s_create(k8s, s_queued(name))
    s_admit(k8s, name, **admission)
    for pod in s_await_counts(k8s, name, 1, 2):
        s_move(k8s, pod, "Running")
    return s_await_phase(k8s, name, "Running")


# --- tests

def test_a_cluster_without_kueue(k8s):
    """The job waits, and says why; once there are Workloads it gets one. One without a queue is none of this."""
    with Operator(k8s, "--queue=kueue") as op:
        s_create(k8s, s_queued("early"))
        s_create(k8s, s_queued("plain", queue=None))
        s_await_condition(k8s, "early", "AwaitingAdmission", "True", "no Workloads")
        check(s_await_phase(k8s, "early", "Suspended")["reason"] == "AwaitingAdmission", k8s.get(f"{JOBS}/early")["status"])
        s_await_counts(k8s, "plain", 1, 2)
        check(not s_pods(k8s, "early"), "no pod of a job that cannot be admitted")
        check(op.text().count("jobs with a queue wait") == 1, op.text())
        wait_for(lambda: any(reason == "AwaitingAdmission" for _, reason, _ in s_events(k8s, "early")), "the event", DEADLINE)
    s_serve(k8s)
    with Operator(k8s, "--queue=kueue"):  # that one would have looked again, after half a minute
        s_await_workload(k8s, "early")
        s_await_condition(k8s, "early", "AwaitingAdmission", "True", "in queue team")
        check(all(c["type"] not in ("Suspended", "AwaitingAdmission") for c in k8s.get(f"{JOBS}/plain")["status"]["conditions"]),
              "a job without a queue is left alone")
        check(s_workload(k8s, "plain") is None, "a Workload of a job without a queue")


def s_check_workload(workload, job):
    owner, spec = workload["metadata"]["ownerReferences"][0], workload["spec"]
    check(owner["kind"] == "DIJob" and owner["controller"] and workload["metadata"]["name"].startswith(f"dijob-{job}-"), workload["metadata"])
    check(spec["queueName"] == "team" and [(s["name"], s["count"]) for s in spec["podSets"]] == [("coordinator", 1), ("collector", 2)], spec)
    templates = [s["template"]["spec"] for s in spec["podSets"]]
    check([t["containers"][0]["resources"]["requests"]["cpu"] for t in templates] == ["1", "2"], templates)
    check([t.get("priorityClassName") for t in templates] == [None, "system-node-critical"], templates)
    check(spec["priority"] == 2000001000 and spec["priorityClassRef"] == {
        "group": "scheduling.k8s.io", "kind": "PriorityClass", "name": "system-node-critical"}, spec)


def test_waits_runs_and_ends(k8s):
    s_serve(k8s)
    with Operator(k8s, "--queue=kueue") as op:
        s_create(k8s, s_queued("life"))
        s_check_workload(s_await_workload(k8s, "life"), "life")
        s_await_phase(k8s, "life", "Suspended")
        s_say(k8s, "life", ("QuotaReserved", "False", "Pending", "insufficient quota for cpu"))
        s_await_condition(k8s, "life", "AwaitingAdmission", "True", "waits for admission in queue team: insufficient quota for cpu")
        wait_for(lambda: any(reason == "AwaitingAdmission" and "queue team" in words for _, reason, words in s_events(k8s, "life")),
                 lambda: f"the event: {s_events(k8s, 'life')}")
        # nothing has been admitted: the Workload follows the job
        k8s.patch(f"{JOBS}/life", {"spec": {"collector": {"replicas": 3}}})
        s_await_workload(k8s, "life", lambda w: w["spec"]["podSets"][1]["count"] == 3, "of three")
        s_admit(k8s, "life", admitted="False")
        s_await_condition(k8s, "life", "AwaitingAdmission", "True", "admission checks")
        check(not s_pods(k8s, "life"), "no pod with a reservation alone")
        s_admit(k8s, "life", admissionChecks=[{"name": "prov", "state": "Ready", "podSetUpdates": [
            {"name": "collector", "annotations": {"class": "made"}, "nodeSelector": {"pool": "a"}}]}])
        pods = s_await_counts(k8s, "life", 1, 3)
        s_await_condition(k8s, "life", "AwaitingAdmission", "False")
        for name, pod in pods.items():
            collector = pod["metadata"]["labels"]["replica-type"] == "collector"
            check(pod["spec"]["nodeSelector"] == {"cards": "h100", **({"pool": "a"} if collector else {})}, f"{name}: {pod['spec']}")
            check({"key": "cards", "operator": "Exists", "effect": "NoSchedule"} in pod["spec"]["tolerations"], pod["spec"]["tolerations"])
            check(pod["metadata"]["labels"][f"{GROUP}/podset"] == ("collector" if collector else "coordinator"), pod["metadata"])
            check(pod["metadata"].get("annotations", {}).get("class") == ("made" if collector else None), pod["metadata"])
            s_move(k8s, name, "Running")
        s_await_phase(k8s, "life", "Running")
        # more than were admitted are not made, and it is said; fewer are
        k8s.patch(f"{JOBS}/life", {"spec": {"collector": {"replicas": 5}}})
        s_await_condition(k8s, "life", "AdmissionExceeded", "True", "collector: 5 replicas are wanted, and queue team has admitted 3")
        op.idle()
        s_await_counts(k8s, "life", 1, 3)
        k8s.patch(f"{JOBS}/life", {"spec": {"collector": {"replicas": 1}}})
        s_await_condition(k8s, "life", "AdmissionExceeded", "False")
        s_await_counts(k8s, "life", 1, 1)
        check(s_workload(k8s, "life")["spec"]["podSets"][1]["count"] == 3, "a reserved quota was written to")
        s_move(k8s, "life-coordinator", "Succeeded")
        s_await_phase(k8s, "life", "Succeeded")
        workload = s_await_workload(k8s, "life", lambda w: s_states(w).get("Finished") == "True", "finished")
        check({c["type"]: c for c in workload["status"]["conditions"]}["Finished"]["reason"] == "Succeeded", workload["status"])


def test_evicted_and_admitted_again(k8s):
    s_serve(k8s)
    with Operator(k8s, "--queue=kueue") as op:
        s_start_queued(k8s, "moved")
        slow = f"{PODS}/moved-coordinator"  # one that takes its time to end
        k8s.patch(slow, {"metadata": {"finalizers": ["tests/hold"]}})
        s_evict(k8s, "moved", "Preempted")
        s_await_phase(k8s, "moved", "Suspended")
        s_await_counts(k8s, "moved", 0, 0)
        op.idle()
        check(s_states(s_workload(k8s, "moved"))["QuotaReserved"] == "True", "its quota was given back while it has a pod")
        k8s.patch(slow, {"metadata": {"finalizers": None}})
        workload = s_await_workload(k8s, "moved", lambda w: s_states(w)["QuotaReserved"] == "False", "released")
        check(not s_pods(k8s, "moved"), "quota is released when no pod is left")
        check(s_states(workload) == {"QuotaReserved": "False", "Admitted": "False", "Evicted": "True", "Requeued": "True"}, workload["status"])
        check("admission" not in workload["status"], workload["status"])
        s_await_condition(k8s, "moved", "AwaitingAdmission", "True", "evicted as Preempted")
        s_await_phase(k8s, "moved", "Suspended")
        s_admit(k8s, "moved", "plain")
        pods = s_await_counts(k8s, "moved", 1, 2)
        check(all(not pod["spec"].get("nodeSelector") for pod in pods.values()), "the labels of the flavour before")
        for name in pods:
            s_move(k8s, name, "Running")
        status = s_await_phase(k8s, "moved", "Running")
        check(status.get("restarts", 0) == 0 and not status["replicaStatus"].get("Coordinator", {}).get("failed"), f"no failure: {status}")
        # somebody deletes it: as if it had been evicted, and there is another one
        old = s_workload(k8s, "moved")["metadata"]
        k8s.api("DELETE", f"{WORKLOADS}/{old['name']}")
        s_await_counts(k8s, "moved", 0, 0)
        s_await_workload(k8s, "moved", lambda w: w["metadata"]["uid"] != old["uid"] and not w.get("status"), "another one")
        s_admit(k8s, "moved")
        s_await_counts(k8s, "moved", 1, 2)
        # set inactive: the pods go at once, the quota when Kueue has said so
        k8s.patch(f"{WORKLOADS}/{s_workload(k8s, 'moved')['metadata']['name']}", {"spec": {"active": False}})
        s_await_counts(k8s, "moved", 0, 0)
        s_await_condition(k8s, "moved", "AwaitingAdmission", "True", "spec.active")
        s_evict(k8s, "moved", "Deactivated")
        workload = s_await_workload(k8s, "moved", lambda w: s_states(w)["QuotaReserved"] == "False", "released")
        check(s_states(workload)["Requeued"] == "False", workload["status"])


def test_admitted_in_part(k8s):
    """There is room for fewer, and they are enough: so many are made, it is said, and what comes after an eviction counts anew."""
    s_serve(k8s)
    with Operator(k8s, "--queue=kueue") as op:
        job = s_queued("part")
        job["spec"]["collector"].update(replicas=4, minReplicas=2)
        s_create(k8s, job)
        workload = s_await_workload(k8s, "part")
        check([(s["name"], s["count"], s.get("minCount")) for s in workload["spec"]["podSets"]] == [("coordinator", 1, None), ("collector", 4, 2)], workload)
        s_admit(k8s, "part", counts={"collector": 3})
        for pod in s_await_counts(k8s, "part", 1, 3):
            s_move(k8s, pod, "Running")
        s_await_phase(k8s, "part", "Running")
        words = "collector: queue team has admitted 3 of 4 replicas, and minReplicas is 2"
        check(s_await_condition(k8s, "part", "AdmissionExceeded", "True", words)["reason"] == "PartlyAdmitted", words)
        wait_for(lambda: ("Normal", "PartlyAdmitted") in [event[:2] for event in s_events(k8s, "part")], lambda: f"the event: {s_events(k8s, 'part')}", DEADLINE)
        op.idle()
        s_await_counts(k8s, "part", 1, 3)
        s_evict(k8s, "part", "Preempted")
        s_await_counts(k8s, "part", 0, 0)
        s_await_workload(k8s, "part", lambda w: s_states(w)["QuotaReserved"] == "False", "released")
        s_admit(k8s, "part")
        s_await_counts(k8s, "part", 1, 4)
        s_await_condition(k8s, "part", "AdmissionExceeded", "False")


def test_suspended_by_its_user(k8s):
    """Its place in the queue goes, and it waits anew, with as many as it wants by then."""
    s_serve(k8s)
    with Operator(k8s, "--queue=kueue"):
        s_start_queued(k8s, "rests")
        k8s.patch(f"{JOBS}/rests", {"spec": {"suspend": True, "collector": {"replicas": 4}}})
        wait_for(lambda: not s_workload(k8s, "rests"), "the Workload to go", DEADLINE)
        s_await_counts(k8s, "rests", 0, 0)
        k8s.patch(f"{JOBS}/rests", {"spec": {"suspend": False}})
        s_await_workload(k8s, "rests", lambda w: w["spec"]["podSets"][1]["count"] == 4, "of four")
        s_await_condition(k8s, "rests", "AwaitingAdmission", "True")
        check(not s_pods(k8s, "rests"), "it has not been admitted anew")
        k8s.patch(f"{JOBS}/rests", {"metadata": {"labels": {f"{GROUP}/queue-name": None}}})
        s_await_counts(k8s, "rests", 1, 4)
        wait_for(lambda: not s_workload(k8s, "rests"), "the Workload of a job that is of no queue any more to go", DEADLINE)


def test_an_operator_that_comes_later_writes_nothing(k8s):
    """What runs is not stopped while the Workloads are not known yet. (Of a job that waits it is written once more.)"""
    s_serve(k8s)
    k8s.kubectl("delete", "dijob", "--all", "--wait=false")
    with Operator(k8s, "--queue=kueue") as op:
        s_start_queued(k8s, "calm")
        for role, count in (("coordinator", 1), ("collector", 2)):  # what it has not heard of is the next one's to write
            s_await_active(k8s, "calm", role, count)
        op.idle()
        time.sleep(2)  # the last events
    before = time.time()
    with Operator(k8s, "--queue=kueue") as op:
        op.idle()
        time.sleep(1)
        k8s.patch(f"{JOBS}/calm", {"metadata": {"annotations": {"note": "1"}}})
        op.idle()
    writes = [e for e in k8s.audit(agent="tutti-operator", writes=True, since=before) if e["objectRef"]["resource"] != "leases"]
    check(not writes, f"{[(e['verb'], e['objectRef']) for e in writes]}")


def test_a_flavour_that_is_gone(k8s):
    """No pod goes where nobody let it; it is said, and it goes on once the flavour is there."""
    s_serve(k8s)
    with Operator(k8s, "--queue=kueue"):
        s_create(k8s, s_queued("lost"))
        s_admit(k8s, "lost", "later")
        wait_for(lambda: any("ResourceFlavor later" in words for _, _, words in s_events(k8s, "lost")), "the event", DEADLINE)
        check(not s_pods(k8s, "lost"), "a pod without the labels of its flavour")
        k8s.api("POST", FLAVORS, {"apiVersion": f"{GROUP}/{VERSION}", "kind": "ResourceFlavor", "metadata": {"name": "later"},
                                  "spec": {"nodeLabels": {"zone": "b"}}})
        pods = s_await_counts(k8s, "lost", 1, 2)
        check(all(pod["spec"]["nodeSelector"] == {"zone": "b"} for pod in pods.values()), pods)


def test_a_tfjob_as_kueue_handles_it(k8s):
    """Kueue's own integration: it suspends, writes into the templates, lets go, reads conditions and who is active, and takes back."""
    s_serve(k8s)
    with tf.operator(k8s):  # the cluster knows TFJobs
        pass
    with Operator(k8s, "--also=tfjob", "--queue=kueue"):
        body = {"apiVersion": "kubeflow.org/v1", "kind": "TFJob", "metadata": {"name": "tf", "labels": {f"{GROUP}/queue-name": "team"}},
                "spec": {"runPolicy": {"suspend": True}, "tfReplicaSpecs": {"Chief": tf.s_replicas(), "Worker": tf.s_replicas(2)}}}
        k8s.api("POST", tf.JOBS, body)
        check(not any(r.get("active") for r in tf.s_await(k8s, "tf", "Suspended").get("replicaStatuses", {}).values()), tf.s_status(k8s, "tf"))
        check(not tf.s_pods(k8s, "tf") and not any("-tf-" in w["metadata"]["name"] for w in k8s.get(WORKLOADS)["items"]), "the Workload of a TFJob is Kueue's to make")
        place = {"metadata": {"labels": {f"{GROUP}/podset": "x"}}, "spec": {**tf.TEMPLATE["spec"], "nodeSelector": {"cards": "h100"}}}
        k8s.patch(f"{tf.JOBS}/tf", {"spec": {"runPolicy": {"suspend": False}, "tfReplicaSpecs": {
            kind: {"template": place} for kind in ("Chief", "Worker")}}})
        pods = tf.s_await_pods(k8s, "tf", "chief-0", "worker-0", "worker-1")
        check(all(pod["spec"]["nodeSelector"] == {"cards": "h100"} and pod["metadata"]["labels"][f"{GROUP}/podset"] == "x"
                  for pod in pods.values()), pods)
        tf.s_run(k8s, "tf")
        tf.s_await(k8s, "tf", "Running")
        active = {"Chief": {"active": 1}, "Worker": {"active": 2}}
        wait_for(lambda: tf.s_status(k8s, "tf")["replicaStatuses"] == active, lambda: f"{tf.s_status(k8s, 'tf')}", DEADLINE)
        check(tf.s_conditions(k8s, "tf")["Running"]["status"] == "True", tf.s_conditions(k8s, "tf"))
        # evicted: suspended, and the templates as they were
        k8s.patch(f"{tf.JOBS}/tf", {"spec": {"runPolicy": {"suspend": True}}})
        tf.s_await_pods(k8s, "tf")
        wait_for(lambda: not any(r.get("active") for r in tf.s_status(k8s, "tf").get("replicaStatuses", {}).values()),
                 lambda: f"nobody to be active: {tf.s_status(k8s, 'tf')}", DEADLINE)
        check(tf.s_conditions(k8s, "tf").get("Running", {}).get("status") != "True", tf.s_conditions(k8s, "tf"))
        k8s.patch(f"{tf.JOBS}/tf", {"spec": {"runPolicy": {"suspend": False}, "tfReplicaSpecs": {
            kind: {"template": {"spec": {"nodeSelector": None}}} for kind in ("Chief", "Worker")}}})
        pods = tf.s_await_pods(k8s, "tf", "chief-0", "worker-0", "worker-1")
        check(all(not pod["spec"].get("nodeSelector") for pod in pods.values()), pods)
        tf.s_run(k8s, "tf")
        tf.s_await(k8s, "tf", "Running")
        tf.s_move(k8s, "tf-chief-0", "Succeeded")
        tf.s_await(k8s, "tf", "Succeeded")
        check(tf.s_conditions(k8s, "tf")["Succeeded"]["status"] == "True", tf.s_conditions(k8s, "tf"))


if __name__ == "__main__":
    cluster.main(test_a_cluster_without_kueue, test_waits_runs_and_ends, test_evicted_and_admitted_again, test_admitted_in_part, test_suspended_by_its_user,
                 test_an_operator_that_comes_later_writes_nothing, test_a_flavour_that_is_gone, test_a_tfjob_as_kueue_handles_it,
                 audit=True)
