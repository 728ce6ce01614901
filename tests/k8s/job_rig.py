"""job_rig - jobs of ours on a cluster of the tests: the operator and images, jobs made of samples, and what their pods and logs tell."""

import json
import os

import image_rig
from cluster import check, wait_for

SOURCE = os.environ["TT_SOURCE_DIR"]
TUTTI = os.environ["TUTTI"]
JOBS = "/apis/diengine.opendilab.org/v1alpha1/namespaces/default/dijobs"
PODS = "/api/v1/namespaces/default/pods"
DEADLINE = 240.0


def install(k8s, *options):
    """The operator from its own image, and an image for the jobs: that too, and with options another one."""
    for more in dict.fromkeys(((), options)):
        image_rig.load(k8s, *more)
    k8s.kubectl("apply", "-k", os.path.join(SOURCE, "k8s/deploy"))
    k8s.await_kind("dijob")
    k8s.kubectl("-n", "di-system", "rollout", "status", "deployment/di-operator", "--timeout=240s", deadline=270)


def create(k8s, sample, name, *sets, **replicas):
    """A sample under another name, with more settings and other counts."""
    job = json.loads(k8s.kubectl("create", "--dry-run=client", "-o", "json", "-f", sample).stdout)
    job["metadata"]["name"] = name
    args = job["spec"]["coordinator"]["template"]["spec"]["containers"][0]["args"]
    for item in sets:
        args += ["--set", item]
    for role, count in replicas.items():
        job["spec"][role]["replicas"] = count
    k8s.kubectl("create", "-f", "-", input=json.dumps(job))


def pods(k8s, name, role):
    found = k8s.get(f"{PODS}?labelSelector=dijob-name={name},replica-type={role}")["items"]
    return [pod for pod in found if "deletionTimestamp" not in pod["metadata"]]


def roster(k8s, name):
    """The newest roster that the coordinator's log tells of."""
    lines = [line for line in k8s.logs(f"{name}-coordinator").splitlines() if "coordinator: roster " in line]
    return lines[-1] if lines else ""


def await_roster(k8s, name, words, old=""):
    """old: one that does not count."""
    def look():
        line = roster(k8s, name)
        return words in line and line != old
    wait_for(look, lambda: f"{name}: a roster of {words}, not {roster(k8s, name)}", DEADLINE)


def await_updates(k8s, name):
    wait_for(lambda: "run: update " in k8s.logs(f"{name}-coordinator"), f"{name}: the first updates", DEADLINE)


def phase(k8s, name):
    return k8s.get(f"{JOBS}/{name}").get("status", {}).get("phase")


def has_ended(k8s, name):
    return phase(k8s, name) in ("Succeeded", "Failed")


def stop(k8s, name):
    """By `tutti stop`, asked again where its time was over before the coordinator had one for it."""
    said = []

    def asked():
        done = k8s.kubectl("exec", f"{name}-coordinator", "--", "/usr/bin/tutti", "stop", "/var/lib/tutti", check=False)
        said.append(done.stderr)
        return done.returncode in (0, 137)  # 137: it ends with the container that it is in
    wait_for(lambda: has_ended(k8s, name) or asked(), lambda: f"tutti stop: {said}", DEADLINE)


def summary(k8s, name):
    text = lambda: k8s.logs(f"{name}-coordinator")
    wait_for(lambda: has_ended(k8s, name), f"{name} to end", DEADLINE)
    check(phase(k8s, name) == "Succeeded", f"{name}: {text()}")
    # stderr's last lines may come after stdout's, and any of them a moment after the pod's end
    found = wait_for(lambda: [line for line in text().splitlines() if line.startswith("{")], lambda: f"a summary: {text()[-3000:]}")
    check(len(found) == 1, f"{len(found)} summaries: {found}")
    return json.loads(found[0])


def await_more_updates(k8s, name):
    """The run goes on: its log tells of a later update."""
    def newest():
        lines = [line for line in k8s.logs(f"{name}-coordinator").splitlines() if " run: update " in line]
        return int(lines[-1].split(" run: update ")[1].split(",")[0]) if lines else 0
    before = newest()
    wait_for(lambda: newest() > before, f"{name}: updates after {before}", DEADLINE)
