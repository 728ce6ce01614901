"""speed - how fast, how small and how quiet `tutti operator` is: what test_speed.py, ./dev soak and ./dev bench k8s measure.

Each function brings a cluster of its own (API server, etcd, a fake kubelet) and returns a dict of numbers. Times are those
of this machine's clock: a create begins when its request is sent, a pod is there when another client's watch shows it.
"""
import base64
import collections
import concurrent.futures
import contextlib
import json
import math
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
import uuid

sys.dont_write_bytecode = True
import cluster  # noqa: E402
import guard  # noqa: E402
from cluster import check, wait_for  # noqa: E402

SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
JOBS = "/apis/diengine.opendilab.org/v1alpha1/namespaces/default/dijobs"
OURS = ("pods", "services", "dijobs", "events", "secrets")  # what the operator could write, the lease left out
CLIENTS = 16
LONG = 1800.0
COLLECTORS, LEARNERS = 7, 2
PODS_A_JOB = 1 + COLLECTORS + LEARNERS
TICK = os.sysconf("SC_CLK_TCK")


def percentile(values, part):
    """The smallest of them that is not below that part of all."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(len(ordered) * part) - 1)]


def cpu_s(pid):
    """Processor time of a process so far: what a time on a machine with others can be told by."""
    with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
        fields = file.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICK


def job(name, replicas=False):
    """A job with a coordinator alone, or with declared collectors and learners."""
    def role(what, **more):
        return {"template": {"spec": {"containers": [
            {"name": "di-container", "image": "diorchestrator/job:v0.2.2", "command": ["/bin/sh", "-c", f"sleep 1d; # {what}"],
             "env": [{"name": "PYTHONUNBUFFERED", "value": "1"}],
             "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}}}]}}, **more}

    roles = {"coordinator": role("coordinator")}
    if replicas:
        roles |= {"collector": role("collector", replicas=COLLECTORS), "learner": role("learner", replicas=LEARNERS)}
    return {"apiVersion": "diengine.opendilab.org/v1alpha1", "kind": "DIJob", "metadata": {"name": name},
            "spec": {"cleanPodPolicy": "Running", **roles}}


class Operator:
    """`tutti operator` in a cluster that knows DIJobs."""

    def __init__(self, k8s, tutti, *args):
        self.k8s = k8s
        self.log = tempfile.NamedTemporaryFile("r", prefix="tt-operator-", suffix=".log")
        self.started = time.time()
        with open(self.log.name, "wb") as file:
            self.process = k8s.exec_in(
                [tutti, "operator", f"--server-bind-address={guard.ADDRESS}:0",
                 f"--health-probe-bind-address={guard.ADDRESS}:0", "--leader-elect", "--lease-namespace=default", *args],
                stderr=file, stdout=file, stdin=subprocess.DEVNULL)
        self.probes = int(self.said(r"probes at port (\d+)")[1])

    def text(self):
        with open(self.log.name, encoding="utf-8", errors="replace") as file:
            return file.read()

    def said(self, pattern):
        def look():
            check(self.process.poll() is None, f"the operator ended: {self.text()[-3000:]}")
            return re.search(pattern, self.text())
        return wait_for(look, f"the operator to say '{pattern}'", pause=0.002)

    def leads(self):
        """Until it does; how long after its start it held the lease, and how long it took to be synced."""
        self.said("this replica looks after the jobs now")
        held = time.time() - self.started
        return held, int(self.said(r"synced: .* (\d+) ms after the start")[1]) / 1000

    def metrics(self):
        code, text = self.k8s.http(self.probes, "/metrics")
        check(code == 200, f"/metrics says {code}")
        return {name: float(value) for name, value in re.findall(r"^tutti_operator_(\S+) (\S+)$", text.decode(), re.M)}

    def idle(self):
        def quiet():
            seen = self.metrics()
            return seen["queue_depth"] == 0 and seen["requests_pending"] == 0
        wait_for(quiet, "an idle operator", LONG, pause=0.2)

    def caught_up(self):
        """Until it has nothing to do, and has been told all that has happened to pods so far: a watch tells of it in order,
        and of one more pod last, which is no job's."""
        pods, known = "/api/v1/namespaces/default/pods", self.metrics()["pods"]
        labels = {"controller-name": "di-operator", "dijob-name": "nobody", "replica-type": "collector"}
        self.k8s.api("POST", pods, {"metadata": {"name": "last", "labels": labels, "annotations": {"tutti-test/starts": "never"}},
                                    "spec": {"containers": [{"name": "x", "image": "x"}]}})
        wait_for(lambda: self.metrics()["pods"] == known + 1, "the operator to know of another pod", LONG)
        self.k8s.api("DELETE", f"{pods}/last", {"gracePeriodSeconds": 0})
        wait_for(lambda: self.metrics()["pods"] == known, "the operator to know that it is gone", LONG)
        self.idle()

    def cpu_s(self):
        return cpu_s(self.process.pid)

    def memory_mib(self):
        """Resident now, and at most so far."""
        with open(f"/proc/{self.process.pid}/status", encoding="utf-8") as file:
            found = dict(re.findall(r"^(VmRSS|VmHWM):\s+(\d+) kB$", file.read(), re.M))
        return int(found["VmRSS"]) / 1024, int(found["VmHWM"]) / 1024

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.terminate()
            self.process.wait(60)
        self.log.close()


