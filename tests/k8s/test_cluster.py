#!/usr/bin/env python3
"""The tests' own Kubernetes: pods, logs, names and service addresses work in it, two stand side by side, parts can be
stopped, and nothing is left of one whose owner was killed."""

import glob
import json
import os
import signal
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
import cluster
from cluster import Cluster, check, wait_for
import guard

cluster.require(full=True)
POD = "/api/v1/namespaces/default/pods"


def s_pod(name, script, **spec):
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": {"app": name}}, "spec": {
        "restartPolicy": "Never", "terminationGracePeriodSeconds": 1,
        "containers": [{"name": "main", "image": "docker.io/local/busybox:1", "imagePullPolicy": "IfNotPresent",
                        "command": ["sh", "-c", script]}], **spec}}


def s_service(name, **spec):
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": {
        "selector": {"app": name}, "ports": [{"port": 80, "targetPort": 8000}], **spec}}


def s_await_phase(k8s, name, phase):
    def look():
        got = k8s.get(f"{POD}/{name}")["status"].get("phase")
        check(got == phase or got not in ("Succeeded", "Failed"),
              f"{name} is {got}: {k8s.kubectl('logs', name, check=False).stdout}")
        return got == phase
    wait_for(look, f"{name} to be {phase}")


def s_left_of(world, directory):
    """What a cluster that has ended still has, in words."""
    left = [f"process {pid}" for pid in guard.marked(world["mark"])]
    left += [f"the {name}" for name in ("guard", "init") if guard.start_time(world[name]) is not None]
    left += [path for parent in guard.cgroup_parents() if os.path.exists(path := os.path.join(parent, world["mark"]))]
    with open("/proc/self/mounts", encoding="utf-8") as file:
        left += [line for line in file if directory in line]
    return left + ([directory] if os.path.exists(directory) else [])


# --- one full cluster, all of these in it

def test_a_pod_succeeds_and_its_log_is_read(k8s):
    k8s.apply(s_pod("hello", "echo hello; exit 0"))
    s_await_phase(k8s, "hello", "Succeeded")
    check(k8s.kubectl("logs", "hello").stdout == "hello\n", "its log")


def test_names_and_service_addresses(k8s):
    k8s.apply(s_pod("web", "mkdir -p /tmp/www && echo served > /tmp/www/index.html && httpd -f -p 8000 -h /tmp/www"),
              s_service("web"), s_service("bare", clusterIP="None", selector={"app": "web"}))
    s_await_phase(k8s, "web", "Running")
    address = k8s.get(f"{POD}/web")["status"]["podIP"]
    k8s.apply(s_pod("client", f"until nslookup bare.default.svc.cluster.local | grep -q {address}; do sleep 0.2; done;"
                    "until wget -q -O- http://web; do sleep 0.2; done; wget -q -O- http://bare:8000"))
    s_await_phase(k8s, "client", "Succeeded")
    check(k8s.kubectl("logs", "client").stdout == "served\nserved\n", "what the client read")
    check(k8s.kubectl("exec", "web", "--", "hostname").stdout == "web\n", "a command in a pod")


def test_pods_reach_the_api_as_their_account(k8s):
    k8s.apply(s_pod("asks", "wget -q -O- --no-check-certificate https://kubernetes.default/version"))
    s_await_phase(k8s, "asks", "Succeeded")
    check(json.loads(k8s.kubectl("logs", "asks").stdout)["gitVersion"] == "v1.33.13", "the version")
    config = k8s.account_kubeconfig("reader")
    told = k8s.kubectl("auth", "whoami", "-o", "json", env={"KUBECONFIG": config}).stdout
    check(json.loads(told)["status"]["userInfo"]["username"] == "system:serviceaccount:default:reader", told)
    told = k8s.kubectl("auth", "whoami", "-o", "json", env={"KUBECONFIG": k8s.user_kubeconfig("ann", "people")}).stdout
    check("people" in json.loads(told)["status"]["userInfo"]["groups"], told)


