#!/usr/bin/env python3
"""ElasticDL's tasks in pods: the sample's master with the rights that it gives and no others, asked by the original's request and by
`tutti submit`. Members meet by the names in TF_CONFIG; ends, exit codes and logs come back, and nothing is left. The agent is brought into an
image that has none. A pod that cannot begin says why; a master that is killed is followed by one that goes on; a pod template brings cards; with PodGroups
all members stand there before one is placed. TensorFlow itself trains in pods by either strategy, where build/venv-tf has it, and Tutti's own roles do, to
the weights of `tutti run`."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
import cluster

cluster.require(full=True)
SOURCE = os.environ["TT_SOURCE_DIR"]
sys.path += [os.path.join(SOURCE, "tests"), os.path.join(SOURCE, "tests/elasticdl")]
import image_rig  # noqa: E402
import test_gang as gang  # noqa: E402
import test_queue as kueue  # noqa: E402
import images  # noqa: E402
import monitoring_rig  # noqa: E402
import python_rig  # noqa: E402
import tensorflow_rig  # noqa: E402
import tf_programs  # noqa: E402
import transcript_rig  # noqa: E402
from cluster import check, wait_for  # noqa: E402

TUTTI = os.environ["TUTTI"]
IMAGE = "docker.io/local/trainer:1"
GUIDES_IMAGE = "registry.example/tutti:0.1.0"
SPACE = "elasticdl"
NODE = f"/api/v1/nodes/{cluster.parts.NODE}"
PORT = 31898
NODE_PORT = '{"spec": {"type": "NodePort", "ports": [{"port": 80, "nodePort": 31898}]}}'
PODS = f"/api/v1/namespaces/{SPACE}/pods?labelSelector=tutti-elasticdl"
SETS = f"/apis/apps/v1/namespaces/{SPACE}/statefulsets"
SERVICES = f"/api/v1/namespaces/{SPACE}/services?labelSelector=tutti-elasticdl"
# The image's user is not root, and its Python is a shell. What the program does it takes from the task's name, which is its pod's.
PYTHON = b'#!/bin/sh\nexec sh "$@"\n'
EXEC = rb"""
echo "$TF_CONFIG"
echo "$NUM_WORKERS workers"
ps=$(echo "$TF_CONFIG" | sed -n 's/.*"ps":\["\([^"]*\)".*/\1/p')
case $POD_NAME in
*-ps-*) mkdir -p /tmp/www; hostname > /tmp/www/name; exec httpd -f -p 1234 -h /tmp/www;;
servers-*) until [ "$(wget -q -O - http://$ps/name 2>/dev/null)" = servers-ps-1-0 ]; do sleep 0.1; done; echo "met $ps";;
fails-worker-2-1) echo this is why; exit 3;;
fails-*) exec sleep 1000;;
waits-*) echo begun >> /tmp/begun; until [ -e /tmp/go ]; do sleep 0.1; done; wc -l < /tmp/begun;;
esac
"""


class Master:
    """The sample's, asked at a port of the cluster's node, as the original's is."""

    def __init__(self, k8s):
        self.k8s = k8s
        image_rig.load(k8s)
        image_rig.load(k8s, name=GUIDES_IMAGE)
        k8s.make_image(IMAGE, {**images.busybox_files(), "usr/bin/python": PYTHON, "exec.py": EXEC}, user="1000:1000")
        (apply, _, _), (forward,), (first,) = transcript_rig.blocks("On a cluster", "elasticdl.md")
        apply, self.forward, self.first = map(shlex.split, (apply, forward, first))
        check(apply[:3] == ["kubectl", "apply", "-k"], f"the guide begins with {apply}")
        k8s.kubectl("apply", "-k", os.path.join(SOURCE, apply[3]))
        k8s.kubectl("-n", SPACE, "patch", "service", "master-svc", "--patch", NODE_PORT)
        self.await_ready()

    def await_ready(self):
        """Until its Service leads to one."""
        wait_for(lambda: self.ask("/healthz")[0] == 200, "the master to serve")

    def ask(self, path):
        """(code, text); whoever has no master before it yet asks again."""
        code, text = wait_for(lambda: self.k8s.http(PORT, path), "a master that answers")
        return code, text.decode()

    def json(self, path):
        code, text = self.ask(path)
        check(code == 200, f"{path}: {code} {text}")
        return json.loads(text)

    def submit(self, *args, timeout=100):
        """(exit code, stdout, stderr). It asks again, too: while pods end, connections to a node's port are refused for some tenths of a
        second, as some kernels do not translate each of them then, whatever the rules are; their pod's own address answers."""
        return wait_for(lambda: self.submit_once(args, timeout), "a master that takes a task")

    def submit_once(self, args, timeout):
        """None: nobody was there to take it."""
        process = self.k8s.exec_in([TUTTI, "submit", "--master", f"http://{cluster.guard.ADDRESS}:{PORT}", *args], stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True)
        out, error = process.communicate(timeout=timeout)
        return None if process.returncode == 69 and "Couldn't connect to server" in error else (process.returncode, out, error)

    def status(self, name):
        return self.json(f"/status?name={name}")

    def await_state(self, name, state):
        wait_for(lambda: self.status(name)["state"] == state, lambda: f"{name} to be {state}: {self.status(name)}")

    def log(self, name, member):
        return self.ask(f"/logs?name={name}&member={member}")[1]


