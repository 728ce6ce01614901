#!/usr/bin/env python3
"""From nothing to Succeeded and back to nothing, as the guide says it: the image, the deployment, a job, its leader lost, a
disruption, and all of it taken away. In pods, with the rights that the deployment gives and no others."""

import json
import os
import re
import signal
import subprocess
import sys

sys.dont_write_bytecode = True
import cluster

cluster.require(full=True)
import image_rig  # noqa: E402
import monitoring_rig  # noqa: E402
from cluster import check, wait_for  # noqa: E402

SOURCE = os.environ["TT_SOURCE_DIR"]
TUTTI = os.environ["TUTTI"]
DEPLOY = os.path.join(SOURCE, "k8s/deploy")
JOBS = "/apis/diengine.opendilab.org/v1alpha1/namespaces/default/dijobs"
LEASE = "/apis/coordination.k8s.io/v1/namespaces/di-system/leases/tutti-operator"
OPERATOR = "system:serviceaccount:di-system:di-operator"


def job(name, script):
    main = {"name": "di-container", "image": "docker.io/local/busybox:1", "imagePullPolicy": "IfNotPresent",
            "command": ["sh", "-c", script]}
    return {"apiVersion": "diengine.opendilab.org/v1alpha1", "kind": "DIJob", "metadata": {"name": name},
            "spec": {"coordinator": {"template": {"spec": {"containers": [main]}}}}}


def operators(k8s):
    pods = k8s.get("/api/v1/namespaces/di-system/pods?labelSelector=app.kubernetes.io/name=di-operator")["items"]
    return {pod["metadata"]["uid"]: pod for pod in pods if "deletionTimestamp" not in pod["metadata"]}


def ready(k8s):
    return [pod for pod in operators(k8s).values()
            if {item["type"]: item["status"] for item in pod["status"].get("conditions", [])}.get("Ready") == "True"]


def leader(k8s):
    """The pod that holds the lease; None while none of those that live does."""
    lease = k8s.find(LEASE)
    return lease and operators(k8s).get(lease["spec"].get("holderIdentity"))


def await_rollout(k8s):
    k8s.kubectl("-n", "di-system", "rollout", "status", "deployment/di-operator", "--timeout=240s", deadline=270)


def await_job(k8s, name):
    def phase():
        return k8s.get(f"{JOBS}/{name}").get("status", {}).get("phase")
    wait_for(lambda: phase() in ("Succeeded", "Failed"), f"{name} to end", 240)
    check(phase() == "Succeeded", f"{name}: {k8s.kubectl('logs', name + '-coordinator', check=False)}")


def summary_of(k8s, pod):
    """The line of JSON that a coordinator ends with: on stdout, and the runtime puts the log's last lines, on stderr, where they come,
    perhaps a moment later."""
    found = wait_for(lambda: [line for line in k8s.logs(pod).splitlines() if line.startswith("{")], lambda: f"a summary: {k8s.logs(pod)[-3000:]}")
    check(len(found) == 1, f"{len(found)} summaries: {found}")
    summary = json.loads(found[0])
    check(summary["status"] == "succeeded" and summary["return_mean"] >= 475, found[0])
    return summary


def test_install(k8s):
    image_rig.load(k8s)
    k8s.kubectl("apply", "-k", DEPLOY)
    k8s.await_kind("dijob")
    await_rollout(k8s)
    wait_for(lambda: leader(k8s), "a leader")
    check(len(operators(k8s)) == 2, "two operators")


def test_a_job_succeeds(k8s):
    """Its coordinator asks the replicas API through the Service, by the address that its environment has: once that leads to an
    operator, which takes the node a moment after those are ready, and which knows the pod's own address."""
    k8s.apply(job("first", 'until wget -q -O- "$KUBERNETES_SERVER_URL/v1alpha1/replicas?namespace=$KUBERNETES_POD_NAMESPACE&coordinator='
                           '$KUBERNETES_POD_NAME"; do sleep 0.2; done'))
    await_job(k8s, "first")
    answer = json.loads(k8s.kubectl("logs", "first-coordinator").stdout)
    check(answer["success"] and answer["data"] == {"namespace": "default", "coordinator": "first-coordinator", "collectors": [],
                                                   "learners": []}, answer)
    check(k8s.kubectl("get", "dijob").stdout.split()[:6] == ["NAME", "PHASE", "AGE", "REASON", "first", "Succeeded"], "columns")
    told = lambda: k8s.kubectl("describe", "dijob", "first").stdout  # an event comes a moment after what it tells of
    words = ("DIJobCreated", "SuccessfulCreate", "Create pod: first-coordinator", "DIJobSucceeded")
    wait_for(lambda: all(word in told() for word in words), told)


def test_what_is_monitored(k8s):
    """k8s/monitoring: it finds the Service and its port; every name that the dashboard asks for is one that the operator has."""
    monitoring_rig.check_folder(k8s, "monitoring", "di-system", 12)