def test_an_image_of_an_oci_archive(k8s):
    with tempfile.TemporaryDirectory() as folder:
        docker, oci = os.path.join(folder, "docker.tar"), os.path.join(folder, "oci.tar")
        cluster.images.make_image(docker, {"docker.io/local/first:1": {
            "files": {"busybox": cluster.images.BUSYBOX}, "entrypoint": ["/busybox", "echo", "said"], "user": "65534"}})
        subprocess.run(["skopeo", "copy", "-q", "--insecure-policy", f"docker-archive:{docker}", f"oci-archive:{oci}:v1"],
                       check=True, timeout=60)
        k8s.load_image(oci, "docker.io/local/second:v1")
    pod = s_pod("said", "")
    pod["spec"]["containers"][0] = {"name": "main", "image": "docker.io/local/second:v1", "imagePullPolicy": "Never"}
    k8s.apply(pod)
    s_await_phase(k8s, "said", "Succeeded")
    check(k8s.kubectl("logs", "said").stdout == "said\n", "its log")


def test_pods_are_slowed_for_a_while(k8s):
    k8s.apply(s_pod("busy", "while :; do :; done"))
    s_await_phase(k8s, "busy", "Running")
    uid = k8s.get(f"{POD}/busy")["metadata"]["uid"]
    (group,) = (path for parent in guard.cgroup_parents() for path in glob.glob(f"{parent}/{k8s.world['mark']}/kubepods/*/pod{uid}")
                if os.path.exists(f"{path}/cpu.cfs_quota_us") or os.path.exists(f"{path}/cpu.max"))

    def held_back():
        with open(f"{group}/cpu.stat", encoding="ascii") as file:
            return int(dict(map(str.split, file))["nr_throttled"])
    check(held_back() == 0, "a pod without a limit has all that there is")
    with k8s.slowed():
        wait_for(lambda: held_back() > 2, "it to be held back")
    quota = next(path for name in ("cpu.max", "cpu.cfs_quota_us") if os.path.exists(path := f"{group}/{name}"))
    with open(quota, encoding="ascii") as file:
        check(file.read().split()[0] in ("max", "-1"), "no limit is left")
    k8s.kubectl("delete", "pod", "busy", "--now")


def test_extended_resources(k8s):
    k8s.set_capacity("nvidia.com/gpu", 4)
    check(k8s.allocatable()["nvidia.com/gpu"] == "4" and "cpu" in k8s.allocatable(), "what the node offers")


def test_parts_can_be_stopped(k8s):
    k8s.stop_part("etcd")
    check(k8s.kubectl("get", "pods", "--request-timeout=2s", check=False).returncode != 0, "an answer without etcd")
    k8s.start_part("etcd")
    wait_for(lambda: k8s.http(6443, "/readyz")[0] == 200, "the API server to be ready again")
    k8s.restart_part("kube-apiserver", signal.SIGKILL)
    check(k8s.get(f"{POD}/hello")["status"]["phase"] == "Succeeded", "the store is the same one")
    k8s.stop_part("kubelet")
    node = lambda: {item["type"]: item["status"] for item in
                    k8s.get("/api/v1/nodes/node-1")["status"]["conditions"]}["Ready"]
    wait_for(lambda: node() == "Unknown", "the node to be missed")
    k8s.start_part("kubelet")
    wait_for(lambda: node() == "True", "the node to be back")
    check(k8s.get(f"{POD}/web")["status"]["phase"] == "Running", "the pod outlived the kubelet")
    k8s.await_node()
    k8s.apply(s_pod("again", "echo again"))
    s_await_phase(k8s, "again", "Succeeded")


# --- clusters of their own

def test_two_side_by_side_and_what_they_count():
    with Cluster(audit=True) as one, Cluster() as two:
        for k8s, name in ((one, "first"), (two, "second")):
            k8s.kubectl("create", "configmap", name)
            check(k8s.find(f"/api/v1/namespaces/default/configmaps/{name}"), f"{name} is there")
        check(one.find("/api/v1/namespaces/default/configmaps/second") is None, "the other one's object")
        made = lambda: one.requests().get(("POST", "resourcequotas", "", "201"), 0)  # nobody else makes those
        wrote = lambda: [(event["verb"], event["objectRef"]["name"]) for event in one.audit(agent="kubectl", writes=True)]
        check(made() == 0, f"{made()} quotas made")
        one.kubectl("create", "quota", "counted")  # counted and noted a moment after it was answered
        wait_for(lambda: made() == 1, lambda: f"a quota, not {made()}")
        wait_for(lambda: wrote() == [("create", "first"), ("create", "counted")], lambda: f"what was written, not {wrote()}")
        code, text = one.http(6443, "/version")
        check(code == 200 and b"v1.33.13" in text, "its version")
        check(one.pid("etcd") != two.pid("etcd"), "two processes")
        other = Cluster.attach(one.directory)
        check(other.running("etcd") and "first" in other.kubectl("get", "configmap", "-o", "name").stdout, "attached")
        worlds = [(one.world, one.directory), (two.world, two.directory)]
    for world in worlds:
        check(not s_left_of(*world), f"left behind: {s_left_of(*world)}")