def install(k8s, heading, folder=SOURCE):
    """The guide's commands for another master in place of the one that is there; what it types behind them."""
    apply, image, *more = transcript_rig.blocks(heading, "elasticdl.md")[0]
    check("master=" + GUIDES_IMAGE in image, image)
    prompt = transcript_rig.Prompt(k8s, folder)
    prompt.type(apply)
    prompt.type(image)
    k8s.kubectl("-n", SPACE, "rollout", "status", "deployment/tutti-master", "--timeout=120s")
    return more


def install_the_first(k8s):
    k8s.kubectl("apply", "-k", os.path.join(SOURCE, "k8s/samples/elasticdl"))
    k8s.kubectl("-n", SPACE, "rollout", "status", "deployment/tutti-master", "--timeout=120s")


def pods(k8s):
    return k8s.get(PODS)["items"]


def await_nothing_left(k8s, name):
    """Neither pods nor Services; the sets of a task that ended are its record."""
    wait_for(lambda: not [pod for pod in pods(k8s) if pod["metadata"]["name"].startswith(name)], f"the last pod of {name} to go")
    wait_for(lambda: not [one for one in k8s.get(SERVICES)["items"] if one["metadata"]["name"].startswith(name)], f"the Services of {name} to go")
    return [(one["metadata"]["name"], one["spec"]["replicas"]) for one in k8s.get(SETS)["items"] if one["metadata"]["name"].startswith(name)]


