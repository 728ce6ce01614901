#!/usr/bin/env python3
"""Everything goes wrong at random moments, by a seed: operators, API server and etcd are killed, restarted or frozen, pods fail,
are disrupted and deleted by force, services vanish, statuses are edited, jobs are scaled and deleted. When it is over every job is
what its spec says, counted right, without a pod or service too many, and what is deleted leaves nothing.

  TROUBLE_SEED (1), TROUBLE_S (25): which troubles, and for how long; the soak takes fresh seeds and more time.
"""

import os
import random
import signal
import sys
import threading
import time

sys.dont_write_bytecode = True
import cluster
import test_operator as rig
from cluster import check, wait_for

SEED, SECONDS = int(os.environ.get("TROUBLE_SEED", "1")), float(os.environ.get("TROUBLE_S", "25"))
OUTAGE_S = 10 if SECONDS > 60 else 3
JOBS, PODS, SERVICES = rig.JOBS, rig.PODS, rig.SERVICES


class Operators:
    """Two of them, one leads; whoever is killed comes back."""

    def __init__(self, k8s):
        self.k8s, self.rng, self.ended = k8s, random.Random(SEED), threading.Event()
        self.members = []
        for number in range(2):
            self.members.append(self.start(number))

    def start(self, number):
        return rig.Operator(self.k8s, "--leader-elect", "--open-api", "--lease-namespace=default", ready=False,
                            env={"POD_UID": f"operator-{number}-{time.monotonic_ns()}"})

    def kill(self):
        number = self.rng.randrange(2)
        self.members[number].stop(self.rng.choice((signal.SIGKILL, signal.SIGTERM)))
        self.members[number] = self.start(number)

    def end(self):
        for member in self.members:
            member.stop()


class World:
    def __init__(self, k8s, operators):
        self.k8s, self.operators, self.rng = k8s, operators, random.Random(SEED)
        self.wanted = {}  # job: (collectors, learners)
        self.made = 0

    def job(self):
        return self.rng.choice(sorted(self.wanted)) if self.wanted else None

    def pod(self, role=None):
        pods = [pod for pod in self.k8s.get(PODS)["items"] if "deletionTimestamp" not in pod["metadata"]
                and (role is None or pod["metadata"]["labels"]["replica-type"] == role)]
        return self.rng.choice(sorted(pods, key=lambda pod: pod["metadata"]["name"])) if pods else None

    # --- what happens

    def create(self):
        if len(self.wanted) < 8:
            name, counts = f"job-{self.made}", (self.rng.randrange(5), self.rng.randrange(3))
            self.made += 1
            self.wanted[name] = counts  # also when the answer is lost: it is looked at again at the end
            rig.s_create(self.k8s, rig.s_job(name, collectors=counts[0], learners=counts[1]))

    def scale(self):
        if job := self.job():
            counts = (self.rng.randrange(6), self.rng.randrange(3))
            self.k8s.patch(f"{JOBS}/{job}", {"spec": {"collector": {"replicas": counts[0]}, "learner": {"replicas": counts[1]}}})
            self.wanted[job] = counts

    def delete_job(self):
        if len(self.wanted) > 2 and (job := self.job()):
            del self.wanted[job]
            self.k8s.api("DELETE", f"{JOBS}/{job}", {"propagationPolicy": "Background"})

    def delete_pod(self):
        if pod := self.pod():
            grace = self.rng.choice((0, 0, 2))
            self.k8s.api("DELETE", f"{PODS}/{pod['metadata']['name']}", {"gracePeriodSeconds": grace})

    def fail_pod(self):
        if pod := self.pod(self.rng.choice(("collector", "learner"))):
            rig.s_move(self.k8s, pod["metadata"]["name"], "Failed")

    def delete_service(self):
        if items := self.k8s.get(SERVICES)["items"]:
            items = [item for item in items if "dijob-name" in item["metadata"].get("labels", {})]
            if items:
                self.k8s.api("DELETE", f"{SERVICES}/{self.rng.choice(items)['metadata']['name']}")

    def edit_status(self):
        if job := self.job():
            self.k8s.patch(f"{JOBS}/{job}/status", {"status": {"replicaStatus": {"Collector": {"active": 77}},
                                                               "collectorReplicas": 5}})

    def kill_operator(self):
        self.operators.kill()

    def restart_api(self):
        self.k8s.restart_part("kube-apiserver", signal.SIGKILL)

    def freeze_etcd(self):
        self.k8s.signal_part("etcd", signal.SIGSTOP)
        time.sleep(OUTAGE_S)  # the outage itself
        self.k8s.signal_part("etcd", signal.SIGCONT)

    def step(self):
        verb = self.rng.choices(
            (self.create, self.scale, self.delete_job, self.delete_pod, self.fail_pod, self.delete_service, self.edit_status,
             self.kill_operator, self.restart_api, self.freeze_etcd), (6, 6, 1, 6, 4, 3, 2, 4, 1, 1))[0]
        try:
            verb()
        except (cluster.ApiError, OSError, cluster.Failed) as error:
            print(f"  {verb.__name__}: {error}", flush=True)  # an API server that is away: part of the game

    # --- what must be when it is over

    def fault(self, job):
        """What is wrong with a job; None = nothing."""
        now = self.k8s.find(f"{JOBS}/{job}")
        if not now:
            return f"{job} is not there"
        spec = (now["spec"]["collector"]["replicas"], now["spec"]["learner"]["replicas"])
        pods = rig.s_pods(self.k8s, job)
        alive = [pod for pod in pods.values() if pod["status"].get("phase") not in ("Failed", "Succeeded")]
        count = {role: sum(pod["metadata"]["labels"]["replica-type"] == role for pod in alive)
                 for role in ("coordinator", "collector", "learner")}
        status = now.get("status", {})
        failed = {role: sum(pod["metadata"]["labels"]["replica-type"] == role for pod in pods.values()) - count[role]
                  for role in count}
        told = {role: status.get("replicaStatus", {}).get(role.capitalize(), {}) for role in count}
        ever = {role: told[role].get("failed", 0) for role in count}  # a failure stays counted when its pod goes
        counters = {role: {"failed": 0, **told[role]} for role in count}
        right = {role: {**({"active": count[role]} if count[role] else {}), "failed": max(failed[role], ever[role])}
                 for role in count}
        if (count["coordinator"], count["collector"], count["learner"]) != (1, *spec):
            return f"{job} has {count}, wanted {spec}"
        if any(pod["status"].get("phase") != "Running" for pod in alive):
            return f"{job} has pods that do not run yet"
        if rig.s_services(self.k8s, job) != set(pods):
            return f"{job} has the services {rig.s_services(self.k8s, job)} for the pods {sorted(pods)}"
        if status.get("phase") != "Running" or counters != right:
            return f"{job} is {status.get('phase')}, counts {counters}, right is {right}"
        return None

    def settle(self):
        seen = {}

        def right():
            jobs = [job["metadata"]["name"] for job in self.k8s.get(JOBS)["items"] if "deletionTimestamp" not in job["metadata"]]
            seen["fault"] = next((fault for job in jobs if (fault := self.fault(job))), None)
            return seen["fault"] is None
        try:
            wait_for(right, "every job to be as its spec says", rig.DEADLINE, pause=0.2)
        except cluster.Failed as error:
            raise cluster.Failed(f"{error}: {seen.get('fault')}") from error


