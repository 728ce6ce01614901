#!/usr/bin/env python3
"""One job that keeps its own pods: an operator in its coordinator, with the rights of k8s/overlays/embedded and no others, and
where the cluster knows no DIJobs. This test is the kubelet, and runs what the pods would."""

import json
import os
import signal
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
import cluster
from cluster import check, wait_for
import guard

cluster.require()
TUTTI = os.environ["TUTTI"]
SOURCE = os.environ.get("TT_SOURCE_DIR", os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
PODS, SERVICES = "/api/v1/namespaces/default/pods", "/api/v1/namespaces/default/services"
JOBS = "/apis/diengine.opendilab.org/v1alpha1/namespaces/default/dijobs"
LABELS = {"group-name": "diengine.opendilab.org", "dijob-name": "cartpole", "controller-name": "di-operator",
          "replica-type": "coordinator", "pod-name": "cartpole-coordinator"}


def s_job():
    roles = {role: {"template": {"spec": {"containers": [{"name": "di-container", "image": "x", "command": [role]}]}}}
             for role in ("coordinator", "collector", "learner")}
    roles["collector"]["replicas"], roles["learner"]["replicas"] = 2, 1
    return {"apiVersion": "diengine.opendilab.org/v1alpha1", "kind": "DIJob", "metadata": {"name": "cartpole"},
            "spec": {"engine": "tutti", "managedBy": "coordinator", **roles}}


def s_coordinator_pod(k8s, labels):
    """A fresh one, and nothing else there."""
    k8s.kubectl("delete", "pods,services", "-l", "controller-name=di-operator", "--force", "--grace-period=0")
    k8s.kubectl("delete", "pod", "cartpole-coordinator", "--ignore-not-found", "--force", "--grace-period=0")
    return k8s.api("POST", PODS, {"metadata": {"name": "cartpole-coordinator", "labels": labels},
                                  "spec": {"containers": [{"name": "di-container", "image": "x"}]}})


def s_phase(k8s):
    return k8s.get(f"{JOBS}/cartpole").get("status", {}).get("phase")


class Run:
    """The coordinator's process, and one for each pod that comes."""

    def __init__(self, k8s, kubeconfig, dijob):
        self.k8s, self.members, self.folder = k8s, {}, tempfile.TemporaryDirectory(prefix="tt-embedded-")
        self.key = os.path.join(self.folder.name, "key")
        with open(self.key, "w", encoding="utf-8") as file:
            subprocess.run([TUTTI, "key"], stdout=file, check=True)
        os.chmod(self.key, 0o600)
        self.kubeconfig, self.dijob = kubeconfig, dijob
        self.coordinator = self.start("coordinator", "cartpole-coordinator", "--config", f"{SOURCE}/configs/cartpole-ppo.yaml",
                                      "--seed", "1", "--set", "stop.env_steps=1G", "--set", "stop.return_mean=null",
                                      "--run", f"{self.folder.name}/run", "--dijob", dijob)

    def start(self, role, pod, *args):
        env = {"KUBERNETES_COORDINATOR_URL": f"{guard.ADDRESS}:22273", "KUBERNETES_POD_NAME": pod, "COORDINATOR_PORT": "22273",
               "KUBERNETES_POD_NAMESPACE": "default", "KUBECONFIG": self.kubeconfig}
        with open(f"{self.folder.name}/{pod}.log", "ab") as log:
            return self.k8s.exec_in([TUTTI, role, "--key", self.key, *args], env=env, stdin=subprocess.DEVNULL, stdout=log,
                                    stderr=log)

    def log(self, pod="cartpole-coordinator"):
        with open(f"{self.folder.name}/{pod}.log", encoding="utf-8", errors="replace") as file:
            return file.read()

    def pods(self):
        return {p["metadata"]["name"]: p["metadata"] for p in self.k8s.get(PODS)["items"]
                if "deletionTimestamp" not in p["metadata"] and p["metadata"]["name"] != "cartpole-coordinator"}

    def serve(self):
        """Start what new pods would run; true when the coordinator has ended."""
        for name, metadata in self.pods().items():
            if name not in self.members:
                self.members[name] = self.start(metadata["labels"]["replica-type"], name)
        return self.coordinator.poll() is not None

    def __enter__(self):
        return self

    def __exit__(self, kind, error, trace):
        if kind:
            print(self.log()[-4000:])
        for process in (self.coordinator, *self.members.values()):
            if process.poll() is None:
                process.kill()
            process.wait()
        self.folder.cleanup()


def s_await_members(run):
    wait_for(lambda: run.serve() or len(run.pods()) == 3, "two collectors and a learner")
    check(run.coordinator.poll() is None, f"the coordinator ended: {run.log()[-3000:]}")
    names = {"cartpole-coordinator", *run.pods()}
    wait_for(lambda: names <= {s["metadata"]["name"] for s in run.k8s.get(SERVICES)["items"]}, "a service each")


def s_end(run):
    """The run trains, and is ended when all that was to be seen of it has been."""
    wait_for(lambda: run.serve() or " run: update " in run.log(), "the first updates")
    stop = lambda: run.k8s.run_in([TUTTI, "stop", f"{run.folder.name}/run"], check=False).returncode == 0
    wait_for(lambda: run.serve() or stop(), "the coordinator to answer")
    wait_for(run.serve, "the coordinator to end")
    check(run.coordinator.returncode == 0, f"{run.coordinator.returncode}: {run.log()[-3000:]}")
    found = [line for line in run.log().splitlines() if line.startswith("{")]  # last words of its operator may come after it
    check(len(found) == 1 and json.loads(found[0])["updates"] > 0, run.log()[-3000:])
    wait_for(lambda: not run.pods(), "the members' pods to be removed")
    wait_for(lambda: {s["metadata"]["name"] for s in run.k8s.get(SERVICES)["items"]} == {"kubernetes"}, "no services")


def test_from_a_file_without_the_crd(k8s):
    account = k8s.account_kubeconfig("cartpole-coordinator")
    k8s.kubectl("apply", "-k", f"{SOURCE}/k8s/overlays/embedded")
    uid = s_coordinator_pod(k8s, LABELS)["metadata"]["uid"]
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
        json.dump(s_job(), file)
        file.flush()
        with Run(k8s, account, f"cartpole={file.name}") as run:
            s_await_members(run)
            owners = [m["ownerReferences"][0] for m in run.pods().values()]
            check(all(o["kind"] == "Pod" and o["uid"] == uid and o["controller"] for o in owners), f"{owners}")
            victim = next(name for name in run.pods() if "-collector-" in name)
            k8s.kubectl("delete", "pod", victim)
            wait_for(lambda: run.serve() or len(run.pods()) == 3, "another collector")
            s_end(run)


def test_a_dijob(k8s):
    k8s.kubectl("apply", "-k", f"{SOURCE}/k8s/crd")
    wait_for(lambda: k8s.find(JOBS), "the API server to serve DIJobs")
    account = k8s.account_kubeconfig("cartpole-coordinator")
    k8s.kubectl("apply", "-k", f"{SOURCE}/k8s/overlays/embedded")
    k8s.api("POST", JOBS, s_job())
    s_coordinator_pod(k8s, {})
    with Run(k8s, account, "cartpole") as run: # a pod that nobody could know as the coordinator
        wait_for(lambda: "it needs the labels" in run.log(), "words about the labels")
        check(not run.pods(), "no pods")
    s_coordinator_pod(k8s, LABELS)
    with Run(k8s, account, "cartpole") as run:
        s_await_members(run)
        k8s.patch(f"{PODS}/cartpole-coordinator/status", {"status": {"phase": "Running"}})
        wait_for(lambda: run.serve() or s_phase(k8s) == "Running", "it to run")
        s_end(run)
        status = k8s.get(f"{JOBS}/cartpole")["status"]
        check(status["phase"] == "Succeeded", f"{status}")
        check("deletionTimestamp" not in k8s.get(f"{PODS}/cartpole-coordinator")["metadata"], "our own pod ends by itself")


def test_a_terminated_coordinator_says_nothing(k8s):
    k8s.kubectl("delete", "dijob", "cartpole", check=False)
    k8s.api("POST", JOBS, s_job())
    s_coordinator_pod(k8s, LABELS)
    with Run(k8s, k8s.kubeconfig, "cartpole") as run:
        s_await_members(run)
        begun = time.monotonic()
        run.coordinator.send_signal(signal.SIGTERM)
        check(run.coordinator.wait(60) == 143, f"{run.coordinator.returncode}")
        check(time.monotonic() - begun < 19, "it does not wait for its operator, which takes 20 s where it cannot say its last words")
        check(len(run.pods()) == 3 and s_phase(k8s) not in ("Succeeded", "Failed"), "the others stay")


cluster.main(test_from_a_file_without_the_crd, test_a_dijob, test_a_terminated_coordinator_says_nothing)