def test_all_reduce(k8s, master):
    """The guide's commands, but for the image: through a tunnel from one command to its end, and what each worker was told."""
    tunnel = k8s.exec_in([k8s.programs["kubectl"], *master.forward[1:]], stdout=subprocess.PIPE, text=True)
    try:
        check("7897" in tunnel.stdout.readline(), "the tunnel")
        words = [IMAGE if word.endswith("mnist:1") else word for word in master.first]
        process = k8s.exec_in([TUTTI, *words[1:]], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        out, _ = process.communicate(timeout=100)
        check(IMAGE in words and process.returncode == 0 and out.endswith("succeeded\n"), (process.returncode, out))
    finally:
        tunnel.terminate()
        tunnel.communicate(timeout=30)
    for i in range(2):
        hosts = ",".join(f'"hello-worker-0-{k}.hello-worker-0.{SPACE}.svc:1234"' for k in range(2))
        check(master.log("hello", f"worker-{i}") == f'{{"cluster":{{"worker":[{hosts}]}},"task":{{"type":"worker","index":{i}}}}}\n2 workers\n',
              master.log("hello", f"worker-{i}"))
    check([member["exit_code"] for member in master.status("hello")["members"]] == [0, 0], master.status("hello"))
    check(await_nothing_left(k8s, "hello") == [("hello-worker-0", 0)], k8s.get(SETS))


def test_parameter_server(k8s, master):
    """The original's request: workers meet their parameter server by its name, and it is ended with them."""
    check(master.ask(f"/create?strategy=ParameterServer&n_worker=2&n_ps=1&img={IMAGE}&name=servers")[1] == "OK", "the answer")
    master.await_state("servers", "succeeded")
    ps = f"servers-ps-1-0.servers-ps-1.{SPACE}.svc:1234"
    for i in range(2):
        check(f"2 workers\nmet {ps}\n" in master.log("servers", f"worker-{i}"), master.log("servers", f"worker-{i}"))
    check(f'"ps":["{ps}"]}},"task":{{"type":"ps","index":0}}' in master.log("servers", "ps-0"), master.log("servers", "ps-0"))
    check(await_nothing_left(k8s, "servers") == [("servers-ps-1", 0), ("servers-worker-1", 0)], k8s.get(SETS))


def test_tensorflow(k8s, master):
    """MultiWorkerMirroredStrategy in two pods, from one command: each finds the other by its name, and both have the same sums."""
    tensorflow_rig.make(k8s, {"exec.py": tf_programs.ALL_REDUCE.encode()})
    code, _, error = master.submit("--worker-num", "2", "--image", tensorflow_rig.IMAGE, "--task", "fits", "--wait", timeout=300)
    logs = [master.log("fits", f"worker-{i}") for i in range(2)]
    check(code == 0, (code, error, logs))
    fitted = [re.findall(r"^fitted (\S+) (\S+)$", log, re.M) for log in logs]
    check(fitted[0] == fitted[1] and len(fitted[0]) == 1, logs)
    (w, b), = fitted[0]
    check(abs(float(w) - 3) < 0.1 and abs(float(b) - 1) < 0.1, logs)
    check(await_nothing_left(k8s, "fits") == [(f"fits-worker-{master.status('fits')['id']}", 0)], k8s.get(SETS))
    check(master.ask("/delete?name=fits")[1] == "OK", "the answer")
    wait_for(lambda: await_nothing_left(k8s, "fits") == [], "the set to go")


def test_exit_code(k8s, master):
    """One program fails: its code is that of `tutti submit`, its last line the reason, and the others are ended."""
    code, _, error = master.submit("--worker-num", "2", "--image", IMAGE, "--task", "fails", "--wait")
    check(code == 3 and "worker-1: exit code 3: this is why" in error, (code, error))
    check(master.status("fails")["exit_code"] == 3, master.status("fails"))
    await_nothing_left(k8s, "fails")
    check(master.ask("/create?strategy=AllReduce&n_worker=1&n_ps=0&name=bare") == (400, "img is missing: the image that the members of the task run"), "no image")


def test_cannot_begin(k8s, master):
    """An image that cannot be, a quota, no node: the member says it; a task that is deleted leaves nothing."""
    master.submit("--worker-num", "1", "--image", "docker.io/local/None:1", "--task", "none")
    wait_for(lambda: "ImagePullFailed" in (master.status("none")["members"][0]["reason"] or ""), lambda: f"the reason: {master.status('none')}")
    here = len(k8s.get(f"/api/v1/namespaces/{SPACE}/pods")["items"])
    k8s.apply({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "few", "namespace": SPACE}, "spec": {"hard": {"pods": str(here)}}})
    wait_for(lambda: k8s.get(f"/api/v1/namespaces/{SPACE}/resourcequotas/few").get("status", {}).get("used"), "the quota to count")
    master.submit("--worker-num", "1", "--image", IMAGE, "--task", "many")
    wait_for(lambda: "exceeded quota: few" in (master.status("many")["members"][0]["reason"] or ""), lambda: f"the reason: {master.status('many')}")
    k8s.patch(NODE, {"spec": {"unschedulable": True}})  # first, so that no try of the set's lets "many" run
    k8s.kubectl("-n", SPACE, "delete", "resourcequota", "few")
    master.submit("--worker-num", "1", "--image", IMAGE, "--task", "nowhere")
    wait_for(lambda: "Unschedulable: 0/1 nodes" in (master.status("nowhere")["members"][0]["reason"] or ""), lambda: f"the reason: {master.status('nowhere')}")
    for name in ("none", "many", "nowhere"):
        check(master.ask(f"/delete?name={name}")[1] == "OK", name)
        master.await_state(name, "deleted")
        wait_for(lambda name=name: await_nothing_left(k8s, name) == [], f"the sets of {name} to go")
    k8s.patch(NODE, {"spec": {"unschedulable": False}})


