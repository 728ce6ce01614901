#!/usr/bin/env python3
"""The kind of job of docs/guide/add-a-front-end.md, on a cluster: its schema and its rights as the page has them, and an operator that
was built from the page (tests/k8s/front); this test plays the kubelet."""

import os
import sys
import time

sys.dont_write_bytecode = True
import cluster
from cluster import check, wait_for

cluster.require()
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "front"))
import guide  # noqa: E402
import test_operator as rig  # noqa: E402

PODS = "/api/v1/namespaces/default/pods"
JOBS = "/apis/example.com/v1/namespaces/default/indexedjobs"
OPERATOR = "system:serviceaccount:di-system:di-operator"


def s_pods(k8s, job):
    items = k8s.get(f"{PODS}?labelSelector=example.com/job-name={job}")["items"]
    return {item["metadata"]["name"]: item for item in items if "deletionTimestamp" not in item["metadata"]}


def s_await_pods(k8s, job, *names):
    wait_for(lambda: set(s_pods(k8s, job)) == set(names), lambda: f"{names}, and not {set(s_pods(k8s, job))}", rig.DEADLINE)
    return s_pods(k8s, job)


def s_end(k8s, name, code):
    """What a kubelet says of a pod that has ended."""
    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    ended = {"exitCode": code, "reason": "Error" if code else "Completed", "finishedAt": now, "message": "no luck\n" if code else ""}
    k8s.patch(f"{PODS}/{name}/status", {"status": {"phase": "Failed" if code else "Succeeded", "containerStatuses": [
        {"name": "main", "state": {"terminated": ended}, "ready": False, "restartCount": 0, "image": "x:1", "imageID": ""}]}})


def s_await_phase(k8s, job, phase):
    wait_for(lambda: k8s.get(f"{JOBS}/{job}").get("status", {}).get("phase") == phase,
             lambda: f"{job} to be {phase}: {k8s.get(f'{JOBS}/{job}').get('status')}", rig.DEADLINE)
    return k8s.get(f"{JOBS}/{job}")["status"]


def s_operator(k8s):
    k8s.kubectl("apply", "-f", "-", input=guide.page()[1])
    k8s.await_kind("indexedjob")
    rig.TUTTI = guide.TUTTI
    return rig.Operator(k8s, "--also=indexedjob")


def s_create(k8s, name, **numbers):
    text = guide.page()[0].replace("name: squares", f"name: {name}", 1)
    for key, value in numbers.items():
        text = text.replace("  backoffLimit: 2\n", f"  {key}: {value}\n")
    k8s.kubectl("create", "-f", "-", input=text)


def test_the_job_of_the_page(k8s):
    """A place for each, one that fails made anew under its name, done when all are."""
    with s_operator(k8s):
        s_create(k8s, "squares")
        first = s_await_pods(k8s, "squares", "squares-0", "squares-1", "squares-2")
        env = {e["name"]: e["value"] for e in first["squares-2"]["spec"]["containers"][0]["env"]}
        check(env["JOB_COMPLETION_INDEX"] == "2" and first["squares-2"]["spec"]["restartPolicy"] == "Never", first["squares-2"])
        owner = first["squares-2"]["metadata"]["ownerReferences"][0]  # it goes with the job
        check(owner["controller"] and owner["uid"] == k8s.get(f"{JOBS}/squares")["metadata"]["uid"], owner)
        s_end(k8s, "squares-1", 3)
        wait_for(lambda: s_pods(k8s, "squares").get("squares-1", first["squares-1"])["metadata"]["uid"]
                 != first["squares-1"]["metadata"]["uid"], "another pod of its name", rig.DEADLINE)
        check(s_pods(k8s, "squares")["squares-1"]["metadata"]["annotations"]["tutti/restarts"] == "1", s_pods(k8s, "squares"))
        for name in first:
            s_end(k8s, name, 0)
        status = s_await_phase(k8s, "squares", "Succeeded")
        check(status["restarts"] == 1 and status["succeeded"] == 3, status)
        shown = k8s.kubectl("get", "indexedjob", "squares").stdout.split("\n")
        check(shown[0].split() == ["NAME", "PHASE", "REASON"] and shown[1].split() == ["squares", "Succeeded", "Succeeded"], shown)


def test_the_limit(k8s):
    with s_operator(k8s):
        s_create(k8s, "limited", backoffLimit=0)
        s_await_pods(k8s, "limited", "limited-0", "limited-1", "limited-2")
        s_end(k8s, "limited-1", 3)
        status = s_await_phase(k8s, "limited", "Failed")
        check(status["reason"] == "BackoffLimitExceeded" and "no luck" in status["conditions"][0]["message"], status)
        s_await_pods(k8s, "limited", "limited-1")  # what runs goes, what ended can be read


def test_its_rights_are_enough(k8s):
    k8s.kubectl("apply", "-f", "-", input=guide.page()[1])
    k8s.await_kind("indexedjob")

    def may(verb, part=""):
        return k8s.kubectl("auth", "can-i", verb, "indexedjobs.example.com", f"--subresource={part}", f"--as={OPERATOR}",
                           check=False).stdout.strip() == "yes"
    for verb, part in (("list", ""), ("patch", "status"), ("update", "finalizers")):
        wait_for(lambda verb=verb, part=part: may(verb, part), f"the right to {verb} {part or 'indexedjobs'}", rig.DEADLINE)
    check(not may("create") and not may("patch"), "it may write jobs")


cluster.main(test_the_job_of_the_page, test_the_limit, test_its_rights_are_enough)
