#!/usr/bin/env python3
"""`tutti task run --claim`: jobs as Jobs of a real cluster, in an image, on a volume. They go on when the engine is killed and are found
again; who fails, who is killed and whose Job somebody deletes come to their ends. A sweep of Tutti's own configs is one of them."""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading

sys.path.insert(0, os.path.join(os.environ["TT_SOURCE_DIR"], "tests", "task"))
import cluster
import image_rig
import images
import parts
from cluster import check, wait_for
from taskrig import name

TUTTI = os.environ["TUTTI"]
JOBS = "/apis/batch/v1/namespaces/default/jobs"
IMAGE = "docker.io/local/busybox:1"
SWEEP_IMAGE = "docker.io/local/tutti-and-a-shell:1"
SWEEP = """name: rate
env: CartPole-v1
num_envs: 16
num_steps: 64
network:
  hidden: [32, 32]
algorithm:
  name: ppo
  learning_rate: {rate}
  epochs: 2
  minibatch_size: 64
stop:
  env_steps: 20k
"""


class Place:
    """A folder that is the cluster's volume, with a registry of its own."""

    def __init__(self, k8s, folder):
        self.k8s, self.folder = k8s, folder
        self.env = {"XDG_STATE_HOME": os.path.join(folder, "state"), "KUBECONFIG": k8s.kubeconfig}

    def tutti(self, *args, code=0):
        done = subprocess.run([TUTTI, *args], cwd=self.folder, env=dict(os.environ, **self.env), capture_output=True, text=True, timeout=100, check=False)
        check(done.returncode == code, f"tutti {' '.join(args)}: exit {done.returncode}: {done.stderr}")
        return done.stdout

    def engine(self, *options, program=(TUTTI,)):
        """In the cluster's network, as a machine beside it would be. The node is small: jobs ask it for nothing."""
        return self.k8s.exec_in([*program, "task", "run", "--claim", "volume", "--requests", "", *options],
                                env=self.env, cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    def run(self, *options, code=0):
        engine = self.engine(*options)
        said, _ = engine.communicate(timeout=200)
        check(engine.returncode == code, f"task run: exit {engine.returncode}: {said}")
        return said

    def create(self, task, line, *options):
        self.tutti("task", "create", "-c", name("configs"), "-d", name("data"), "-o", "out", "-t", name(task), "--exec", line, *options)

    def jobs(self, task):
        return json.loads(self.tutti("task", "jobs", "-t", name(task), "--output", "json"))

    def states(self, task):
        return [job["status"] for job in self.jobs(task)]

    def read(self, *parts):
        try:
            with open(os.path.join(self.folder, *parts), encoding="utf-8") as file:
                return file.read()
        except FileNotFoundError:
            return ""


def volume(k8s, folder):
    k8s.apply({"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "volume"},
               "spec": {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteMany"], "storageClassName": "", "hostPath": {"path": folder},
                        "claimRef": {"namespace": "default", "name": "volume"}}},
              {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "volume", "namespace": "default"},
               "spec": {"accessModes": ["ReadWriteMany"], "storageClassName": "", "volumeName": "volume", "resources": {"requests": {"storage": "1Gi"}}}})
    wait_for(lambda: k8s.get("/api/v1/namespaces/default/persistentvolumeclaims/volume")["status"].get("phase") == "Bound", "the claim")


def files(place):
    os.mkdir(os.path.join(place.folder, "files"))
    for i in range(4):
        with open(os.path.join(place.folder, "files", f"{i}.txt"), "w", encoding="utf-8") as out:
            out.write(f"{i}\n")
    with open(os.path.join(place.folder, "data.txt"), "w", encoding="utf-8") as out:
        out.write("data\n")
    place.tutti("dataset", "add", "-d", name("configs"), "-p", "files")
    place.tutti("dataset", "add", "-d", name("data"), "-p", "data.txt")


