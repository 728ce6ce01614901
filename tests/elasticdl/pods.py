#!/usr/bin/env python3
"""tutti master --on kubernetes against an API server of this test's, which answers late, not at all, or no; its pods are agents on addresses
of this machine. What a real one says k8s.test_elasticdl hears."""
import base64
import contextlib
import functools
import http.server
import json
import os
import pathlib
import re
import signal
import subprocess
import threading
import time

from rig import DEADLINE, TUTTI, Server, main, wait

NET = f"127.{100 + os.getpid() % 100}.{os.getpid() // 100 % 250}"  # beside other tests
PROGRAM = """#!/bin/sh
echo begun >>../begun
until [ -e ../go ]; do sleep 0.02; done
"""


class Cluster:
    """Objects in lists. fails: {"POST statefulsets": [codes]}: so many requests are answered so; "lost" does what is asked first."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.secret, self.sets, self.services, self.groups, self.pods, self.fails, self.asked = None, {}, {}, {}, {}, {}, []
        self.workloads, self.flavors = {}, {}
        self.number = 0
        self.waits = None  # a status for all pods instead of theirs
        self.stays = None  # a set whose pods do not end
        self.masters = 0
        self.lock = threading.Lock()
        cluster = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *args):
                pass

            def answer(self):
                body = json.loads(self.rfile.read(int(self.headers.get("Content-Length", 0))) or "null")
                with cluster.lock:
                    known = self.headers["Authorization"] == f"Bearer t{cluster.masters}"
                    code, said = cluster.answer(self.command, self.path.split("?")[0], body) if known else (401, {"message": "another master is there"})
                text = json.dumps(said).encode()
                with contextlib.suppress(BrokenPipeError):  # who asked was killed
                    self.send_response(code)
                    self.send_header("Content-Type", "application/json")
                    self.send_header("Content-Length", str(len(text)))
                    self.end_headers()
                    self.wfile.write(text)
                    self.wfile.flush()

            do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = answer

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.config = self.folder / "kubeconfig"
        self.expect_master()

    def expect_master(self):
        """It has a token of its own: what the one before it has asked for, and was killed, is not done any more."""
        with self.lock:
            self.masters += 1
        self.config.write_text(json.dumps({
            "apiVersion": "v1", "kind": "Config", "current-context": "c", "users": [{"name": "u", "user": {"token": f"t{self.masters}"}}],
            "clusters": [{"name": "k", "cluster": {"server": f"http://127.0.0.1:{self.server.server_port}"}}],
            "contexts": [{"name": "c", "context": {"cluster": "k", "user": "u", "namespace": "lab"}}]}))

    def answer(self, method, path, body):
        kind = path.split("/lab/" if "/lab/" in path else "/v1beta2/")[1].split("/")[0]
        self.asked.append(f"{method} {kind}")
        fails = self.fails.get(f"{method} {kind}", [])
        code = fails.pop(0) if fails else 0
        if code not in (0, "lost", "deaf"):
            return code, {"message": "so says the test"}
        method = "GET" if code == "deaf" else method  # all is well, and nothing is done
        parts = ["status"] if path.endswith("/status") else ["spec"]
        said = self.do(method, kind, path.removesuffix("/status").split("/")[-1], body, parts)
        return (503, {"message": "lost"}) if code == "lost" else said

    def do(self, method, kind, name, body, parts):
        if kind == "secrets":
            return self.do_secret(method, body)
        if kind == "events":
            return 200, {"items": []}
        if kind == "pods":
            return 200, {"items": [{**pod["object"], "status": self.waits or pod["object"]["status"]} for pod in self.pods.values()]}
        if method == "GET" and name != kind:
            one = {"statefulsets": self.sets, "workloads": self.workloads, "resourceflavors": self.flavors}[kind].get(name)
            return (200, one) if one else (404, {"message": f"{name} not found"})
        return self.do_object(method, {"statefulsets": self.sets, "podgroups": self.groups, "workloads": self.workloads}.get(kind, self.services), name, body, parts)

    def do_secret(self, method, body):
        if method == "POST":
            self.secret = body["stringData"]["token"]
        if not self.secret:
            return 404, {"message": "none"}
        return 200, {"data": {"token": base64.b64encode(self.secret.encode()).decode()}}

    def do_object(self, method, objects, name, body, parts):
        if method == "GET":
            return 200, {"items": [one for one in objects.values() if objects is not self.groups or one["metadata"].get("labels")]}
        if method == "POST":
            name = body["metadata"]["name"]
            if name in objects:
                return 409, {"message": f"{name} already exists", "reason": "AlreadyExists"}
            self.number += 1
            body["metadata"] |= {"creationTimestamp": s_moment(0), "uid": f"{self.number:05}-uid", "resourceVersion": str(self.number)}
            objects[name] = body
        elif name not in objects:
            return 404, {"message": f"{name} not found"}
        if objects is self.sets and method == "PATCH":
            s_patch(objects[name], body)
        if objects is self.workloads and method == "PUT":
            if body["metadata"]["resourceVersion"] != objects[name]["metadata"]["resourceVersion"]:
                return 409, {"message": f"{name} has been modified", "reason": "Conflict"}
            self.change(objects[name], **{part: body[part] for part in parts})
        found = objects.pop(name) if method == "DELETE" else objects[name]
        if objects is self.sets:
            for other in {name, *self.sets}:
                self.follow(other)
        return 200, found

    def change(self, workload, **parts):
        self.number += 1
        workload["metadata"]["resourceVersion"] = str(self.number)
        workload.update(parts)

    def placed(self, name):
        """As a gang scheduler has it: a set's pods have no place before there are enough of their group."""
        group = s_group_of(self.sets[name])
        if not group:
            return True
        sets = [one for one in self.sets.values() if s_group_of(one) == group]
        return group in self.groups and sum(one["spec"]["replicas"] for one in sets) >= self.groups[group]["spec"]["minMember"]

    def follow(self, name):
        """As a StatefulSet's controller and a kubelet would."""
        wanted = self.sets[name]["spec"]["replicas"] if name in self.sets else 0
        for i in range(wanted if wanted and self.placed(name) else 0):
            if f"{name}-{i}" not in self.pods:
                self.begin(f"{name}-{i}")
        for pod in [pod for pod in self.pods if name != self.stays and re.fullmatch(f"{name}-\\d+", pod) and int(pod.split("-")[-1]) >= wanted]:
            self.end(pod)

    def begin(self, name):
        self.number += 1
        ip = f"{NET}.{self.number}"
        folder = self.folder / name
        folder.mkdir(exist_ok=True)
        (folder / "token").write_text(self.secret)
        (folder / "token").chmod(0o600)
        (folder / "agent.json").unlink(missing_ok=True)
        process = subprocess.Popen([TUTTI, "pod-agent", "--listen", f"{ip}:7896", "--token", folder / "token", "--dir", folder, "--program",
                                    self.folder / "program", "--announce", folder], stderr=subprocess.DEVNULL)
        wait("an agent to serve", lambda: (folder / "agent.json").exists())
        self.pods[name] = {"process": process, "object": {
            "metadata": {"name": name, "uid": str(self.number)},
            "status": {"podIP": ip, "conditions": [{"type": "Ready", "status": "True"}]}}}

    def end(self, name):
        process = self.pods.pop(name)["process"]
        process.terminate()
        process.wait(DEADLINE)

    def stop(self):
        self.server.shutdown()
        with self.lock:
            self.masters = None  # who is still connected is not answered: it would begin pods after these
            for name in list(self.pods):
                self.end(name)


