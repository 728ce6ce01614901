#!/usr/bin/env python3
"""A HorizontalPodAutoscaler as k8s/samples/hpa.yaml drives the collectors of a running job up and down, by a metrics API whose
numbers this test sets; the real controller, the real scale subresource."""

import json
import sys

sys.dont_write_bytecode = True
import cluster
import test_operator as rig
from cluster import check, wait_for

FAST = ["--horizontal-pod-autoscaler-sync-period=500ms", "--horizontal-pod-autoscaler-initial-readiness-delay=0s",
        "--horizontal-pod-autoscaler-cpu-initialization-period=0s", "--horizontal-pod-autoscaler-downscale-stabilization=0s"]
SCALER = "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers/cartpole-collectors"
DEADLINE = rig.DEADLINE


def s_replicas(k8s):
    return k8s.get(f"{rig.JOBS}/cartpole")["spec"]["collector"]["replicas"]


def s_scaler(k8s):
    """The sample, but that the test does not wait for what is slow on purpose."""
    with open(f"{rig.SOURCE}/k8s/samples/hpa.yaml", encoding="utf-8") as file:
        k8s.kubectl("create", "-f", "-", input=file.read())
    k8s.patch(SCALER, {"spec": {"behavior": {
        direction: {"stabilizationWindowSeconds": 0, "policies": [{"type": "Percent", "value": 400, "periodSeconds": 1}]}
        for direction in ("scaleUp", "scaleDown")}}})


def s_job():
    job = rig.s_job("cartpole", collectors=1, learners=1)
    job["spec"]["collector"]["template"]["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "100m"}}
    return job


def s_await_collectors(k8s, fits, text):
    """The spec, the pods and what the scale subresource says of them agree."""
    wait_for(lambda: fits(s_replicas(k8s)), text, DEADLINE)

    def settled():
        scale = k8s.get(f"{rig.JOBS}/cartpole/scale")
        count = len(rig.s_pods(k8s, "cartpole", "collector"))
        return fits(count) and scale["spec"]["replicas"] == scale["status"]["replicas"] == count
    wait_for(settled, f"{text}, and as many pods", DEADLINE)
    return rig.s_pods(k8s, "cartpole", "collector")


def test_an_autoscaler_drives_the_collectors(k8s):
    with rig.Operator(k8s) as op, k8s.fake_metrics() as metrics:
        metrics.cpu = 80
        k8s.kubectl("create", "-f", "-", input=json.dumps(s_job()))
        rig.s_await_phase(k8s, "cartpole", "Running")
        others = {name for name in rig.s_pods(k8s, "cartpole") if "-collector-" not in name}
        s_scaler(k8s)
        wait_for(lambda: {c["type"]: c["status"] for c in k8s.get(SCALER)["status"].get("conditions", [])}
                 .get("ScalingActive") == "True", "an autoscaler that can read the collectors", DEADLINE)
        selector = k8s.get(f"{rig.JOBS}/cartpole/scale")["status"]["selector"]
        check(selector == "dijob-name=cartpole,replica-type=collector", selector)
        check(s_replicas(k8s) == 1, "80 % is what it aims at")

        metrics.cpu = 320
        few = s_await_collectors(k8s, lambda count: count >= 4, "four collectors or more")
        many = s_await_collectors(k8s, lambda count: count == 8, "the most that the sample allows")
        check(set(few) <= set(many), "those that run go on")
        metrics.cpu = 40
        s_await_collectors(k8s, lambda count: count == 1, "one collector")
        check({name for name in rig.s_pods(k8s, "cartpole") if "-collector-" not in name} == others, "the others are left alone")
        status = k8s.get(f"{rig.JOBS}/cartpole")["status"]
        check(status["phase"] == "Running" and status["collectorReplicas"] == 1, f"{status}")
        metrics.cpu = 80  # what it aims at: a look that it has begun already changes nothing
        k8s.api("DELETE", SCALER)
        k8s.kubectl("scale", "dijob", "cartpole", "--replicas=3")
        s_await_collectors(k8s, lambda count: count == 3, "three collectors by hand")
        op.idle()


cluster.main(test_an_autoscaler_drives_the_collectors, fake_kubelet=True, extra={"kube-controller-manager": FAST},
             controllers="serviceaccount-controller,horizontal-pod-autoscaler-controller")