def test_run(place):
    """Each in a pod: paths inside, outputs outside, one fails and is tried again; what has no image is left alone."""
    place.create("first", "set -e; cat %IN %DATA >%OUT; echo $VOLUME %OUT $CUDA_VISIBLE_DEVICES $$; test $TT_TASK_JOB != 2", "--containerImage", IMAGE,
                 "--retries", "1", "--testers", "1")
    place.create("local", ": %IN %DATA %OUT")
    check("local is left: it was created without" in place.run("--cpu", "2"), "what is left is said")
    jobs = place.jobs("first")
    check([(job["status"], job["attempt"], job["exit_code"]) for job in jobs] == [("done", 1, 0), ("done", 1, 0), ("failed", 2, 1), ("done", 1, 0)], f"{jobs}")
    task = name("first")
    for i in range(4):
        check(place.read(task, f"job_configId_{i}", "out") == f"{i}\ndata\n", f"output of job {i}")
        words = place.read(task, "logs", f"job_configId_{i}.log").split()
        check(words[:3] == ["/volume", f"/volume/{task}/job_configId_{i}/out", "-1"] and words[3].isdigit(), f"log of job {i}: {words}")
    check(place.states("local") == ["registered"] * 4 or place.states("local") == ["assigned"] * 4, "a task without an image")
    wait_for(lambda: not place.k8s.get(JOBS)["items"], "Jobs that have ended are deleted")
    place.tutti("task", "kill", "-t", name("local"))


def test_killed(place):
    """The engine is killed with -9, looks by others change nothing; the next one finds the pods."""
    place.create("second", "echo x >>%OUT; : %IN %DATA; until [ -e $VOLUME/go ]; do sleep 0.1; done", "--containerImage", IMAGE, "--bypass")
    engine = place.engine("--cpu", "3")
    wait_for(lambda: len([i for i in range(4) if place.read(name("second"), f"job_configId_{i}", "out")]) == 3, "three pods that run")
    before = {item["metadata"]["uid"] for item in place.k8s.get(JOBS)["items"]}
    # Its guard last: who has lost it ends by itself; the guard's process id stays its own until it is waited for.
    for pid in [*map(int, subprocess.run(["pgrep", "-P", str(engine.pid)], capture_output=True, text=True, check=False).stdout.split()), engine.pid]:
        os.kill(pid, signal.SIGKILL)
    engine.wait()
    check(sorted(place.states("second")) == ["assigned", "running", "running", "running"], f"without an engine: {place.jobs('second')}")
    engine = place.engine("--cpu", "3")
    wait_for(lambda: "goes on" in engine.stdout.readline(), "the pods are found", 30)
    check({item["metadata"]["uid"] for item in place.k8s.get(JOBS)["items"]} == before, "they are the same")
    open(os.path.join(place.folder, "go"), "w", encoding="utf-8").close()
    said, _ = engine.communicate(timeout=200)
    check(engine.returncode == 0, said)
    check([(job["status"], job["attempt"]) for job in place.jobs("second")] == [("done", 1)] * 4, f"{place.jobs('second')}")
    check(all(place.read(name("second"), f"job_configId_{i}", "out") == "x\n" for i in range(4)), "each ran once")


def test_ended(place):
    """A task that is killed, and a Job that somebody deletes; an interrupted engine leaves its pods."""
    os.unlink(os.path.join(place.folder, "go"))
    place.create("third", "echo x >%OUT; : %IN %DATA; until [ -e $VOLUME/go ]; do sleep 0.1; done", "--containerImage", IMAGE, "--bypass")
    engine = place.engine("--cpu", "4")
    wait_for(lambda: all(place.read(name("third"), f"job_configId_{i}", "out") for i in range(4)), "four pods that run")
    engine.send_signal(signal.SIGTERM)
    engine.communicate(timeout=60)
    check(engine.returncode == 143 and place.states("third") == ["running"] * 4, f"interrupted: {engine.returncode}, {place.states('third')}")
    place.k8s.kubectl("delete", "job", place.k8s.get(JOBS)["items"][0]["metadata"]["name"])
    engine = place.engine("--cpu", "4", "--stay")
    wait_for(lambda: len(place.k8s.get(JOBS)["items"]) == 4, "the deleted one is begun again by an engine that did not see it go")
    wait_for(lambda: place.states("third") == ["running"] * 4, "all are known")
    gone = place.k8s.get(JOBS)["items"][1]
    place.k8s.kubectl("delete", "job", gone["metadata"]["name"])
    wait_for(lambda: "failed" in place.states("third"), "one whose Job is gone has failed")
    place.tutti("task", "kill", "-t", name("third"))
    wait_for(lambda: sorted(place.states("third")) == ["failed"] + ["killed"] * 3, lambda: f"the others: {place.states('third')}")
    wait_for(lambda: not place.k8s.get(JOBS)["items"], "no Job is left")
    wait_for(lambda: not place.k8s.get("/api/v1/namespaces/default/pods")["items"], "no pod is left")
    engine.send_signal(signal.SIGTERM)
    engine.communicate(timeout=60)
    place.tutti("task", "delete", "-t", name("third"), "--remove")