def s_patch(into, patch):
    """As application/merge-patch+json, and of a list as application/json-patch+json."""
    for step in patch if isinstance(patch, list) else []:
        *way, last = step["path"].strip("/").split("/")
        functools.reduce(dict.__getitem__, way, into)[last] = step["value"]
    for key, value in patch.items() if isinstance(patch, dict) else []:
        if isinstance(value, dict) and isinstance(into.get(key), dict):
            s_patch(into[key], value)
        else:
            into[key] = value


def s_group_of(a_set):
    """The PodGroup of its pods, by either scheduler's way to say it."""
    meta = a_set.get("spec", {}).get("template", {}).get("metadata", {})
    return meta.get("annotations", {}).get("scheduling.k8s.io/group-name") or meta.get("labels", {}).get("scheduling.x-k8s.io/pod-group")


def on_cluster(test):
    def run(folder):
        (folder / "program").write_text(PROGRAM)
        (folder / "program").chmod(0o755)
        cluster = Cluster(folder)
        try:
            test(folder, cluster)
        finally:
            cluster.stop()
    run.__name__ = test.__name__
    return run


def s_moment(seconds):
    """So long from now, as an API server writes it."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + seconds))


def master(folder, cluster, *options):
    cluster.expect_master()
    return Server(folder, "master", "--on", "kubernetes", "--kubeconfig", cluster.config, "--agent-image", "tutti:1", *options)


def create(server, name, workers=1, more=""):
    assert server.get(f"/create?strategy=AllReduce&n_worker={workers}&n_ps=0&img=i:1&name={name}{more}") == (200, "OK")


def await_state(server, name, state):
    wait(f"{name} to be {state}", lambda: server.json(f"/status?name={name}")["state"] == state)
    return server.json(f"/status?name={name}")


def begun(folder):
    return (folder / "begun").read_text().split() if (folder / "begun").exists() else []


@on_cluster
def answers_are_lost(folder, cluster):
    """What was asked for once more was there already; a server that is busy is asked again; pods that cannot be listed go on."""
    cluster.fails = {"POST statefulsets": [429, "lost"], "POST services": [500, "lost"], "GET pods": [503, 500], "PATCH statefulsets": [503, "lost"],
                     "DELETE services": ["lost"]}
    server = master(folder, cluster)
    create(server, "job", 2)
    await_state(server, "job", "running")
    assert [cluster.sets["job-worker-0"]["spec"][key] for key in ("replicas", "serviceName")] == [2, "job-worker-0"], cluster.sets
    (folder / "go").touch()
    await_state(server, "job", "succeeded")
    wait("the Service to go", lambda: not cluster.services)
    assert begun(folder) == ["begun"] * 2 and not cluster.pods, (begun(folder), cluster.pods)
    assert not any(cluster.fails.values()), cluster.fails
    assert server.end() == 0


@on_cluster
def parameter_servers_first(folder, cluster):
    """There is no set of workers before the parameter servers are ready; what stands in the way is said. All end with the workers."""
    cluster.waits = {"containerStatuses": [{"name": "agent", "state": {"waiting": {"reason": "ErrImagePull", "message": "no such image"}}}]}
    server = master(folder, cluster)
    assert server.get("/create?strategy=ParameterServer&n_worker=1&n_ps=1&img=i:1&name=job") == (200, "OK")
    wait("the reason", lambda: server.json("/status?name=job")["members"][0]["reason"] == "ImagePullFailed: no such image")
    assert list(cluster.sets) == ["job-ps-0"], cluster.sets
    cluster.waits = None
    told = await_state(server, "job", "running")
    assert list(cluster.sets) == ["job-ps-0", "job-worker-0"], cluster.sets
    assert [member["reason"] for member in told["members"]] == [None, None], told
    assert [member["address"] for member in told["members"]] == [f"job-{kind}-0-0.job-{kind}-0.lab.svc:1234" for kind in ("ps", "worker")], told
    (folder / "go").touch()
    await_state(server, "job", "succeeded")
    assert not cluster.pods, cluster.pods
    assert server.end() == 0


@on_cluster
def workers_last(folder, cluster):
    """The set of the parameter servers has gone before the workers' pods have: each is known by its own place."""
    server = master(folder, cluster)
    assert server.get("/create?strategy=ParameterServer&n_worker=2&n_ps=2&img=i:1&name=job") == (200, "OK")
    await_state(server, "job", "running")
    cluster.stays = "job-worker-0"
    assert server.get("/delete?name=job") == (200, "OK")
    wait("the parameter servers' set to go", lambda: list(cluster.sets) == ["job-worker-0"])
    assert server.json("/status?name=job")["state"] == "ending"
    with cluster.lock:
        cluster.stays = None
        cluster.follow("job-worker-0")
    await_state(server, "job", "deleted")
    assert server.end() == 0