def kill_master(k8s):
    """Until there is another."""
    masters = f"/api/v1/namespaces/{SPACE}/pods?labelSelector=app.kubernetes.io/name=tutti-master"
    old = {pod["metadata"]["name"] for pod in k8s.get(masters)["items"]}
    k8s.kubectl("-n", SPACE, "delete", "pod", *old, "--grace-period=0", "--force")
    wait_for(lambda: [pod for pod in k8s.get(masters)["items"] if pod["metadata"]["name"] not in old], "another master")


def test_killed(k8s, master):
    """The next master finds what runs and what has ended, and starts nothing twice."""
    master.submit("--worker-num", "2", "--image", IMAGE, "--task", "waits")
    master.await_state("waits", "running")
    before = {pod["metadata"]["uid"] for pod in pods(k8s)}
    kill_master(k8s)
    found = [("hello", "succeeded"), ("servers", "succeeded"), ("fails", "failed"), ("waits", "running")]
    wait_for(lambda: [(task["name"], task["state"]) for task in master.json("/list")] == found,  # the old one, which knows deleted ones, may answer yet
             lambda: f"another master to answer with what it found: {master.json('/list')}")
    failed = master.status("fails")
    check(failed["exit_code"] == 3 and failed["reason"] == "worker-1: exit code 3: this is why", failed)
    check({pod["metadata"]["uid"] for pod in pods(k8s)} == before, "the same pods")
    for pod in pods(k8s):
        k8s.let_go(pod["metadata"]["name"], "/tmp/go", "-n", SPACE)
    master.await_state("waits", "succeeded")
    check(master.log("waits", "worker-1").endswith("2 workers\n1\n"), master.log("waits", "worker-1"))
    await_nothing_left(k8s, "waits")
    for name in ("hello", "fails"):
        check(master.ask(f"/delete?name={name}")[1] == "OK", name)
        wait_for(lambda name=name: await_nothing_left(k8s, name) == [], f"the sets of {name} to go")


def test_lost(k8s, master):
    """A pod that somebody deletes has lost its program, and its task fails; the StatefulSet's other pod is not taken for it."""
    master.submit("--worker-num", "1", "--image", IMAGE, "--task", "waits")
    master.await_state("waits", "running")
    k8s.kubectl("-n", SPACE, "delete", "pod", pods(k8s)[0]["metadata"]["name"], "--wait=false")
    master.await_state("waits", "failed")
    check("worker-0: " in master.status("waits")["reason"], master.status("waits"))
    await_nothing_left(k8s, "waits")


def small(folder):
    """The samples, that with cards asking for no more than a small node has beside."""
    shutil.copytree(os.path.join(SOURCE, "k8s/samples"), os.path.join(folder, "k8s/samples"))
    path = os.path.join(folder, "k8s/samples/elasticdl-gpu/template.yaml")
    with open(path, encoding="utf-8") as file:
        text = file.read()
    with open(path, "w", encoding="utf-8") as file:
        file.write(re.sub(r'"[24]"', "10m", re.sub("(16|8)Gi", "64Mi", text)))