def line_with(engine, words):
    """The next line that it says with them."""
    late = threading.Timer(cluster.DEADLINE, engine.kill)
    late.start()
    line = next((line for line in engine.stdout if words in line), "nothing is said")
    late.cancel()
    return line


def reason(engine):
    """The line that says why a pod does not begin."""
    return line_with(engine, "does not begin")


def finish(engine):
    """What it says to its end, behind the lines that were read: communicate() would not know of those that came with them."""
    late = threading.Timer(60, engine.kill)
    late.start()
    said = engine.stdout.read()
    engine.wait()
    late.cancel()
    return said


def test_silent(place):
    """The API server goes and comes: pods go on, nothing is concluded, and what was to be begun meanwhile is begun then, once."""
    place.create("fourth", "echo x >>%OUT; : %IN %DATA; until [ -e $VOLUME/go ]; do sleep 0.1; done", "--containerImage", IMAGE, "--bypass")
    engine = place.engine("--cpu", "3")
    wait_for(lambda: len([i for i in range(4) if place.read(name("fourth"), f"job_configId_{i}", "out")]) == 3, "three pods that run")
    place.k8s.stop_part("kube-apiserver")
    try:
        open(os.path.join(place.folder, "go"), "w", encoding="utf-8").close()
        place.tutti("task", "slots", "--cpu", "4")  # the fourth is wanted now, and nobody answers
        wait_for(lambda: place.states("fourth") == ["running"] * 4, "the fourth is to be begun")
        check("trying on" in line_with(engine, "trying on"), "that nobody answers is said")
    finally:
        place.k8s.start_part("kube-apiserver")
    said, _ = engine.communicate(timeout=200)
    check(engine.returncode == 0, said)
    check([(job["status"], job["attempt"]) for job in place.jobs("fourth")] == [("done", 1)] * 4, f"{place.jobs('fourth')}")
    check(all(place.read(name("fourth"), f"job_configId_{i}", "out") == "x\n" for i in range(4)), "each ran once")


def does_not_begin(place, task, image):
    """What is said of why, and that the task can be killed."""
    place.create(task, ": %IN %DATA %OUT", "--containerImage", image, "--bypass")
    engine = place.engine("--cpu", "1")
    line = reason(engine)
    place.tutti("task", "kill", "-t", name(task))
    said = finish(engine)
    check(engine.returncode == 0 and place.states(task) == ["killed"] * 4, f"{line}{said}")
    check("does not begin" not in said, f"said again: {line}{said}")
    return line


def test_waits(place):
    """An image that there is none of."""
    said = does_not_begin(place, "fifth", "docker.io/local/none:1")
    check("does not begin: ImagePullFailed: " in said and "docker.io/local/none:1" in said, said)


def test_no_room(place):
    """A quota by which the pod is not even made."""
    quotas = "/api/v1/namespaces/default/resourcequotas"
    place.k8s.apply({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "none", "namespace": "default"}, "spec": {"hard": {"pods": "0"}}})
    wait_for(lambda: place.k8s.get(f"{quotas}/none")["status"].get("hard"), "the quota to be looked after")
    said = does_not_begin(place, "sixth", IMAGE)
    check("does not begin: FailedCreate: " in said and "exceeded quota: none" in said, said)
    place.k8s.kubectl("delete", "resourcequota", "none")


def pods(place, task):
    """Of its Jobs: those of the tests before go when the cluster gets to it."""
    return place.k8s.get(f"/api/v1/namespaces/default/pods?labelSelector=app.kubernetes.io/instance={name(task)}")["items"]


def earlier(place, task):
    """What pods before the present ones of the same attempts wrote: directories that were put aside."""
    return sorted(entry for entry in os.listdir(os.path.join(place.folder, name(task))) if ".attempt" in entry)