@on_cluster
def somebody_elses(folder, cluster):
    """An object of that name that no master asked for is left alone, and so is one that cannot be read."""
    theirs = {"metadata": {"name": "job-worker-0"}, "spec": {"replicas": 0}}
    odd = {"metadata": {"name": "odd", "labels": {"tutti-elasticdl": "many"}}, "spec": {"replicas": 0}}
    cluster.sets = {"job-worker-0": theirs, "odd": odd}
    server = master(folder, cluster)
    assert "StatefulSet odd: its labels are none of a task's; it is left alone" in server.said(), server.said()
    create(server, "job")
    told = await_state(server, "job", "failed")
    assert told["reason"] == "worker-0: the API server refuses StatefulSet job-worker-0: job-worker-0 already exists", told
    assert server.get("/delete?name=job") == (200, "OK")
    cluster.fails = {"POST statefulsets": [403]}
    refused = {"metadata": {"name": "job-worker-1"}, "spec": {"replicas": 0}}
    cluster.sets["job-worker-1"] = refused
    create(server, "job")
    told = await_state(server, "job", "failed")
    assert told["reason"] == "worker-0: the API server refuses StatefulSet job-worker-1: so says the test", told
    cluster.fails = {"POST statefulsets": [503] * 1000}
    cluster.services["gone-worker-2"] = theirs_service = {"metadata": {"name": "gone-worker-2"}}
    create(server, "gone")
    wait("its set to be asked for", lambda: len(cluster.fails["POST statefulsets"]) < 1000)
    assert server.get("/delete?name=gone") == (200, "OK")
    await_state(server, "gone", "deleted")
    wait("its set to be deleted", lambda: "DELETE statefulsets" in cluster.asked)
    assert server.end() == 0
    assert cluster.sets == {"job-worker-0": theirs, "odd": odd, "job-worker-1": refused}, cluster.sets
    assert cluster.services == {"gone-worker-2": theirs_service} and "DELETE services" not in cluster.asked, cluster.asked
    assert refused == {"metadata": {"name": "job-worker-1"}, "spec": {"replicas": 0}}, refused
    assert theirs["spec"] == {"replicas": 0} and "annotations" not in theirs["metadata"], theirs