class Clients:
    """Threads that each keep one connection to the API server; create() returns when it was sent and answered."""

    def __init__(self, k8s, count=CLIENTS):
        k8s.get("/version")  # makes the TLS context
        self.k8s, self.local = k8s, threading.local()
        self.pool = concurrent.futures.ThreadPoolExecutor(count)

    def create(self, body):
        if not hasattr(self.local, "connection"):
            self.local.connection = cluster.s_Connection(self.k8s.world["init"], 6443, self.k8s.context, 60)
        sent = time.time()
        self.local.connection.request("POST", JOBS, json.dumps(body), {**self.k8s.who, "Content-Type": "application/json"})
        answer = self.local.connection.getresponse()
        text = answer.read()
        check(answer.status == 201, f"a job was answered with {answer.status}: {text[:500]}")
        return body["metadata"]["name"], (sent, time.time())

    def create_all(self, bodies, per_s=None):
        """{name: (sent, answered)}; so many a second, or as fast as they are taken."""
        begun, futures = time.monotonic(), []
        for i, body in enumerate(bodies):
            if per_s:
                time.sleep(max(0.0, begun + i / per_s - time.monotonic()))
            futures.append(self.pool.submit(self.create, body))
        return dict(future.result() for future in futures)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.pool.shutdown(cancel_futures=True)


@contextlib.contextmanager
def cluster_with_jobs():
    """A cluster whose pods run without a node, and which knows DIJobs."""
    with cluster.Cluster(fake_kubelet=True) as k8s:
        k8s.kubectl("apply", "-k", f"{SOURCE}/k8s/crd")
        wait_for(lambda: k8s.find(JOBS), "the API server to serve DIJobs")

        def at_once():
            begun = time.monotonic()
            k8s.api("POST", JOBS + "?dryRun=All", job("nobody"))
            return time.monotonic() - begun < 1
        wait_for(at_once, "creates of DIJobs to be no longer held back")  # an API server sleeps 2 s in those of a new CRD
        yield k8s


def coordinators(k8s, count):
    """{job: when its coordinator pod was seen}, once there are so many."""
    def look():
        seen = {line["pod"].partition("/")[2].removesuffix("-coordinator"): line["t"] for line in k8s.trace()
                if line["event"] == "seen" and line["pod"].endswith("-coordinator")}
        return seen if len(seen) >= count else None
    return wait_for(look, f"{count} coordinator pods", LONG, pause=0.25)


def phases(k8s):
    """How many jobs are in which phase."""
    return dict(collections.Counter(item.get("status", {}).get("phase", "") for item in k8s.get(JOBS)["items"]))


def await_running(k8s, operator, jobs, pods):
    """Until all run, and nobody has anything left to do."""
    wait_for(lambda: sum(line["event"] == "running" for line in k8s.trace()) >= pods, f"{pods} pods to run", LONG, 0.5)
    wait_for(lambda: phases(k8s) == {"Running": jobs}, f"{jobs} jobs to run", LONG, 0.5)
    operator.idle()


def costs(operator):
    rss, peak = operator.memory_mib()
    return {"rss_mib": rss, "peak_mib": peak, "cpu_s": operator.cpu_s(), "load": os.getloadavg()[0]}


# --- many jobs at once: copies of one, put where the API server keeps its objects

KEPT = (("pods", "/api/v1/namespaces/default/pods", "/registry/pods/default/", "v1", "Pod"),
        ("services", "/api/v1/namespaces/default/services", "/registry/services/specs/default/", "v1", "Service"),
        ("dijobs", JOBS, "/registry/diengine.opendilab.org/dijobs/default/", "diengine.opendilab.org/v1alpha1", "DIJob"))