def test_queue(place):
    """A Job of a queue begins when it is admitted, which is what Kueue does by suspend, and anew when it was taken back: in a directory that holds
    nothing, with the other beside it; and what each is told of it."""
    place.create("queued", "echo x >>%OUT; : %IN %DATA; until [ -e $VOLUME/enough ]; do sleep 0.1; done", "--containerImage", IMAGE, "--bypass")
    begun = lambda: sum(bool(place.read(name("queued"), f"job_configId_{i}", "out")) for i in range(4))
    admit = lambda job, suspend: place.k8s.patch(f"{JOBS}/{job['metadata']['name']}", {"spec": {"suspend": suspend}})
    engine = place.engine("--cpu", "4", "--queue", "team", "--requests", "cpu=10m", "--limits", "memory=64Mi", "--deadline", "10m", "--ttl", "2m")
    said = reason(engine)
    check("does not begin: AwaitingAdmission: its Job is suspended, and waits in queue team" in said, said)
    jobs = wait_for(lambda: len(place.k8s.get(JOBS)["items"]) == 4 and place.k8s.get(JOBS)["items"], "four Jobs")
    check(not pods(place, "queued"), "a pod of a Job that was not admitted")
    for job in jobs:
        spec, labels = job["spec"], job["metadata"]["labels"]
        check(labels["kueue.x-k8s.io/queue-name"] == "team" and labels["app.kubernetes.io/instance"] == name("queued"), labels)
        check((spec["activeDeadlineSeconds"], spec["ttlSecondsAfterFinished"]) == (600, 120), spec)
        resources = spec["template"]["spec"]["containers"][0]["resources"]
        check(resources == {"requests": {"cpu": "10m"}, "limits": {"memory": "64Mi"}}, resources)
        admit(job, False)
    wait_for(lambda: begun() == 4, lambda: f"four that run: {begun()}")
    admit(jobs[0], True)
    wait_for(lambda: len(pods(place, "queued")) == 3, "the pod that is taken back to go")
    admit(jobs[0], False)
    aside = wait_for(lambda: earlier(place, "queued"), lambda: f"the one that was taken back to begin anew: {place.jobs('queued')}")
    wait_for(lambda: begun() == 4, lambda: f"it to run: {begun()}")
    open(os.path.join(place.folder, "enough"), "w", encoding="utf-8").close()
    said, _ = engine.communicate(timeout=100)
    check(engine.returncode == 0 and place.states("queued") == ["done"] * 4, said)
    check(len(aside) == 1 and place.read(name("queued"), aside[0], "out") == "x\n" and [job["attempt"] for job in place.jobs("queued")] == [1] * 4, f"{aside}")
    check(all(place.read(name("queued"), f"job_configId_{i}", "out") == "x\n" for i in range(4)), "each ran once in its directory")


def test_evicted(place):
    """A pod that leaves with its node has not failed: its job begins anew, and that costs no retry. One whose end is known has ended, whatever comes of its pod."""
    place.create("evicted", "echo x >>%OUT; : %IN %DATA; until [ -e $VOLUME/stay ]; do sleep 0.1; done", "--containerImage", IMAGE, "--bypass", "--retries", "0")
    engine = place.engine("--cpu", "4")
    wait_for(lambda: all(place.read(name("evicted"), f"job_configId_{i}", "out") for i in range(4)), "four pods that run")
    with open(os.path.join(place.folder, name("evicted"), "logs", "job_configId_0-1.exit"), "w", encoding="utf-8") as out:
        out.write("0\n")
    place.k8s.kubectl("drain", parts.NODE, "--pod-selector", f"app.kubernetes.io/instance={name('evicted')}")
    place.k8s.kubectl("uncordon", parts.NODE)
    aside = wait_for(lambda: len(earlier(place, "evicted")) == 3 and earlier(place, "evicted"), lambda: f"three to begin anew: {earlier(place, 'evicted')}, {place.jobs('evicted')}")
    open(os.path.join(place.folder, "stay"), "w", encoding="utf-8").close()
    said, _ = engine.communicate(timeout=100)
    check(engine.returncode == 0 and [(job["status"], job["attempt"]) for job in place.jobs("evicted")] == [("done", 1)] * 4, f"{said}{place.jobs('evicted')}")
    check(aside == [f"job_configId_{i}.attempt1.1" for i in (1, 2, 3)], f"{aside}")
    check(all(place.read(name("evicted"), f"job_configId_{i}", "out") == "x\n" for i in range(4)), "each ran once in its directory")