@on_cluster
def lost(folder, cluster):
    """A pod that is another one now, and one whose agent was started again: neither has its program."""
    server = master(folder, cluster)
    for change in (lambda pod: pod["metadata"].update(uid="another"),
                   lambda pod: pod["status"].update(containerStatuses=[{"name": "agent", "restartCount": 1}]),
                   lambda pod: pod["metadata"].update(deletionTimestamp="2026-01-01T00:00:00Z")):
        create(server, "job")
        await_state(server, "job", "running")
        with cluster.lock:
            for pod in cluster.pods.values():
                change(pod["object"])
        told = await_state(server, "job", "failed")
        assert re.match("worker-0: its (pod was deleted|agent has ended and was started anew)", told["reason"]), told
        wait("the pod to be ended", lambda: not cluster.pods)
    assert server.end() == 0


@on_cluster
def another_master(folder, cluster):
    """Killed before its task is anywhere, while it runs and while it ends: the next one goes on, and an end that was half said is said whole."""
    cluster.fails = {"POST statefulsets": [503] * 1000}
    server = master(folder, cluster)
    create(server, "job", 2)
    wait("a first try", lambda: "POST statefulsets" in cluster.asked)
    assert server.end(signal.SIGKILL) != 0
    server = master(folder, cluster)
    cluster.fails = {}
    assert server.json("/list") == [], "what no API server ever had is gone with its master"
    create(server, "job", 2)
    await_state(server, "job", "running")
    assert server.end(signal.SIGTERM) == 0
    assert len(cluster.pods) == 2, "a master that is asked to end leaves its tasks alone"
    server = master(folder, cluster)
    assert await_state(server, "job", "running")["id"] == 0
    cluster.fails = {"PATCH statefulsets": [503] * 1000}
    (folder / "go").touch()
    await_state(server, "job", "ending")
    assert server.end(signal.SIGKILL) != 0
    server = master(folder, cluster)
    cluster.fails = {}
    await_state(server, "job", "succeeded")
    assert begun(folder) == ["begun"] * 2, begun(folder)
    assert server.end() == 0
    cluster.asked = []
    server = master(folder, cluster)
    told = await_state(server, "job", "succeeded")
    assert "POST services" not in cluster.asked, "a task that has ended gets no Service"
    assert [member["exit_code"] for member in told["members"]] == [0, 0], told
    assert server.get("/delete?id=0") == (200, "OK")
    wait("its set to go", lambda: not cluster.sets)
    create(server, "next")
    assert server.json("/status?name=next")["id"] == 1, "a number is not used twice while its master lives"
    assert server.end() == 0


TEMPLATE = """apiVersion: v1
kind: PodTemplate
template:
  spec:
    nodeSelector: {disk: fast}
    containers: [{name: agent, resources: {limits: {example.com/card: 1}}}]
"""