def test_trouble(k8s):
    rig.s_ready(k8s)
    operators = Operators(k8s)
    world = World(k8s, operators)
    for _ in range(3):
        world.create()
    end = time.monotonic() + SECONDS
    steps = 0
    while time.monotonic() < end:
        world.step()
        steps += 1
        time.sleep(world.rng.uniform(0, 0.4))  # so that troubles meet every stage of the work, not only its beginning
    k8s.await_api()
    print(f"  seed {SEED}: {steps} troubles, {len(world.wanted)} jobs live", flush=True)
    world.settle()
    jobs = [job["metadata"]["name"] for job in k8s.get(JOBS)["items"] if "deletionTimestamp" not in job["metadata"]]
    for job in jobs:
        rig.s_move(k8s, f"{job}-coordinator", "Succeeded")
    for job in jobs:
        rig.s_await_phase(k8s, job, "Succeeded")
        wait_for(lambda: not rig.s_services(k8s, job), f"the services of {job} to go", rig.DEADLINE)
        wait_for(lambda: all(pod["status"]["phase"] in ("Succeeded", "Failed") for pod in rig.s_pods(k8s, job).values()),
                 f"the running pods of {job} to go", rig.DEADLINE)
    k8s.kubectl("delete", "dijob", "--all", "--wait=false")
    wait_for(lambda: not k8s.get(PODS)["items"], "all pods to go", rig.DEADLINE)
    wait_for(lambda: not [one for one in k8s.get(SERVICES)["items"] if one["metadata"]["name"] != "kubernetes"], "all services", rig.DEADLINE)
    operators.end()


def test_deleted_in_every_phase(k8s):
    """No phase in which a job that is deleted leaves something, or comes back."""
    with rig.Operator(k8s, "--open-api") as op:
        for phase in ("", "Created", "Running", "Succeeded", "Failed"):
            name = f"gone-{phase.lower() or 'new'}"
            job = rig.s_job(name, collectors=1, cleanPodPolicy="None")
            rig.s_create(k8s, job)
            if phase:
                rig.s_await_pods(k8s, name, 1, "coordinator")
            if phase in ("Running", "Succeeded", "Failed"):
                rig.s_await_phase(k8s, name, "Running")
            if phase in ("Succeeded", "Failed"):
                rig.s_move(k8s, f"{name}-coordinator", phase)
                rig.s_await_phase(k8s, name, phase)
            rig.s_delete(k8s, name)
        op.idle()
        wait_for(lambda: not k8s.get(PODS)["items"], "the last ones to have drained, and nothing to have come back")


if __name__ == "__main__":
    cluster.main(test_deleted_in_every_phase, test_trouble, controllers=True, fake_kubelet="node-1")