def test_restricted(place):
    """A pod of somebody who is not root is let into a namespace that enforces `restricted`; root's is refused, which is said."""
    label = "pod-security.kubernetes.io/enforce"
    place.k8s.kubectl("label", "namespace", "default", f"{label}=restricted")
    said = does_not_begin(place, "roots", IMAGE)
    check("does not begin: FailedCreate: " in said and "violates PodSecurity" in said and "runAsUser" in said, said)
    check("allowPrivilegeEscalation" not in said and "seccompProfile" not in said, said)
    place.create("users", "id -u >%OUT; : %IN %DATA", "--containerImage", IMAGE, "--bypass")
    shutil.copy(TUTTI, os.path.join(place.folder, "tutti"))  # where anybody may run it
    for folder, folders, names in os.walk(place.folder):
        for one in (folder, *(os.path.join(folder, entry) for entry in folders + names)):
            os.lchown(one, 1000, 1000)
    os.chmod(place.folder, 0o755)
    config = os.path.join(place.folder, "kubeconfig")
    with open(place.k8s.kubeconfig, encoding="utf-8") as file, open(config, "w", encoding="utf-8") as out:
        out.write(file.read())
    os.chown(config, 1000, 1000)
    engine = place.engine("--cpu", "2", "--kubeconfig", config,
                          program=("setpriv", "--reuid=1000", "--regid=1000", "--clear-groups", os.path.join(place.folder, "tutti")))
    said, _ = engine.communicate(timeout=100)
    check(engine.returncode == 0, said)
    outputs = [place.read(name("users"), f"job_configId_{i}", "out") for i in range(4)]
    check(outputs == ["1000\n"] * 4, f"{outputs}{said}")
    place.k8s.kubectl("label", "namespace", "default", f"{label}-")


def tutti_image(k8s, folder):
    """Tutti's own image has no shell, which a job's command is a line for: it is laid over one that has, as the guide says."""
    image_rig.run(image_rig.BUILD, "--binary", TUTTI, "--rootfs", folder)
    files = images.busybox_files()
    for path, folders, names in os.walk(folder):
        for name in names + [one for one in folders if os.path.islink(os.path.join(path, one))]:
            here = os.path.join(path, name)
            files[os.path.relpath(here, folder)] = ("link", os.readlink(here)) if os.path.islink(here) else here
    k8s.make_image(SWEEP_IMAGE, files)


def test_sweep(place):
    """Tutti's own configs, a run each in a pod: %OUT is the run's directory, and each learns with its own rate."""
    with tempfile.TemporaryDirectory(prefix="tt-task-rootfs-") as folder:
        tutti_image(place.k8s, folder)
    os.mkdir(os.path.join(place.folder, "sweep"))
    rates = ("0.001", "0.002", "0.004")
    for rate in rates:
        with open(os.path.join(place.folder, "sweep", f"rate-{rate}.yaml"), "w", encoding="utf-8") as out:
            out.write(SWEEP.format(rate=rate))
    place.tutti("dataset", "add", "-d", name("rates"), "-p", "sweep")
    place.tutti("task", "create", "-c", name("rates"), "-o", "run", "-t", name("swept"), "--exec", "tutti check %IN && tutti run %IN --run-dir %OUT",
                "--testers", "1", "--containerImage", SWEEP_IMAGE)
    said = place.run("--cpu", "2")
    check(place.states("swept") == ["done"] * 3, f"{said}{place.jobs('swept')}")
    for i, rate in enumerate(rates):
        summary = json.loads(place.read(name("swept"), f"job_configId_{i}", "run", "summary.json"))
        check(summary["status"] == "succeeded" and summary["env_steps"] >= 20000, f"run {i}: {summary}")
        check(f"learning_rate: {rate}" in place.read(name("swept"), f"job_configId_{i}", "run", "config.yaml"), f"config of run {i}")


def test_refused(place):
    """A claim that there is none of, a server that does not answer."""
    engine = place.k8s.exec_in([TUTTI, "task", "run", "--claim", "none"], env=place.env, cwd=place.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    _, said = engine.communicate(timeout=60)
    check(engine.returncode == 66 and "none" in said, f"{engine.returncode}: {said}")
    place.tutti("task", "run", "--claim", "volume", code=69)  # outside of the cluster's network
    for option, value in (("--namespace", "default"), ("--queue", "team"), ("--deadline", "1h")):
        place.tutti("task", "run", option, value, code=64)
    for option, value in (("--queue", "Team_"), ("--deadline", "0s"), ("--ttl", "59s"), ("--ttl", "1"), ("--requests", "gpu=1")):
        place.tutti("task", "run", "--claim", "volume", option, value, code=64)


TESTS = (test_run, test_killed, test_ended, test_silent, test_waits, test_no_room, test_queue, test_evicted, test_sweep, test_refused, test_restricted)


def main():
    cluster.require(full=True)
    tests = [test for test in TESTS if not sys.argv[1:] or test.__name__ in sys.argv[1:]]
    with tempfile.TemporaryDirectory(prefix="tt-task-k8s-") as folder, cluster.Cluster(full=True) as k8s:
        place = Place(k8s, folder)
        files(place)
        volume(k8s, folder)
        for test in tests:
            test(place)
            print(f"ok      {test.__name__}", flush=True)


if __name__ == "__main__":
    main()