@on_cluster
def late_for_another_master(folder, cluster):
    """A deadline counts from when the task was asked for, whoever is the master by then."""
    server = master(folder, cluster)
    create(server, "early", more="&deadline_s=7200")
    create(server, "late", more="&deadline_s=3600")
    for name in ("early", "late"):
        await_state(server, name, "running")
    assert server.end(signal.SIGKILL) != 0
    for made in cluster.sets.values():
        made["metadata"]["creationTimestamp"] = s_moment(-5400)
    server = master(folder, cluster)
    told = await_state(server, "late", "failed")
    assert told["reason"] == "it has not ended 3600 s after it was asked for, its deadline", told
    await_state(server, "early", "running")
    assert server.end() == 0


def s_together(folder, cluster, gang, scheduler):
    """All members are asked for at once, since none is placed before; their group comes first, and goes when they have gone."""
    cluster.fails = {"POST podgroups": [503, "lost"], "DELETE podgroups": [503, "lost"]}
    server = master(folder, cluster, "--gang", gang)
    assert server.get("/create?strategy=ParameterServer&n_worker=2&n_ps=1&img=i:1&name=job") == (200, "OK")
    await_state(server, "job", "running")
    (group, spec), = ((name, one["spec"]) for name, one in cluster.groups.items())
    assert group == "job-0" and spec == {"minMember": 3}, cluster.groups
    assert cluster.groups[group]["metadata"]["labels"]["tutti-elasticdl"] == "0", cluster.groups
    for one in cluster.sets.values():
        assert s_group_of(one) == group and one["spec"]["template"]["spec"]["schedulerName"] == scheduler, one
    assert cluster.asked.index("POST podgroups") < cluster.asked.index("POST statefulsets") and not any(cluster.fails["POST podgroups"]), cluster.asked
    (folder / "go").touch()
    await_state(server, "job", "succeeded")
    wait("the group to go", lambda: not cluster.groups and not any(cluster.fails.values()))
    assert cluster.asked.index("DELETE podgroups") > max(i for i, asked in enumerate(cluster.asked) if asked == "PATCH statefulsets"), cluster.asked
    assert server.get("/delete?name=job") == (200, "OK")
    wait("its sets to go", lambda: not cluster.sets)
    assert server.end() == 0


@on_cluster
def together_by_volcano(folder, cluster):
    s_together(folder, cluster, "volcano", "volcano")


@on_cluster
def together_by_scheduler_plugins(folder, cluster):
    s_together(folder, cluster, "scheduler-plugins", "scheduler-plugins-scheduler")


@on_cluster
def somebody_elses_group(folder, cluster):
    """A PodGroup of that name that no master asked for is left alone, and nothing is made beside it; nor is a set touched that was never asked for."""
    theirs, late = ({"metadata": {"name": name}, "spec": {"minMember": 9}} for name in ("job-0", "late-1"))
    theirs_set = {"metadata": {"name": "late-worker-1"}, "spec": {"replicas": 0}}
    cluster.groups, cluster.sets = {"job-0": theirs}, {"late-worker-1": theirs_set}
    server = master(folder, cluster, "--gang", "volcano")
    create(server, "job")
    told = await_state(server, "job", "failed")
    assert told["reason"] == "worker-0: the API server refuses PodGroup job-0: job-0 already exists", told
    cluster.groups["late-1"] = late
    cluster.fails = {"POST podgroups": [403]}
    create(server, "late")
    told = await_state(server, "late", "failed")
    assert told["reason"] == "worker-0: the API server refuses PodGroup late-1: so says the test", told
    cluster.fails = {"POST podgroups": [503] * 1000}
    cluster.sets["gone-worker-2"] = dict(theirs_set)
    create(server, "gone")
    wait("it to be asked for", lambda: len(cluster.fails["POST podgroups"]) < 1000)
    assert server.get("/delete?name=gone") == (200, "OK")
    await_state(server, "gone", "deleted")
    assert server.end() == 0
    assert "POST statefulsets" not in cluster.asked and not cluster.services, cluster.asked
    assert cluster.groups == {"job-0": theirs, "late-1": late}, cluster.groups
    assert cluster.sets == {"late-worker-1": theirs_set, "gone-worker-2": theirs_set} and "annotations" not in theirs_set["metadata"], cluster.sets