def place(k8s, pod):
    """As a scheduler would."""
    name = pod["metadata"]["name"]
    k8s.api("POST", f"/api/v1/namespaces/{SPACE}/pods/{name}/binding",
            {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": name}, "target": {"apiVersion": "v1", "kind": "Node", "name": cluster.parts.NODE}})


def test_together(k8s, master):
    """The sample with PodGroups and the rights to them; this test is the gang's scheduler. Its number of members stand there together, none of
    them placed; they meet as ever, and the group goes with the task."""
    gang.s_serve(k8s, gang.VOLCANO)
    groups = f"/apis/{'/'.join(gang.VOLCANO[:2])}/namespaces/{SPACE}/podgroups"
    install(k8s, "All of its members, or none")
    master.submit("--strategy", "ParameterServer", "--ps-num", "1", "--worker-num", "2", "--image", IMAGE, "--task", "gathers")
    waiting = wait_for(lambda: (lambda found: len(found) == 3 and found)(pods(k8s)), "three pods")
    check(not any(pod["spec"].get("nodeName") for pod in waiting) and {pod["spec"]["schedulerName"] for pod in waiting} == {"volcano"}, waiting)
    (group,) = k8s.get(groups)["items"]
    check(group["spec"] == {"minMember": 3} and master.status("gathers")["step"] == "making members", (group, master.status("gathers")))
    for pod in waiting:
        place(k8s, pod)
    master.await_state("gathers", "succeeded")
    await_nothing_left(k8s, "gathers")
    wait_for(lambda: not k8s.get(groups)["items"], "the group to go")
    check(master.ask("/delete?name=gathers")[1] == "OK", "the answer")
    install_the_first(k8s)


def test_cards(k8s, master):
    """A pod template: who asks for a card that no node has says so, and begins where one comes. Parameter servers get none."""
    with tempfile.TemporaryDirectory(prefix="tt-elasticdl-") as folder:
        small(folder)
        install(k8s, "Cards, nodes, volumes of members", folder)
    master.submit("--strategy", "ParameterServer", "--ps-num", "1", "--worker-num", "1", "--image", IMAGE, "--task", "cards")
    reasons = lambda: {one["name"]: one.get("reason") or "" for one in master.status("cards")["members"]}
    wait_for(lambda: "nvidia.com/gpu" in reasons()["worker-0"], lambda: f"the worker to lack a card: {reasons()}")
    check(reasons()["worker-0"].startswith("Unschedulable: "), reasons())
    specs = {pod["metadata"]["labels"]["type"]: pod["spec"] for pod in pods(k8s)}
    worker, ps = (specs[kind]["containers"][0] for kind in ("worker", "ps"))
    check(worker["resources"]["limits"] == {"memory": "64Mi", "nvidia.com/gpu": "1"} and ps["resources"]["limits"] == {"memory": "64Mi"}, (worker, ps))
    check({"name": "NCCL_DEBUG", "value": "WARN"} in worker["env"] and {"name": "shm", "mountPath": "/dev/shm"} in worker["volumeMounts"], worker)
    check({"key": "nvidia.com/gpu", "operator": "Exists"} in specs["worker"]["tolerations"], specs["worker"])
    k8s.patch(f"{NODE}/status", {"status": {"capacity": {"nvidia.com/gpu": "1"}}})
    master.await_state("cards", "succeeded")
    await_nothing_left(k8s, "cards")
    k8s.patch(f"{NODE}/status", {"status": {"capacity": {"nvidia.com/gpu": None}}})
    install_the_first(k8s)


def test_tensorflow_servers(k8s, master):
    """The other strategy: two workers move variables that a parameter server keeps, and the task ends with them, though it would serve for ever."""
    image = tensorflow_rig.make(k8s, {"exec.py": tf_programs.PARAMETER_SERVER.encode()}, "docker.io/local/tensorflow-servers:1")
    code, _, error = master.submit("--strategy", "ParameterServer", "--ps-num", "1", "--worker-num", "2", "--image", image, "--task", "moves", "--wait",
                                   timeout=300)
    logs = {name: master.log("moves", name) for name in ("ps-0", "worker-0", "worker-1")}
    check(code == 0 and "serving\n" in logs["ps-0"], (code, error, logs))
    for i in range(2):
        (w, b), = re.findall(r"^fitted (\S+) (\S+)$", logs[f"worker-{i}"], re.M) or [(0, 0)]
        check(abs(float(w) - 3) < 0.2 and abs(float(b) - 1) < 0.2, logs)
    await_nothing_left(k8s, "moves")


ROLES = "docker.io/local/roles:1"


def make_roles(k8s, folder):
    """An image of a task whose program is Tutti: ours, a Python, the example as it is, and the key, which its user reads by its group."""
    with open(os.path.join(folder, "key"), "w", encoding="utf-8") as file:
        file.write(subprocess.run([TUTTI, "key"], capture_output=True, text=True, check=True).stdout)
    os.chmod(file.name, 0o440)
    k8s.make_image(ROLES, {**image_rig.files_of_plain(folder), **images.busybox_files(), **python_rig.files(), "key": file.name, "runs": ("dir", 0o1777),
                           "exec.py": os.path.join(SOURCE, "docs/examples/elasticdl/exec.py")}, user="65532:0")


def test_roles(k8s, master):
    """docs/examples/elasticdl/exec.py in pods: coordinator, learners, collectors and aggregators, the same weights by either strategy and by `tutti run`."""
    with tempfile.TemporaryDirectory(prefix="tt-elasticdl-") as folder:
        make_roles(k8s, folder)
        alone = subprocess.run([TUTTI, "run", "cartpole-ppo", "--run-dir", os.path.join(folder, "run"), "--output", "json"], capture_output=True, text=True,
                               timeout=240, check=True, env={**os.environ, "XDG_STATE_HOME": folder})
    weights = json.loads(alone.stdout)["weights_sha256"]
    for name, servers, options in (("ring", 0, []), ("sums", 2, ["--strategy", "ParameterServer", "--ps-num", "2"])):
        code, _, error = master.submit(*options, "--worker-num", "2", "--image", ROLES, "--task", name, "--wait", timeout=300)
        members = [("ps", i) for i in range(servers)] + [("worker", i) for i in range(2)]
        logs = {f"{kind}-{i}": master.log(name, f"{kind}-{i}") for kind, i in members}
        check(code == 0, (code, error, logs))
        results = [json.loads(line) for line in logs["worker-0"].splitlines() if line.startswith("{")]
        check([result["weights_sha256"] for result in results] == [weights], (weights, logs))
        check(re.search(r"roster: .* of 2 learners, .* [1-9]\d* aggregators", logs["worker-1"]), logs)  # of parameter servers, where there are any
        for i in range(2):  # parameter servers are ended with the last of these, whatever they still had to say
            check(re.search("(leaving|asked to end): finished", logs[f"worker-{i}"]), (i, logs))
        await_nothing_left(k8s, name)


def kueue_says(k8s, name, *conditions, **status):
    """This test plays Kueue: conditions as (type, status, reason)."""
    path = f"/apis/{kueue.GROUP}/{kueue.VERSION}/namespaces/{SPACE}/workloads/{name}"
    workload = k8s.get(path)
    there = {one["type"]: one for one in workload.setdefault("status", {}).get("conditions", [])}
    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    there |= {kind: {"type": kind, "status": state, "reason": reason, "message": f"{kind} says the test", "lastTransitionTime": now}
              for kind, state, reason in conditions}
    k8s.patch(f"{path}/status", {"status": {**status, "conditions": list(there.values())}})


def test_in_a_queue(k8s, master):
    """No pod before the Workload is admitted, and then on the flavour's nodes; made inactive the task gives all back, waits, also when its
    master is killed, and begins anew; Kueue is told of its end, and the Workload goes with the set."""
    kueue.s_serve(k8s)
    (submit,) = install(k8s, "In a queue")
    k8s.patch(NODE, {"metadata": {"labels": {"cards": "h100"}}})
    workloads = f"/apis/{kueue.GROUP}/{kueue.VERSION}/namespaces/{SPACE}/workloads"
    words = {"registry.example/mnist:1": IMAGE, "hello": "waits-queued"}
    code, _, error = master.submit(*[words.get(word, word) for word in shlex.split(submit)[2:] if word != "--wait"])
    check(code == 0, error)
    (workload,) = wait_for(lambda: k8s.get(workloads)["items"], "the Workload")
    name, states = workload["metadata"]["name"], lambda: kueue.s_states(k8s.get(f"{workloads}/{name}"))
    check(workload["spec"]["queueName"] == "team-a" and master.status("waits-queued")["state"] == "queued" and not pods(k8s), workload)
    admission = {"clusterQueue": "all", "podSetAssignments": [{"name": "worker", "count": 2, "flavors": {"cpu": "fast"}}]}
    for life in range(2):
        kueue_says(k8s, name, ("QuotaReserved", "True", "QuotaReserved"), ("Admitted", "True", "Admitted"), ("Evicted", "False", "QuotaReserved"),
                   admission=admission)
        master.await_state("waits-queued", "running")
        members = pods(k8s)
        check([pod["spec"]["nodeSelector"] for pod in members] == [{"cards": "h100"}] * 2, members)
        check([pod["metadata"]["labels"]["kueue.x-k8s.io/podset"] for pod in members] == ["worker"] * 2, members)
        if life == 0:
            k8s.kubectl("-n", SPACE, "patch", "workload", name, "--type", "merge", "-p", '{"spec": {"active": false}}')
            kueue_says(k8s, name, ("Evicted", "True", "Deactivated"))
            master.await_state("waits-queued", "queued")
            wait_for(lambda: states()["QuotaReserved"] == "False" and not pods(k8s), lambda: f"the quota to be given back: {states()}")
            check(master.status("waits-queued")["reason"] == "its Workload has spec.active false", master.status("waits-queued"))
            kill_master(k8s)
            master.await_state("waits-queued", "queued")
            k8s.kubectl("-n", SPACE, "patch", "workload", name, "--type", "merge", "-p", '{"spec": {"active": true}}')
    for pod in pods(k8s):
        k8s.let_go(pod["metadata"]["name"], "/tmp/go", "-n", SPACE)
    master.await_state("waits-queued", "succeeded")
    check(master.log("waits-queued", "worker-1").endswith("2 workers\n1\n"), master.log("waits-queued", "worker-1"))
    wait_for(lambda: states().get("Finished") == "True", lambda: f"Kueue to know: {states()}")
    check(master.ask("/delete?name=waits-queued")[1] == "OK", "the answer")
    wait_for(lambda: not k8s.get(workloads)["items"], "the Workload to go with the set", 90)
    k8s.patch(NODE, {"metadata": {"labels": {"cards": None}}})
    k8s.kubectl("delete", "-f", os.path.join(SOURCE, "k8s/samples/elasticdl-queue/rbac.yaml"))
    install_the_first(k8s)


def test_what_is_monitored(k8s, master):
    """k8s/monitoring/elasticdl: it finds the master's Service, and its dashboard asks for what that has."""
    master.await_ready()
    monitoring_rig.check_folder(k8s, "monitoring/elasticdl", SPACE, 7)


TESTS = (test_all_reduce, test_parameter_server, test_exit_code, test_cannot_begin, test_killed, test_lost, test_together, test_cards, test_in_a_queue, test_what_is_monitored,
         test_tensorflow, test_tensorflow_servers, test_roles)


def main():
    skipped = False
    with cluster.Cluster(full=True, folders={**python_rig.folders(), **tensorflow_rig.folders()}) as k8s:
        master = Master(k8s)
        for test in (test for test in TESTS if not sys.argv[1:] or test.__name__ in sys.argv[1:]):
            begun = time.monotonic()
            try:
                test(k8s, master)
            except cluster.Skipped as reason:
                skipped = True
                print(f"SKIP    {test.__name__}: {reason}", flush=True)
                continue
            except Exception:
                print(k8s.kubectl("-n", SPACE, "logs", "deployment/tutti-master", check=False).stdout[-3000:], flush=True)
                print(k8s.kubectl("-n", SPACE, "get", "pods,sts,events", check=False).stdout, flush=True)
                raise
            print(f"ok      {test.__name__} ({time.monotonic() - begun:.1f} s)", flush=True)
    sys.exit(77 if skipped else 0)


if __name__ == "__main__":
    main()