def s_annotate(pod, **plans):
    pod["metadata"]["annotations"] = {f"tutti-test/{name}": plan for name, plan in plans.items()}
    return pod


def test_a_fake_kubelet_moves_pods():
    with Cluster(fake_kubelet="node-1") as k8s:
        k8s.apply(s_pod("stays", ""), s_annotate(s_pod("ends", ""), ends="after=300ms"),
                  s_annotate(s_pod("fails", ""), ends="phase=Failed,code=3,reason=Evicted"),
                  s_annotate(s_pod("waits", ""), starts="reason=ImagePullBackOff"),
                  s_annotate(s_pod("again", "", restartPolicy="OnFailure"), ends="after=1h,code=1"),
                  s_annotate(s_pod("drains", "", terminationGracePeriodSeconds=3600), drains="after=1h"))
        status = lambda name: k8s.get(f"{POD}/{name}")["status"]
        for name, phase in (("stays", "Running"), ("ends", "Succeeded"), ("fails", "Failed"), ("again", "Running"),
                            ("drains", "Running")):
            wait_for(lambda: status(name).get("phase") == phase, f"{name} to be {phase}")
        ready = {item["type"]: item["status"] for item in status("stays")["conditions"]}
        check(ready["Ready"] == "True" and k8s.get(f"{POD}/stays")["spec"]["nodeName"] == "node-1", f"{ready}")
        check(len({status(name)["podIP"] for name in ("stays", "ends", "fails", "again")}) == 4, "addresses of their own")
        failed = status("fails")
        check(failed["containerStatuses"][0]["state"]["terminated"]["exitCode"] == 3 and failed["reason"] == "Evicted",
              f"{failed}")
        wait_for(lambda: [one["state"]["waiting"]["reason"] for one in status("waits").get("containerStatuses", [])]
                 == ["ImagePullBackOff"], "the reason that it waits for")
        k8s.kubectl("annotate", "--overwrite", "pod", "again", "tutti-test/ends=after=200ms,code=1")
        wait_for(lambda: status("again")["containerStatuses"][0]["restartCount"] > 0, "a restart")
        k8s.kubectl("delete", "pod", "drains", "stays", "--wait=false")
        check("deletionTimestamp" in k8s.get(f"{POD}/drains")["metadata"], "a deletion with grace")
        k8s.kubectl("annotate", "--overwrite", "pod", "drains", "tutti-test/drains=after=100ms")
        wait_for(lambda: not k8s.find(f"{POD}/drains") and not k8s.find(f"{POD}/stays"), "the deleted to be gone")
        wait_for(lambda: ["seen", "running", "gone"] == [item["event"] for item in k8s.trace()
                                                         if item["pod"] == "default/drains"], lambda: f"the trace: {k8s.trace()}")


def test_an_autoscaler_follows_a_fake_metrics_api():
    fast = ["--horizontal-pod-autoscaler-sync-period=500ms", "--horizontal-pod-autoscaler-initial-readiness-delay=0s",
            "--horizontal-pod-autoscaler-cpu-initialization-period=0s",
            "--horizontal-pod-autoscaler-downscale-stabilization=0s"]
    pod = s_pod("web", "")
    pod["spec"].pop("restartPolicy")
    pod["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "100m"}}
    deployment = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": {
        "selector": {"matchLabels": {"app": "web"}}, "template": {"metadata": {"labels": {"app": "web"}}, "spec": pod["spec"]}}}
    with Cluster(controllers=True, fake_kubelet=True, extra={"kube-controller-manager": fast}) as k8s, \
            k8s.fake_metrics() as metrics:
        replicas = lambda: k8s.get("/apis/apps/v1/namespaces/default/deployments/web")["spec"]["replicas"]
        k8s.apply(deployment)
        wait_for(lambda: "default/web" in " ".join(item["pod"] for item in k8s.trace() if item["event"] == "running"),
                 "its pod to run")
        k8s.apply({"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": {"name": "web"}, "spec": {
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}, "minReplicas": 1,
            "maxReplicas": 4, "metrics": [{"type": "Resource", "resource": {
                "name": "cpu", "target": {"type": "Utilization", "averageUtilization": 100}}}],
            "behavior": {"scaleDown": {"policies": [{"type": "Percent", "value": 100, "periodSeconds": 1}]}}}})
        metrics.cpu = 300
        wait_for(lambda: replicas() >= 3, "more replicas")
        metrics.cpu = 10
        wait_for(lambda: replicas() == 1, "fewer replicas")