def test_the_sample_trains(k8s):
    """Tutti's own job, as the file has it, with the image that the operator has: CartPole solved in pods."""
    check(k8s.kubectl("create", "-f", os.path.join(SOURCE, "configs/k8s/dijob-cartpole.yaml")).stdout ==
          "dijob.diengine.opendilab.org/cartpole created\n", "what kubectl says")
    await_job(k8s, "cartpole")
    summary = summary_of(k8s, "cartpole-coordinator")
    check(summary["transitions"]["duplicated"] == summary["transitions"]["lost"] == 0, summary)
    counts = k8s.get(f"{JOBS}/cartpole")["status"]["replicaStatus"]
    check(counts["Coordinator"] == {"succeeded": 1}, counts)
    # of the others what the kubelet had told: it is over in seconds, before all of them need be known to run
    check(all(set(count) <= {"succeeded"} for count in counts.values()), counts)


def test_the_other_takes_over(k8s):
    old = wait_for(lambda: leader(k8s), "a leader")
    k8s.kubectl("-n", "di-system", "delete", "pod", old["metadata"]["name"], "--grace-period=0", "--force")
    k8s.apply(job("second", "true"))
    await_job(k8s, "second")
    new = wait_for(lambda: leader(k8s), "another leader")
    check(new["metadata"]["uid"] != old["metadata"]["uid"], "another pod")
    wait_for(lambda: len(ready(k8s)) == 2, "another operator")


def test_one_disruption_at_a_time(k8s):
    def evict(pod):
        name = pod["metadata"]["name"]
        k8s.api("POST", f"/api/v1/namespaces/di-system/pods/{name}/eviction", {
            "apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name, "namespace": "di-system"}})

    budget = "/apis/policy/v1/namespaces/di-system/poddisruptionbudgets/di-operator"
    wait_for(lambda: k8s.get(budget)["status"].get("disruptionsAllowed") == 1, "the budget to allow one")
    first, second = operators(k8s).values()
    k8s.signal_part("kube-controller-manager", signal.SIGSTOP)  # so that nobody comes in the first one's place meanwhile
    try:
        evict(first)
        try:
            evict(second)
            raise cluster.Failed("both went")
        except cluster.ApiError as error:
            check(error.code == 429, error)
    finally:
        k8s.signal_part("kube-controller-manager", signal.SIGCONT)
    wait_for(lambda: len(ready(k8s)) == 2 and first["metadata"]["uid"] not in operators(k8s), "another operator")


def test_no_right_was_missing(k8s):
    mine = k8s.audit(user=OPERATOR)
    check(mine, "requests of the operator")
    refused = [event for event in mine if event.get("responseStatus", {}).get("code") in (401, 403)]
    check(not refused, json.dumps(refused[:1]))
    for pod in operators(k8s).values():
        state = pod["status"]["containerStatuses"][0]
        check(state["restartCount"] == 0, json.dumps(state))


def test_uninstall(k8s):
    k8s.kubectl("delete", "dijobs", "--all", "--all-namespaces")
    wait_for(lambda: not k8s.get("/api/v1/namespaces/default/pods")["items"], "the pods to go with their jobs")
    k8s.kubectl("delete", "-k", DEPLOY, "--timeout=240s", deadline=270)
    check(k8s.find("/api/v1/namespaces/di-system") is None, "the namespace to be gone")
    wait_for(lambda: k8s.find(JOBS) is None, "DIJobs to be served no longer")


def test_a_job_that_keeps_itself(k8s):
    """No operator: the rights, the key and the job of k8s/overlays/embedded, as its file says."""
    embedded = os.path.join(SOURCE, "k8s/overlays/embedded")
    k8s.kubectl("apply", "-k", os.path.join(SOURCE, "k8s/crd"))
    wait_for(lambda: k8s.find(JOBS), "the API server to serve DIJobs")
    k8s.await_kind("dijob")
    k8s.kubectl("apply", "-k", embedded)
    key = subprocess.run([TUTTI, "key"], capture_output=True, text=True, check=True, timeout=30).stdout
    k8s.kubectl("create", "secret", "generic", "cartpole-curve", f"--from-literal=curve.key={key}")
    k8s.kubectl("create", "-f", os.path.join(embedded, "job.yaml"))
    await_job(k8s, "cartpole")
    summary_of(k8s, "cartpole-coordinator")
    wait_for(lambda: len(k8s.get("/api/v1/namespaces/default/pods")["items"]) == 1, "the other pods to go")
    account = "system:serviceaccount:default:cartpole-coordinator"
    refused = [event for event in k8s.audit(user=account) if event.get("responseStatus", {}).get("code") in (401, 403)]
    check(not refused, json.dumps(refused[:1]))


cluster.main(test_install, test_a_job_succeeds, test_what_is_monitored, test_the_sample_trains, test_the_other_takes_over,
             test_one_disruption_at_a_time, test_no_right_was_missing, test_uninstall, test_a_job_that_keeps_itself, full=True, audit=True)