def copies(k8s, operator, name, count):
    """As if so many jobs like that one had been made: they and all that is theirs in etcd, found by everybody's watch.
    On a machine with others this takes a minute where making them takes an hour. The API server finds them as JSON, which it
    reads more slowly than its own form."""
    texts = []
    etcd = cluster.s_Connection(k8s.world["init"], 2379, None, 60)
    etcd.host = "127.0.0.1"

    def put(pair):  # each alone: what one transaction writes has one version, which the API server never does
        body = {part: base64.b64encode(value.encode()).decode() for part, value in zip(("key", "value"), pair)}
        etcd.request("POST", "/v3/kv/put", json.dumps(body))
        answer = etcd.getresponse()
        text = answer.read()
        check(answer.status == 200, f"etcd answered with {answer.status}: {text[:500]}")

    def known(kind, jobs):
        what, wanted = {"/registry/pods/": ("pods", jobs * PODS_A_JOB), "/registry/services/": ("services", jobs * PODS_A_JOB),
                        "/registry/diengine": ("jobs", jobs)}[kind]
        wait_for(lambda: operator.metrics()[what] == wanted, f"the operator to know {wanted} {what}", LONG)

    for _, path, key, version, kind in KEPT:
        for item in k8s.get(path)["items"]:
            if item["metadata"]["name"].startswith(name):
                item["metadata"].pop("resourceVersion", None)
                texts.append((key + item["metadata"]["name"], json.dumps({"apiVersion": version, "kind": kind, **item})))
    uids = sorted({uid for _, text in texts for uid in re.findall(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", text)})
    addresses = sorted({address for _, text in texts for address in re.findall(r'"(10(?:\.\d+){3})"', text)})

    def new(i):
        found = random.Random(i)
        names = {uid: str(uuid.UUID(int=found.getrandbits(128), version=4)) for uid in uids} | {name: f"copy-{i}"}
        for n, address in enumerate(addresses):
            at = i * 16 + n
            names[address] = f"10.{100 + (at >> 16)}.{at >> 8 & 255}.{at & 255}"
        return names

    for kind in ("/registry/pods/", "/registry/services/", "/registry/diengine"):  # jobs last: they are complete when seen
        for i in range(count):
            names = new(i)
            pattern = re.compile("|".join(map(re.escape, names)))
            for pair in texts:
                if pair[0].startswith(kind):
                    put([pattern.sub(lambda found: names[found[0]], part) for part in pair])
        known(kind, count + 1)
    etcd.close()


# --- what is measured

def paced(tutti, jobs=1000, per_s=50):
    """Jobs made at an even pace: from a job's create to its coordinator's pod."""
    with cluster_with_jobs() as k8s, Operator(k8s, tutti) as operator, Clients(k8s) as clients:
        operator.leads()
        begun = costs(operator)
        made = clients.create_all((job(f"paced-{i}") for i in range(jobs)), per_s)
        seen = coordinators(k8s, jobs)
        await_running(k8s, operator, jobs, jobs)
        waits = [seen[name] - sent for name, (sent, _) in made.items()]
        answers = [answered - sent for sent, answered in made.values()]
        ours = [max(0.0, seen[name] - answered) for name, (_, answered) in made.items()]
        sent = [sent for sent, _ in made.values()]
        return {"jobs": jobs, "asked_per_s": per_s, "made_per_s": (jobs - 1) / (max(sent) - min(sent)),
                "p50_s": percentile(waits, 0.5), "p99_s": percentile(waits, 0.99), "max_s": max(waits),
                "answer_p50_s": percentile(answers, 0.5), "answer_p99_s": percentile(answers, 0.99),
                "ours_p50_s": percentile(ours, 0.5), "ours_p99_s": percentile(ours, 0.99), "ours_max_s": max(ours),
                "idle_mib": begun["rss_mib"], **costs(operator)}


def burst(tutti, jobs=1000, kubectl=False):
    """Jobs made as fast as they are taken, by many clients or by one `kubectl create`: the last coordinator's pod."""
    with cluster_with_jobs() as k8s, Operator(k8s, tutti) as operator, Clients(k8s) as clients:
        operator.leads()
        before = costs(operator)
        bodies = [job(f"burst-{i}") for i in range(jobs)]
        begun = time.time()
        if kubectl:
            text = json.dumps({"apiVersion": "v1", "kind": "List", "items": bodies})
            begun = time.time()
            k8s.kubectl("create", "-f", "-", input=text, deadline=LONG)
        else:
            clients.create_all(bodies)
        created = time.time() - begun
        seen = coordinators(k8s, jobs)
        await_running(k8s, operator, jobs, jobs)
        quiet = time.time() - begun
        return {"jobs": jobs, "created_s": created, "last_pod_s": max(seen.values()) - begun, "quiet_s": quiet,
                "idle_mib": before["rss_mib"], **costs(operator)}


def writes(k8s):
    """How many writes of what an operator writes the API server has answered so far, by everybody."""
    return sum(count for (verb, resource, _, _), count in k8s.requests().items()
               if resource in OURS and verb in ("POST", "PUT", "PATCH", "APPLY", "DELETE", "DELETECOLLECTION"))


def settled_writes(k8s):
    """So many when they do not grow: what was answered is counted a moment later."""
    before, now = -1, writes(k8s)
    while now != before:
        time.sleep(0.5)
        before, now = now, writes(k8s)
    return now


def steady(tutti, jobs=1000, watched_s=60.0, restarts=3, copied=False, told=print):
    """Jobs with ten pods each, declared: what it takes to look after them when nothing happens, and to begin anew.
    copied: only one of them is made (copies()), the operator sees the others come."""
    with cluster_with_jobs() as k8s:
        with Operator(k8s, tutti) as operator, Clients(k8s) as clients:
            operator.leads()
            made, begun = 1 if copied else jobs, time.time()
            clients.create_all(job(f"steady-{i}", replicas=True) for i in range(made))
            await_running(k8s, operator, made, made * PODS_A_JOB)
            if copied:
                k8s.stop_part("fake-kubelet")
                copies(k8s, operator, "steady-0", jobs - 1)
                operator.idle()
            result = {"jobs": jobs, "pods": jobs * PODS_A_JOB, "copied": copied, "built_s": time.time() - begun}
            result["built"] = costs(operator)
            told(f"{jobs} jobs with {PODS_A_JOB} pods each after {result['built_s']:.0f} s: {result['built']}")
            result |= s_watch(k8s, operator, watched_s)
            told(f"nothing happens: {result}")
            s_check_pods(k8s, operator, jobs)
        result["restarts"] = [s_restart(k8s, tutti, jobs, watched_s / 6, told) for _ in range(restarts)]
        return result


def s_check_pods(k8s, operator, jobs):
    """Every job has its own, and the operator knows them all."""
    seen = operator.metrics()
    found = collections.Counter(item["metadata"]["labels"]["dijob-name"] + "/" + item["metadata"]["labels"]["replica-type"]
                                for item in k8s.get("/api/v1/namespaces/default/pods")["items"])
    check((seen["jobs"], seen["pods"], seen["services"]) == (jobs, jobs * PODS_A_JOB, jobs * PODS_A_JOB), f"it knows {seen}")
    wanted = {"coordinator": 1, "collector": COLLECTORS, "learner": LEARNERS}
    wrong = {key: count for key, count in found.items() if count != wanted[key.partition("/")[2]]}
    check(len(found) == 3 * jobs and not wrong, f"pods of {len(found)} roles of {jobs} jobs; wrong: {wrong}")


def s_watch(k8s, operator, watched_s):
    """Nothing happens for so long."""
    operator.caught_up()
    before = settled_writes(k8s)
    cpu, begun = operator.cpu_s(), time.monotonic()
    rounds = operator.metrics()["reconcile_total"]
    time.sleep(watched_s)  # what is measured is that nothing comes: there is nothing to wait for
    wall = time.monotonic() - begun
    rss, peak = operator.memory_mib()
    return {"watched_s": wall, "writes": writes(k8s) - before, "cpu_part": (operator.cpu_s() - cpu) / wall,
            "rounds": operator.metrics()["reconcile_total"] - rounds, "rss_mib": rss, "peak_mib": peak,
            "load": os.getloadavg()[0]}


def s_restart(k8s, tutti, jobs, watched_s, told):
    """An operator that finds everything as it should be: how soon it knows that, and that it leaves all as it is."""
    before, server = settled_writes(k8s), cpu_s(k8s.pid("kube-apiserver"))
    with Operator(k8s, tutti) as operator:
        held, synced = operator.leads()
        ours, server = operator.cpu_s(), cpu_s(k8s.pid("kube-apiserver")) - server
        seen = wait_for(lambda: (lambda m: m if m["reconcile_total"] >= jobs else None)(operator.metrics()),
                        "a look at every job", LONG)
        operator.idle()
        looked = time.time() - operator.started
        check((seen["jobs"], seen["pods"]) == (jobs, jobs * PODS_A_JOB), f"it knows {seen}")
        wrote = settled_writes(k8s) - before
        after = s_watch(k8s, operator, watched_s)
        s_check_pods(k8s, operator, jobs)
        operator.process.send_signal(signal.SIGTERM)
        check(operator.process.wait(60) == 0, "it did not end well")
    after |= {"held_s": held, "synced_s": synced, "after_lease_s": max(0.0, synced - held), "looked_s": looked,
              "synced_cpu_s": ours, "synced_server_cpu_s": server,
              "writes": wrote + after["writes"]}
    told(f"a restart: {after}")
    return after