OWNER = """import sys, time; sys.dont_write_bytecode = True; sys.path.insert(0, sys.argv[1]); import cluster
k8s = cluster.Cluster(full=True); k8s.start(); k8s.exec_in(["sleep", "1000"]); k8s.exec_in(["sleep", "1000"], env={"x": "y"})
k8s.kubectl("create", "-f", "-", input=sys.stdin.read()); print(k8s.directory, flush=True); time.sleep(1000)"""


def test_nothing_is_left_when_the_owner_is_killed():
    owner = subprocess.Popen([sys.executable, "-c", OWNER, os.path.dirname(cluster.__file__)], text=True,
                             stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    with owner:
        try:
            owner.stdin.write(json.dumps(s_pod("sleeps", "sleep 1000")))
            owner.stdin.close()
            directory = owner.stdout.readline().strip()
            check(directory, "the owner has a cluster")
            k8s = Cluster.attach(directory)
            s_await_phase(k8s, "sleeps", "Running")
            check(len(s_left_of(k8s.world, directory)) > 5, "a cluster that lives is seen")
        finally:
            owner.kill()
    wait_for(lambda: not s_left_of(k8s.world, directory), "nothing to be left")


def test_a_guard_that_is_killed_takes_its_world_along():
    with tempfile.TemporaryDirectory() as folder:
        k8s = Cluster(os.path.join(folder, "k8s"))
        k8s.start()
        world = k8s.world
        os.kill(world["guard"], signal.SIGKILL)
        wait_for(lambda: guard.start_time(world["init"]) is None, "its world to end")
        k8s.stop()
        Cluster(os.path.join(folder, "next")).start().stop()  # sweeps
        check(not s_left_of(world, k8s.directory), f"left behind: {s_left_of(world, k8s.directory)}")


def test_a_start_that_fails_leaves_nothing_and_tells():
    k8s = Cluster(extra={"etcd": ["--no-such-flag"]})
    try:
        k8s.start(deadline=5)
        check(False, "it started")
    except cluster.Failed:
        pass
    check(not os.path.exists(k8s.directory), "its folder is left")


def test_people_start_and_end_one_by_hand():
    with tempfile.TemporaryDirectory() as folder:
        directory = os.path.join(folder, "k8s")
        tool = os.path.join(os.path.dirname(cluster.__file__), "cluster.py")

        def run(*args):
            return subprocess.run([sys.executable, "-B", tool, *args], capture_output=True, text=True, timeout=120, check=False)
        done = run("up", "--api-only", directory)
        try:
            check(done.returncode == 0, done.stderr)
            check("kube-apiserver           running" in run("status", directory).stdout, "its status")
            check("kube-system" in run("kubectl", directory, "--", "get", "ns").stdout, "its namespaces")
            check("kube-system" in run("shell", directory, "sh", "-c", "kubectl get ns").stdout, "the same by its shell")
            world = Cluster.attach(directory).world
        finally:
            done = run("down", directory)
        check(done.returncode == 0 and not s_left_of(world, directory), f"{done.stderr} {s_left_of(world, directory)}")
        check(run("status", directory).returncode == 1, "the status of none")


cluster.main(test_a_pod_succeeds_and_its_log_is_read, test_names_and_service_addresses,
             test_pods_reach_the_api_as_their_account, test_an_image_of_an_oci_archive, test_pods_are_slowed_for_a_while,
             test_extended_resources,
             test_parts_can_be_stopped, test_two_side_by_side_and_what_they_count, test_a_fake_kubelet_moves_pods,
             test_an_autoscaler_follows_a_fake_metrics_api,
             test_nothing_is_left_when_the_owner_is_killed, test_a_guard_that_is_killed_takes_its_world_along,
             test_a_start_that_fails_leaves_nothing_and_tells,
             test_people_start_and_end_one_by_hand, full=True)