@on_cluster
def a_group_for_another_master(folder, cluster):
    """A group whose task is nowhere goes when a master comes; one whose task goes on stays, and goes with it, whatever that master makes groups by."""
    cluster.fails = {"POST statefulsets": [503] * 1000}
    server = master(folder, cluster, "--gang", "volcano")
    create(server, "job", 2)
    wait("the group", lambda: cluster.groups and "POST statefulsets" in cluster.asked)
    assert server.end(signal.SIGKILL) != 0
    server = master(folder, cluster, "--gang", "volcano")
    cluster.fails = {}
    assert not cluster.groups and "PodGroup job-0 is of no task that is there: it is deleted" in server.said(), (cluster.groups, server.said())
    create(server, "job", 2)
    await_state(server, "job", "running")
    assert server.end(signal.SIGKILL) != 0
    server = master(folder, cluster, "--gang", "volcano")
    await_state(server, "job", "running")
    assert list(cluster.groups) == ["job-0"], cluster.groups
    assert server.end(signal.SIGKILL) != 0
    server = master(folder, cluster)
    cluster.fails = {"DELETE podgroups": [403]}
    (folder / "go").touch()
    await_state(server, "job", "succeeded")
    wait("a word", lambda: "PodGroup job-0 stays, as the API server refuses to delete it: so says the test" in server.said())
    assert server.end() == 0
    cluster.asked = []
    server = master(folder, cluster)
    wait("the next master to delete it", lambda: not cluster.groups)
    create(server, "alone")
    await_state(server, "alone", "succeeded")
    assert "POST podgroups" not in cluster.asked and not s_group_of(cluster.sets["alone-worker-1"]), cluster.asked
    assert server.end() == 0


@on_cluster
def no_groups(folder, cluster):
    """A cluster without them is said before anything is made; and what is no scheduler."""
    cluster.fails = {"GET podgroups": [404]}
    refused = [TUTTI, "master", "--run-dir", folder / "refused"]
    kube = ["--on", "kubernetes", "--kubeconfig", cluster.config]
    for more, code, words in (
            ([*kube, "--gang", "volcano"], 69, "this cluster has no PodGroups (scheduling.volcano.sh/v1beta1): --gang volcano wants that scheduler"),
            ([*kube, "--gang", "slurm"], 64, "'slurm' is no gang scheduler; there are: volcano, scheduler-plugins"),
            (["--gang", "volcano"], 64, "--gang is for a master with --on kubernetes")):
        done = subprocess.run([*refused, *more], capture_output=True, text=True, timeout=DEADLINE, check=False)
        assert done.returncode == code and words in done.stderr, done
    assert not (folder / "refused").exists()


@on_cluster
def a_template(folder, cluster):
    """What else pods get; a file that is wrong is said with its line before anything is made, and is for pods alone."""
    file = folder / "pods.yaml"
    file.write_text(TEMPLATE)
    server = master(folder, cluster, "--template", file)
    create(server, "job")
    await_state(server, "job", "running")
    spec = cluster.sets["job-worker-0"]["spec"]["template"]["spec"]
    assert spec["nodeSelector"] == {"disk": "fast"} and spec["containers"][0]["resources"] == {"limits": {"example.com/card": 1}}, spec
    (folder / "go").touch()
    await_state(server, "job", "succeeded")
    assert server.end() == 0
    file.write_text(TEMPLATE.replace("limits", "limit"))
    refused = [TUTTI, "master", "--kubeconfig", cluster.config, "--template", file, "--run-dir", folder / "refused"]
    for on, code, words in (("kubernetes", 78, f"{file}:6: template.spec.containers[0].resources.limit: ResourceRequirements has no field 'limit'"),
                            ("here", 64, "--kubeconfig is for a master with --on kubernetes")):
        done = subprocess.run([*refused, "--on", on], capture_output=True, text=True, timeout=DEADLINE, check=False)
        assert done.returncode == code and words in done.stderr, done
    done = subprocess.run([TUTTI, "master", "--template", file], capture_output=True, text=True, timeout=DEADLINE, check=False)
    assert done.returncode == 64 and "--template is for a master with --on kubernetes" in done.stderr, done
    assert not (folder / "refused").exists()


if __name__ == "__main__":
    main([answers_are_lost, parameter_servers_first, workers_last, somebody_elses, lost, another_master, late_for_another_master, together_by_volcano,
          together_by_scheduler_plugins, somebody_elses_group, a_group_for_another_master, no_groups, a_template])
