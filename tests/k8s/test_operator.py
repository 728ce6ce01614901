#!/usr/bin/env python3
"""`tutti operator` against a real API server and garbage collector; this test plays the kubelet, and DI-engine."""

import json
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time

sys.dont_write_bytecode = True
import cluster
from cluster import check, wait_for
import guard

cluster.require()
TUTTI = os.environ["TUTTI"]
SOURCE = os.environ.get("TT_SOURCE_DIR", os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
SLOW = 3 if os.environ.get("TT_SANITIZE") else 1
DEADLINE = 120.0 * SLOW  # also for a back-off of half a minute, and for a garbage collector that learns of kinds so often
PODS, SERVICES = "/api/v1/namespaces/default/pods", "/api/v1/namespaces/default/services"
JOBS = "/apis/diengine.opendilab.org/v1alpha1/namespaces/default/dijobs"
REPLICAS = "/v1alpha1/replicas"


# --- the operator

def s_ready(k8s):
    """The cluster knows DIJobs."""
    if not getattr(k8s, "knows_dijobs", False):
        k8s.kubectl("apply", "-k", f"{SOURCE}/k8s/crd")
        wait_for(lambda: k8s.find(JOBS), "the API server to serve DIJobs")
        k8s.await_kind("dijob")
        k8s.knows_dijobs = True


class Operator:
    """A running one; its log, its ports."""

    def __init__(self, k8s, *args, ready=True, env=None):
        s_ready(k8s)
        self.k8s = k8s
        self.log = tempfile.NamedTemporaryFile("r", prefix="tt-operator-", suffix=".log")
        with open(self.log.name, "wb") as file:
            self.process = k8s.exec_in(
                [TUTTI, "operator", f"--server-bind-address={guard.ADDRESS}:0",
                 f"--health-probe-bind-address={guard.ADDRESS}:0", *args],
                env={"ASAN_OPTIONS": "detect_leaks=1", **(env or {})}, stderr=file, stdout=file, stdin=subprocess.DEVNULL)
        self.api = self.port("replicas API")
        self.probes = self.port("probes")
        if ready:
            wait_for(lambda: k8s.http(self.probes, "/readyz")[0] == 200, "the operator to be ready")

    def text(self):
        with open(self.log.name, encoding="utf-8", errors="replace") as file:
            return file.read()

    def port(self, what):
        def look():
            check(self.process.poll() is None, f"the operator ended: {self.text()}")
            return re.search(rf"{what} at port (\d+)", self.text())
        return int(wait_for(look, f"the port of {what}")[1])

    def metrics(self, *names):
        """From one page: at one moment."""
        code, text = self.k8s.http(self.probes, "/metrics")
        check(code == 200, f"/metrics says {code}")
        return [float(re.search(rf"^tutti_operator_{name} (\S+)$", text.decode(), re.M)[1]) for name in names]

    def metric(self, name):
        return self.metrics(name)[0]

    def call(self, method, path, body=None):
        code, text = self.k8s.http(self.api, path, method, json.dumps(body) if body is not None else None)
        answer = json.loads(text)
        check(answer["success"] == (code == 200) and answer["code"] == (code != 200), f"{code}: {answer}")
        return code, answer["message"], answer["data"]

    def idle(self):
        """Nothing to do, nothing under way."""
        wait_for(self.is_idle, "an idle operator")

    def is_idle(self):
        return self.metrics("queue_depth", "requests_pending") == [0, 0]

    def stop(self, number=signal.SIGTERM):
        if self.log.closed:
            return
        if self.process.poll() is None:
            self.process.send_signal(number)
        code = self.process.wait(60)
        text = self.text()
        check(number == signal.SIGKILL or code == 0, f"the operator ended with {code}: {text[-3000:]}")
        check("Sanitizer" not in text, text[-5000:])
        self.log.close()

    def __enter__(self):
        return self

    def __exit__(self, kind, error, trace):
        if kind and self.process.poll() is None:
            self.process.kill()
            self.process.wait()
            print(f"--- the operator's log\n{self.text()[-4000:]}", flush=True)
            self.k8s.kubectl("delete", "dijob", "--all", "--wait=false", check=False)  # not in the way of the next test
        elif not kind:
            self.stop()


# --- jobs

def s_template(role, **spec):
    return {"template": {"spec": {"containers": [{"name": "di-container", "image": "x:1", "command": [role]}], **spec}}}


def s_job(name, **spec):
    roles = {role: s_template(role) for role in ("coordinator", "collector", "learner")}
    for role in ("collector", "learner", "aggregator"):
        if f"{role}s" in spec:
            roles.setdefault(role, s_template(role))["replicas"] = spec.pop(f"{role}s")
    return {"apiVersion": "diengine.opendilab.org/v1alpha1", "kind": "DIJob", "metadata": {"name": name},
            "spec": {**roles, **spec}}


def s_create(k8s, job):
    return k8s.api("POST", JOBS, job)


def s_pods(k8s, job, role=None):
    """{name: pod} of those that are not on their way out."""
    labels = f"dijob-name={job}" + (f",replica-type={role}" if role else "")
    items = k8s.get(f"{PODS}?labelSelector={labels}")["items"]
    return {pod["metadata"]["name"]: pod for pod in items if "deletionTimestamp" not in pod["metadata"]}


def s_await_active(k8s, job, role, count):
    """Until the operator has seen so many of the role run, which decides who goes first."""
    wait_for(lambda: k8s.get(f"{JOBS}/{job}").get("status", {}).get("replicaStatus", {}).get(role.capitalize())
             == {"active": count}, f"{count} of {job} known as running {role}s", DEADLINE)


def s_services(k8s, job):
    items = k8s.get(f"{SERVICES}?labelSelector=dijob-name={job}")["items"]
    return {service["metadata"]["name"] for service in items}


def s_await_pods(k8s, job, count, role=None):
    wait_for(lambda: len(s_pods(k8s, job, role)) == count, f"{count} {role or 'pods'} of {job}", DEADLINE)
    return s_pods(k8s, job, role)


def s_move(k8s, name, phase, ip=None, code=None, container="di-container"):
    """What a kubelet says of a pod."""
    state = {"running": {"startedAt": "2026-01-01T00:00:00Z"}}
    if phase == "Pending":
        state = {"waiting": {"reason": "ContainerCreating"}}
    elif phase in ("Succeeded", "Failed"):
        code = code if code is not None else (0 if phase == "Succeeded" else 1)
        reason = "Completed" if code == 0 else "Error"
        now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        state = {"terminated": {"exitCode": code, "reason": reason, "finishedAt": now}}
    ready = str(phase == "Running")
    status = {"phase": phase, "conditions": [{"type": "Ready", "status": ready}, {"type": "PodScheduled", "status": "True"}],
              "containerStatuses": [{"name": container, "state": state, "ready": phase == "Running", "restartCount": 0,
                                     "image": "x:1", "imageID": ""}]}
    if ip:
        status.update(podIP=ip, podIPs=[{"ip": ip}])
    k8s.patch(f"{PODS}/{name}/status", {"status": status})


def s_phase(k8s, job):
    return k8s.get(f"{JOBS}/{job}").get("status", {}).get("phase")


def s_await_phase(k8s, job, phase):
    wait_for(lambda: s_phase(k8s, job) == phase, f"{job} to be {phase}", DEADLINE)
    return k8s.get(f"{JOBS}/{job}")["status"]


def s_events(k8s, job, kind=""):
    """On whatever has that name, or is of that kind as well: the cluster has its own to say of a job's services."""
    of = f",involvedObject.kind={kind}" if kind else ""
    items = k8s.get(f"/api/v1/namespaces/default/events?fieldSelector=involvedObject.name={job}{of}")["items"]
    return {(event["type"], event["reason"], event["message"]) for event in items}


def s_conditions(status):
    return {c["type"]: (c["status"], c["reason"]) for c in status["conditions"]}


def s_start(k8s, job, ip=None):
    """A job with its coordinator running."""
    s_create(k8s, job)
    name = job["metadata"]["name"]
    s_await_pods(k8s, name, 1, "coordinator")
    s_move(k8s, f"{name}-coordinator", "Running", ip)
    s_await_phase(k8s, name, "Running")
    return f"{name}-coordinator"


def s_delete(k8s, job):
    """The job and, by the garbage collector, all that it owns. Nothing is written of a job on its way out."""
    k8s.kubectl("delete", "dijob", job, "--wait=false")
    wait_for(lambda: not s_pods(k8s, job) and not s_services(k8s, job), f"{job} to leave nothing", DEADLINE)


# --- one job

def test_from_created_to_succeeded(k8s):
    """What users of DI-orchestrator know, line by line."""
    with Operator(k8s) as op:
        with open(f"{SOURCE}/k8s/samples/dijob-qbert.yaml", encoding="utf-8") as file:
            told = k8s.kubectl("create", "-f", "-", input=file.read()).stdout
        check(told == "dijob.diengine.opendilab.org/qbert-dqn created\n", told)
        pod = s_await_pods(k8s, "qbert-dqn", 1)["qbert-dqn-coordinator"]
        labels = pod["metadata"]["labels"]
        check(labels["replica-type"] == "coordinator" and labels["controller-name"] == "di-operator"
              and labels["group-name"] == "diengine.opendilab.org", f"labels {labels}")
        owner = pod["metadata"]["ownerReferences"][0]
        check(owner["kind"] == "DIJob" and owner["controller"] is True, f"owner {owner}")
        env = {e["name"]: e.get("value") for e in pod["spec"]["containers"][0]["env"]}
        check(env["KUBERNETES_COORDINATOR_URL"] == "qbert-dqn-coordinator.default:22273", f"env {env}")
        check(env["KUBERNETES_SERVER_URL"] == "http://di-server.di-system:8080", f"env {env}")
        wait_for(lambda: s_services(k8s, "qbert-dqn") == {"qbert-dqn-coordinator"}, "the coordinator's service")
        check(s_await_phase(k8s, "qbert-dqn", "Created")["observedGeneration"] == 1, "observedGeneration")

        s_move(k8s, "qbert-dqn-coordinator", "Running", guard.ADDRESS)
        s_await_phase(k8s, "qbert-dqn", "Running")
        who = {"namespace": "default", "coordinator": "qbert-dqn-coordinator"}
        code, words, data = op.call("POST", REPLICAS, {**who, "collectors": {"replicas": 2, "cpus": 0.5, "memory": "1Gi"},
                                                       "learners": {"replicas": 1, "gpus": "0"}})
        check((code, words) == (200, "successfully create replicas"), f"{code} {words}")
        check(re.fullmatch(r"qbert-dqn-collector-[a-z0-9]{5}\.default:22270", data["collectors"][0])
              and len(data["collectors"]) == 2 and data["learners"][0].endswith(".default:22271"), f"{data}")
        made = s_pods(k8s, "qbert-dqn", "collector")
        check({f"{name}.default:22270" for name in made} == set(data["collectors"]), f"{sorted(made)}, {data}")
        limits = next(iter(made.values()))["spec"]["containers"][0]["resources"]
        check(limits["limits"] == limits["requests"] == {"cpu": "500m", "memory": "1Gi"}, f"{limits}")
        code, words, again = op.call("GET", f"{REPLICAS}?namespace=default&coordinator=qbert-dqn-coordinator")
        check(code == 200 and words == "successfully get replicas", words)
        check({**again, "collectors": sorted(again["collectors"])} == {**data, "collectors": sorted(data["collectors"])},
              f"{again} is not {data}")
        for name in s_pods(k8s, "qbert-dqn"):
            s_move(k8s, name, "Running", guard.ADDRESS if name.endswith("coordinator") else "10.1.1.1")
        wait_for(lambda: len(s_services(k8s, "qbert-dqn")) == 4, "a service a pod")
        wait_for(lambda: k8s.get(f"{JOBS}/qbert-dqn")["status"]["replicaStatus"]
                 == {"Aggregator": {}, "Collector": {"active": 2}, "Coordinator": {"active": 1}, "Learner": {"active": 1}},
                 "the counters")

        s_move(k8s, "qbert-dqn-coordinator", "Succeeded", guard.ADDRESS)
        status = s_await_phase(k8s, "qbert-dqn", "Succeeded")
        check(s_conditions(status) == {"Created": ("True", "DIJobCreated"), "Running": ("False", "DIJobRunning"),
                                       "Succeeded": ("True", "DIJobSucceeded")}, f"{status['conditions']}")
        wait_for(lambda: set(s_pods(k8s, "qbert-dqn")) == {"qbert-dqn-coordinator"}, "the running pods to go")
        wait_for(lambda: not s_services(k8s, "qbert-dqn"), "the services to go")
        wait_for(lambda: k8s.get(f"{JOBS}/qbert-dqn")["status"]["replicaStatus"]
                 == {"Aggregator": {}, "Collector": {"succeeded": 2}, "Coordinator": {"succeeded": 1},
                     "Learner": {"succeeded": 1}}, "the counters of the end")
        code, words, _ = op.call("POST", REPLICAS, {**who, "collectors": {"replicas": 1}})
        check(code == 403, f"replicas asked for from the address of a pod that has ended: {code} {words}")
        op.idle()
        for event in (("Normal", "DIJobCreated", "DIJob qbert-dqn created"),
                      ("Normal", "SuccessfulCreate", "Create pod: qbert-dqn-coordinator"),
                      ("Normal", "SuccessfulCreate", "Create service: qbert-dqn-coordinator"),
                      ("Normal", "DIJobSucceeded", "DIJob qbert-dqn succeeded because coordinator succeeded")):
            wait_for(lambda: event in s_events(k8s, "qbert-dqn"),
                     lambda: f"{event} in {s_events(k8s, 'qbert-dqn')}")
        shown = k8s.kubectl("get", "dijob", "qbert-dqn").stdout
        check(re.fullmatch(r"NAME +PHASE +AGE +REASON *\nqbert-dqn +Succeeded +\S+ *\n", shown), shown)
        s_delete(k8s, "qbert-dqn")


def test_every_cleanup_policy(k8s):
    left = {"None": 4, "Running": 2, "All": 0, "ALL": 0, "": 2}
    with Operator(k8s, "--open-api") as op:
        for number, (policy, count) in enumerate(left.items()):
            for phase in ("Succeeded", "Failed"):
                name = f"clean-{number}-{phase.lower()}"
                who = {"namespace": "default", "coordinator": s_start(k8s, s_job(name, cleanPodPolicy=policy))}
                data = op.call("POST", REPLICAS, {**who, "collectors": {"replicas": 3}})[2]
                one, two, three = (url.split(".")[0] for url in data["collectors"])
                s_move(k8s, one, "Running")
                s_move(k8s, two, "Pending")
                s_move(k8s, three, "Succeeded")
                wait_for(lambda: len(s_services(k8s, name)) == 4, "four services")
                s_move(k8s, who["coordinator"], phase)
                s_await_phase(k8s, name, phase)
                s_await_pods(k8s, name, count)
                wait_for(lambda: not s_services(k8s, name), f"the services of {name} to go")
                check(count != 2 or set(s_pods(k8s, name)) == {who["coordinator"], three}, f"{list(s_pods(k8s, name))}")
        op.idle()
        with Operator(k8s, "--open-api"): # a second look from nothing changes nothing
            for number, (policy, count) in enumerate(left.items()):
                for phase in ("Succeeded", "Failed"):
                    name = f"clean-{number}-{phase.lower()}"
                    check(s_phase(k8s, name) == phase and len(s_pods(k8s, name)) == count, f"{name} after another look")
                    s_delete(k8s, name)


def test_the_replicas_api(k8s):
    """Everything that is not the straight way."""
    with Operator(k8s) as op:
        mine = {"namespace": "default", "coordinator": s_start(k8s, s_job("api-a"), guard.ADDRESS)}
        s_start(k8s, s_job("api-b"), "10.77.0.1")
        wait_for(lambda: op.call("GET", f"{REPLICAS}?namespace=default&coordinator=api-a-coordinator")[0] == 200, "our pod")
        get = f"{REPLICAS}?namespace=default&coordinator="
        check(op.call("GET", get + "api-b-coordinator")[0] == 403, "a job of somebody else")
        check(op.call("POST", REPLICAS, {**mine, "coordinator": "api-b-coordinator", "collectors": {"replicas": 1}})[0] == 403,
              "pods for somebody else's job")
        check([one["coordinator"] for one in op.call("GET", REPLICAS)[2]] == ["api-a-coordinator"], "a list of our own")
        code, words, data = op.call("POST", REPLICAS, {**mine, "coordinator": "nope", "collectors": {"replicas": 1}})
        check((code, words) == (404, "pod: default/nope not exists in cache"), f"{code} {words}")
        check(data == {"namespace": "", "coordinator": "", "collectors": None, "learners": None}, f"{data}")
        check(op.call("GET", f"{REPLICAS}?foo=1")[:2] == (400, "request param foo is not supported"), "an unknown key")
        check(op.call("PATCH", REPLICAS, {})[:2] == (501, "PATCH not implemented"), "PATCH")
        check(k8s.http(op.api, "/healthz") == (200, b""), "/healthz")

        data = op.call("POST", REPLICAS, {**mine, "collectors": {"replicas": 3, "cpus": 2}, "learners": {"replicas": 2}})[2]
        names = [url.split(".")[0] for url in data["collectors"]]
        s_move(k8s, names[0], "Running", "10.78.0.1")
        s_move(k8s, names[1], "Running", "10.78.0.2")
        s_await_active(k8s, "api-a", "collector", 2)
        gone = op.call("DELETE", REPLICAS, {**mine, "collectors": {"replicas": 1}, "learners": {"replicas": 0}})[2]
        check([url.split(".")[0] for url in gone["collectors"]] == [names[2]] and gone["learners"] == [],
              f"the one that does not run goes first: {gone}, {names}")
        check(sorted(op.call("DELETE", REPLICAS, {**mine, "learners": {"replicas": 5}})[2]["learners"]) ==
              sorted(data["learners"]), "more than there are")
        check(set(s_pods(k8s, "api-a")) == {"api-a-coordinator", *names[:2]}, f"{list(s_pods(k8s, 'api-a'))}")

        report = {**mine, "collectors": [names[0], names[0]], "learners": []}
        code, words, data = op.call("POST", REPLICAS + "/failed", report)
        check((code, words) == (200, "successfully recreate replicas") and data["learners"] is None, f"{code} {words} {data}")
        fresh = data["collectors"][0].split(".")[0]
        pod = s_await_pods(k8s, "api-a", 2, "collector")[fresh]
        check(pod["metadata"]["annotations"]["tutti/replaces"] == names[0], f"{pod['metadata']['annotations']}")
        check(pod["spec"]["containers"][0]["resources"]["limits"] == {"cpu": "2"}, "what was asked for is kept")
        env = {e["name"]: e.get("value") for e in pod["spec"]["containers"][0]["env"]}
        check(env["KUBERNETES_POD_NAME"] == fresh, f"{env}")
        check(op.call("POST", REPLICAS + "/failed", report)[2] == data, "the same report again: the same answer")
        check(op.call("POST", REPLICAS + "/failed", {**mine, "collectors": ["nobody"]})[0] == 404, "an unknown pod")

        serial = s_job("api-serial")
        del serial["spec"]["collector"], serial["spec"]["learner"]
        k8s.patch(f"{PODS}/api-b-coordinator/status", {"status": {"podIP": "10.77.0.2", "podIPs": [{"ip": "10.77.0.2"}]}})
        coordinator = s_start(k8s, serial, guard.ADDRESS)
        code, words, _ = wait_for(lambda: (lambda it: it if it[0] != 403 else None)(
            op.call("POST", REPLICAS, {"namespace": "default", "coordinator": coordinator, "collectors": {"replicas": 1}})),
            "the pod's address")
        check((code, words) == (400, "DIJob api-serial has no spec.collector.template"), f"{code} {words}")
        for name in ("api-a", "api-b", "api-serial"):
            s_delete(k8s, name)


HOLD_S = 10  # for how long who is not known yet is let wait (k8s/operator/backend.c)


def s_asks_early(k8s, op, job):
    """A coordinator asks before its address is known: it waits, and is answered. False: the address came too late for that."""
    s_create(k8s, s_job(job))
    s_await_phase(k8s, job, "Created")  # written when the operator knows of the pod
    path = f"{REPLICAS}?namespace=default&coordinator={job}-coordinator"
    answers, begun = [], time.monotonic()
    caller = threading.Thread(target=lambda: answers.append((op.call("GET", path)[0], time.monotonic() - begun > HOLD_S - 0.1)))
    caller.start()
    wait_for(lambda: answers or op.metric("replicas_waiting") == 1, "the request to wait")
    check(answers in ([], [(403, True)]), f"answered: {answers}")
    s_move(k8s, f"{job}-coordinator", "Running", guard.ADDRESS)
    caller.join()
    check(answers == [(403, True)] or answers[0][0] == 200, f"{answers}")
    s_delete(k8s, job)
    return answers[0][0] == 200


def test_a_caller_whose_address_is_not_known_yet(k8s):
    """The kubelet writes a pod's address after the pod has begun: who asks about itself before that waits, and is answered."""
    with Operator(k8s) as op:
        check(any(s_asks_early(k8s, op, f"early-{turn}") for turn in range(5)), "its address always came too late")


def test_a_failed_replica_is_replaced_once(k8s):
    with Operator(k8s, "--open-api") as op:
        who = {"namespace": "default", "coordinator": s_start(k8s, s_job("fail"))}
        data = op.call("POST", REPLICAS, {**who, "collectors": {"replicas": 2, "memory": "64Mi"}})[2]
        one, two = (url.split(".")[0] for url in data["collectors"])
        s_move(k8s, one, "Running")
        s_move(k8s, two, "Running")
        s_move(k8s, one, "Failed")
        fresh = wait_for(lambda: [name for name, pod in s_pods(k8s, "fail", "collector").items()
                                  if pod["metadata"].get("annotations", {}).get("tutti/replaces") == one], "a replacement")
        limits = s_pods(k8s, "fail")[fresh[0]]["spec"]["containers"][0]["resources"]["limits"]
        check(limits == {"memory": "64Mi"}, f"what was asked for over HTTP: {limits}")
        k8s.kubectl("delete", "pod", two, "--wait=false")
        op.idle()
        time.sleep(0.5)  # nothing is to happen, and there is no sign of that
        alive = {name for name, pod in s_pods(k8s, "fail", "collector").items() if pod["status"]["phase"] != "Failed"}
        check(alive == set(fresh), f"a deleted one is not replaced: {alive}")
        s_move(k8s, fresh[0], "Running")
        op.idle()
        s_delete(k8s, "fail")


def s_fail_newest(k8s, job, role, code=5):
    """The one of a role that has not failed, as soon as it is there; its name."""
    def alive():
        return [name for name, pod in s_pods(k8s, job, role).items() if pod["status"]["phase"] == "Pending"]
    (name,) = wait_for(alive, f"a {role} of {job}", DEADLINE)
    s_move(k8s, name, "Running")
    s_move(k8s, name, "Failed", code=code)
    return name


def test_a_role_that_can_only_fail(k8s):
    """backoffLimit, also of operators each of which sees one failure only."""
    with Operator(k8s):
        s_start(k8s, s_job("crash", learners=1, backoffLimit=2))
        s_fail_newest(k8s, "crash", "learner")
        s_fail_newest(k8s, "crash", "learner")
        (third,) = wait_for(lambda: [name for name, pod in s_pods(k8s, "crash", "learner").items()
                                     if pod["metadata"].get("annotations", {}).get("tutti/failures") == "2"], "the third", DEADLINE)
    with Operator(k8s) as op:
        check(s_phase(k8s, "crash") == "Running", "two are allowed")
        check(s_fail_newest(k8s, "crash", "learner") == third, third)
        status = s_await_phase(k8s, "crash", "Failed")
        words = {c["type"]: c["message"] for c in status["conditions"]}["Failed"]
        check(status["reason"] == "BackoffLimitExceeded" and words == "DIJob crash failed because learner failed 3 times in a row and "
              f"backoffLimit is 2; the last, pod {third} ended with exit code 5 (Error)", status)
        wait_for(lambda: "crash-coordinator" not in s_pods(k8s, "crash"), "the coordinator to go")
        op.idle()
        s_delete(k8s, "crash")


def s_policy(**in_order):
    return {"rules": [{"action": action, "onExitCodes": {"operator": "In", "values": values}} for action, values in in_order.items()]}


def test_a_typo_fails_the_job(k8s):
    """podFailurePolicy: by a pod's end, by a container's that its kubelet starts again, and by an edit of a job that crashes already."""
    with Operator(k8s) as op:
        s_start(k8s, s_job("typo", learners=1, podFailurePolicy=s_policy(Count=[3], FailJob=[2, 3])))
        s_fail_newest(k8s, "typo", "learner", code=3)
        wait_for(lambda: len(s_pods(k8s, "typo", "learner")) == 2, "who ended with a code that counts to be replaced", DEADLINE)
        check(s_phase(k8s, "typo") == "Running", "it counts")
        name = s_fail_newest(k8s, "typo", "learner", code=2)
        status = s_await_phase(k8s, "typo", "Failed")
        words = f"DIJob typo failed because pod {name} ended with exit code 2 (Error)"
        check(status["reason"] == "PodFailurePolicy" and {c["type"]: c["message"] for c in status["conditions"]}["Failed"] == words, status)
        wait_for(lambda: ("Warning", "DIJobFailed", words) in s_events(k8s, "typo"), "its event", DEADLINE)
        columns = k8s.kubectl("get", "dijob", "typo", "--no-headers").stdout.split()
        check(columns[1] == "Failed" and columns[3] == "PodFailurePolicy", columns)
        s_delete(k8s, "typo")

        s_start(k8s, s_job("again", collectors=1))
        (name,) = s_await_pods(k8s, "again", 1, "collector")
        ended = {"terminated": {"exitCode": 2, "reason": "Error", "finishedAt": "2026-01-01T00:00:00Z"}}
        k8s.patch(f"{PODS}/{name}/status", {"status": {"phase": "Running", "containerStatuses": [
            {"name": "di-container", "state": {"waiting": {"reason": "CrashLoopBackOff"}}, "lastState": ended, "ready": False,
             "restartCount": 7, "image": "x:1", "imageID": ""}]}})
        wait_for(lambda: k8s.get(f"{JOBS}/again")["status"].get("reason") == "CrashLoop", "a crash loop", DEADLINE)
        check(s_phase(k8s, "again") == "Running", "without a policy it goes on")
        k8s.patch(f"{JOBS}/again", {"spec": {"podFailurePolicy": s_policy(FailJob=[2])}})
        status = s_await_phase(k8s, "again", "Failed")
        check(status["reason"] == "PodFailurePolicy", status)
        op.idle()
        s_delete(k8s, "again")


def test_learners_with_several_gpus(k8s):
    """One aggregator, whose address is the learner's, and pods of as many GPUs as a node has."""
    with Operator(k8s, "--open-api", "--gpus-per-node=8") as op:
        who = {"namespace": "default", "coordinator": s_start(k8s, s_job("ddp"))}
        data = op.call("POST", REPLICAS, {**who, "learners": {"replicas": 1, "gpus": "10", "memory": "1Gi"}})[2]
        check(re.fullmatch(r"ddp-aggregator-\w{5}\.default:22272", data["learners"][0]), f"{data}")
        aggregator = data["learners"][0].split(".")[0]
        pods = s_pods(k8s, "ddp", "ddp-learner")
        gpus = {}
        for name, pod in pods.items():
            env = {e["name"]: e.get("value") for e in pod["spec"]["containers"][0]["env"]}
            limits = pod["spec"]["containers"][0]["resources"]["limits"]
            gpus[int(limits["nvidia.com/gpu"])] = env
            check(limits["memory"] == "1Gi" and env["WORLD_SIZE"] == "10" and env["MASTER_PORT"] == "10314", f"{limits} {env}")
            check([o["kind"] for o in pod["metadata"]["ownerReferences"]] == ["DIJob", "Pod"], f"{pod['metadata']}")
        check(sorted(gpus) == [2, 8], f"{gpus}")
        check(gpus[8]["START_RANK"] == "0" and gpus[2]["START_RANK"] == "8" and gpus[8]["MASTER_ADDR"] == "localhost"
              and gpus[2]["MASTER_ADDR"] in pods, f"{gpus}")
        check("resources" not in s_pods(k8s, "ddp")[aggregator]["spec"]["containers"][0]
              or not s_pods(k8s, "ddp")[aggregator]["spec"]["containers"][0]["resources"], "the aggregator needs no GPU")
        code, _, seen = op.call("GET", f"{REPLICAS}?namespace=default&aggregator={aggregator}")
        check(code == 200 and seen["coordinator"] == aggregator and seen["collectors"] is None
              and len(seen["learners"]) == 10 and all(url.split(".")[0] in pods for url in seen["learners"]), f"{seen}")
        wait_for(lambda: len(s_services(k8s, "ddp")) == 4, "services")
        ports = {len(k8s.get(f"{SERVICES}/{name}")["spec"]["ports"]) for name in pods}
        check(ports == {9, 2}, f"ports of the services: {ports}")

        data = op.call("POST", REPLICAS + "/failed", {**who, "collectors": [], "learners": [aggregator]})[2]
        fresh = data["learners"][0].split(".")[0]
        check(fresh.startswith("ddp-aggregator-") and fresh != aggregator, f"{data}")
        wait_for(lambda: len(s_pods(k8s, "ddp", "ddp-learner")) == 2 and not set(pods) & set(s_pods(k8s, "ddp")),
                 "its ddp learners made anew")
        wait_for(lambda: len(op.call("GET", f"{REPLICAS}?namespace=default&aggregator={fresh}")[2]["learners"]) == 10, "their urls")
        gone = op.call("DELETE", REPLICAS, {**who, "learners": {"replicas": 1}})[2]
        check([url.split(".")[0] for url in gone["learners"]] == [fresh], f"{gone}")
        wait_for(lambda: set(s_pods(k8s, "ddp")) == {"ddp-coordinator"}, "all of it to go")
        s_delete(k8s, "ddp")


# --- numbers in the spec

def test_declared_replicas(k8s):
    with Operator(k8s, "--open-api") as op:
        who = {"namespace": "default", "coordinator": s_start(k8s, s_job("scale", collectors=2, learners=1))}
        s_await_pods(k8s, "scale", 2, "collector")
        for name in s_pods(k8s, "scale"):
            s_move(k8s, name, "Running")
        wait_for(lambda: k8s.get(f"{JOBS}/scale/scale")["status"]
                 == {"replicas": 2, "selector": "dijob-name=scale,replica-type=collector"}, "the scale")
        s_await_active(k8s, "scale", "collector", 2)
        old = set(s_pods(k8s, "scale", "collector"))
        told = k8s.kubectl("scale", "dijob/scale", "--replicas=4").stdout
        check(told == "dijob.diengine.opendilab.org/scale scaled\n", told)
        s_await_pods(k8s, "scale", 4, "collector")
        k8s.kubectl("scale", "dijob/scale", "--replicas=2", "--current-replicas=4")
        s_await_pods(k8s, "scale", 2, "collector")
        check(set(s_pods(k8s, "scale", "collector")) == old, "those that do not run yet go first")
        k8s.kubectl("patch", "dijob", "scale", "--type=merge", "-p", '{"spec":{"learner":{"replicas":2}}}')
        s_await_pods(k8s, "scale", 2, "learner")

        code, _, data = op.call("POST", REPLICAS, {**who, "collectors": {"replicas": 9}, "learners": {"replicas": 1}})
        check(code == 200 and len(data["collectors"]) == 2 and len(data["learners"]) == 1, f"{code} {data}")
        code, _, data = op.call("DELETE", REPLICAS, {**who, "collectors": {"replicas": 1}, "learners": {"replicas": 1}})
        check(code == 200 and data["collectors"] == [] and data["learners"] == [], f"{code} {data}")
        wait_for(lambda: any(event[1] == "ReplicasDeclared" for event in s_events(k8s, "scale")), "words about it")

        victim = sorted(old)[0]
        k8s.kubectl("delete", "pod", victim, "--wait=false")
        wait_for(lambda: victim not in s_pods(k8s, "scale") and len(s_pods(k8s, "scale", "collector")) == 2, "another one")
        k8s.kubectl("patch", "dijob", "scale", "--type=json", "-p", '[{"op":"remove","path":"/spec/collector/replicas"}]')
        op.idle()
        check(len(s_pods(k8s, "scale", "collector")) == 2, "without the number they stay")
        s_delete(k8s, "scale")


# --- what is refused, edited, removed

def test_a_refused_template(k8s):
    bad = s_job("refused")
    bad["spec"]["coordinator"]["template"]["spec"]["containers"][0]["image"] = " "
    bad["spec"]["coordinator"]["template"]["spec"]["containers"][0]["ports"] = [{"containerPort": 99999}]
    with Operator(k8s) as op:
        s_create(k8s, bad)
        status = wait_for(lambda: (lambda s: s if "TemplateRefused" in s_conditions(s) else None)(
            k8s.get(f"{JOBS}/refused").get("status", {"conditions": []})), "the condition")
        condition = next(c for c in status["conditions"] if c["type"] == "TemplateRefused")
        check(condition["status"] == "True" and "99999" in condition["message"], f"{condition}")
        wait_for(lambda: any(e[:2] == ("Warning", "FailedCreate") and "99999" in e[2] for e in s_events(k8s, "refused")),
                 "the server's words as an event")
        op.idle()
        before = time.time()
        k8s.kubectl("label", "dijob", "refused", "a=b")
        op.idle()
        tries = [e for e in k8s.audit(agent="tutti-operator", writes=True, since=before) if e["objectRef"]["resource"] == "pods"]
        check(not tries, "the same template is not tried again")
        k8s.patch(f"{JOBS}/refused", s_job("refused"))
        s_await_pods(k8s, "refused", 1, "coordinator")
        wait_for(lambda: s_conditions(k8s.get(f"{JOBS}/refused")["status"]).get("TemplateRefused", ("False",))[0] == "False",
                 "the condition to go")
        s_delete(k8s, "refused")


def test_edits_behind_its_back(k8s):
    with Operator(k8s, "--open-api") as op:
        coordinator = s_start(k8s, s_job("edit", collectors=1))
        s_await_pods(k8s, "edit", 1, "collector")
        wait_for(lambda: len(s_services(k8s, "edit")) == 2, "two services")
        k8s.kubectl("delete", "service", coordinator)
        wait_for(lambda: coordinator in s_services(k8s, "edit"), "the service again")
        uid = s_pods(k8s, "edit")[coordinator]["metadata"]["uid"]
        k8s.kubectl("delete", "pod", coordinator, "--force", "--grace-period=0")
        wait_for(lambda: s_pods(k8s, "edit").get(coordinator, {"metadata": {"uid": uid}})["metadata"]["uid"] != uid,
                 "the coordinator again")
        check(s_phase(k8s, "edit") == "Running", "the phase stays as it was")
        k8s.patch(f"{JOBS}/edit/status", {"status": {"phase": "Unknown", "collectorReplicas": 77, "conditions": None}})
        s_move(k8s, coordinator, "Running")
        wait_for(lambda: k8s.get(f"{JOBS}/edit")["status"].get("collectorReplicas") == 1, "the numbers again")
        s_await_phase(k8s, "edit", "Running")
        collector = next(iter(s_pods(k8s, "edit", "collector")))
        k8s.kubectl("label", "pod", collector, "replica-type-")
        s_await_pods(k8s, "edit", 1, "collector")
        op.idle()
        s_delete(k8s, "edit")


def test_a_pod_of_that_name_that_is_not_ours(k8s):
    k8s.api("POST", PODS, {"metadata": {"name": "taken-coordinator"}, "spec": s_template("x")["template"]["spec"]})
    with Operator(k8s):
        s_create(k8s, s_job("taken"))
        wait_for(lambda: any(e[:2] == ("Warning", "FailedCreate") for e in s_events(k8s, "taken")), "words about it")
        k8s.api("DELETE", f"{PODS}/taken-coordinator")
        s_await_pods(k8s, "taken", 1, "coordinator")
        s_delete(k8s, "taken")


def test_the_same_name_again(k8s):
    """Deleted and created at once, while what the first one owned still goes."""
    with Operator(k8s) as op:
        uids = set()
        for _ in range(3):
            s_create(k8s, s_job("again", collectors=1))
            uid = k8s.get(f"{JOBS}/again")["metadata"]["uid"]
            wait_for(lambda: [p["metadata"]["ownerReferences"][0]["uid"] for p in s_pods(k8s, "again", "coordinator").values()]
                     == [uid], "the coordinator of this one", DEADLINE)
            wait_for(lambda: "again-coordinator" in s_services(k8s, "again"), "its service")
            uids.add(uid)
            k8s.kubectl("delete", "dijob", "again", "--cascade=background")
        check(len(uids) == 3, "three jobs")
        wait_for(lambda: not s_pods(k8s, "again") and not s_services(k8s, "again"), "nothing to be left", DEADLINE)
        op.idle()


def s_key(k8s, pod):
    """The Secret that a pod mounts as the job's key; None = there is none of that name."""
    spec = k8s.get(f"{PODS}/{pod}")["spec"]
    (volume,) = [volume for volume in spec["volumes"] if volume["name"] == "tutti-curve"]
    return k8s.find(f"/api/v1/namespaces/default/secrets/{volume['secret']['secretName']}")


def test_the_key_is_the_jobs_own(k8s):
    """Neither a stranger's Secret nor that of a job of the same name before it, which the garbage collector is about to take away."""
    stranger = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "keyed-curve"}, "stringData": {"curve.key": "a stranger's"}}
    k8s.api("POST", "/api/v1/namespaces/default/secrets", stranger)
    with Operator(k8s) as op:
        for _ in range(3):
            s_create(k8s, s_job("keyed", engine="tutti", collectors=1))
            uid = k8s.get(f"{JOBS}/keyed")["metadata"]["uid"]
            wait_for(lambda: [p["metadata"]["ownerReferences"][0]["uid"] for p in s_pods(k8s, "keyed", "coordinator").values()]
                     == [uid], "the coordinator of this one", DEADLINE)
            key = s_key(k8s, "keyed-coordinator")
            check(key and [owner["uid"] for owner in key["metadata"].get("ownerReferences", ())] == [uid], f"{key and key['metadata']}")
            k8s.kubectl("delete", "dijob", "keyed", "--cascade=background")
        wait_for(lambda: not s_pods(k8s, "keyed"), "nothing to be left", DEADLINE)
        keys = lambda: {name for item in k8s.get("/api/v1/namespaces/default/secrets")["items"]
                        if (name := item["metadata"]["name"]).startswith("keyed")}
        wait_for(lambda: keys() == {"keyed-curve"}, lambda: f"the stranger's alone to be left, not {keys()}", DEADLINE)
        op.idle()


def test_the_key_of_an_older_operator(k8s):
    """Pods that it made know one without a UID in its name, and who comes to them, too."""
    with Operator(k8s):
        s_start(k8s, s_job("older", engine="tutti"))
        spec = k8s.get(f"{PODS}/older-coordinator")
    old = json.loads(json.dumps(spec).replace(s_key(k8s, "older-coordinator")["metadata"]["name"], "older-curve"))
    for key in ("resourceVersion", "uid", "creationTimestamp"):
        del old["metadata"][key]
    del old["metadata"]["annotations"]["tutti/curve"], old["status"]
    k8s.api("DELETE", f"{PODS}/older-coordinator", {"gracePeriodSeconds": 0})
    k8s.api("POST", PODS, old)
    s_move(k8s, "older-coordinator", "Running")
    with Operator(k8s) as op:
        k8s.patch(f"{JOBS}/older", {"spec": {"collector": {"replicas": 1}}})
        (name,) = s_await_pods(k8s, "older", 1, "collector")
        volumes = k8s.get(f"{PODS}/{name}")["spec"]["volumes"]
        check({"name": "tutti-curve", "secret": {"secretName": "older-curve", "defaultMode": 0o440}} in volumes, volumes)
        op.idle()
        s_delete(k8s, "older")


def test_what_a_batch_job_has(k8s):
    """Deadline, time to live and suspension, with the server's own checks and its garbage collector."""
    with Operator(k8s) as op:
        s_start(k8s, s_job("late", cleanPodPolicy="None", collectors=1))
        k8s.patch(f"{JOBS}/late", {"spec": {"activeDeadlineSeconds": 1}})  # with it from its beginning it may be over before it runs
        status = s_await_phase(k8s, "late", "Failed")
        check(status["reason"] == "DeadlineExceeded" and s_conditions(status)["Failed"] == ("True", "DeadlineExceeded"), status)
        s_await_pods(k8s, "late", 0)
        columns = k8s.kubectl("get", "dijob", "late", "--no-headers").stdout.split()
        check(columns[1] == "Failed" and columns[3] == "DeadlineExceeded", columns)
        wait_for(lambda: any(reason == "DeadlineExceeded" for _, reason, _ in s_events(k8s, "late")), "its event", DEADLINE)

        pod = s_start(k8s, s_job("gone", ttlSecondsAfterFinished=0, cleanPodPolicy="None", collectors=1))
        s_await_pods(k8s, "gone", 2)
        s_move(k8s, pod, "Succeeded")
        wait_for(lambda: not k8s.find(f"{JOBS}/gone"), "the job to go", DEADLINE)
        wait_for(lambda: not s_pods(k8s, "gone") and not s_services(k8s, "gone"), "all that it owned to go", DEADLINE)
        wait_for(lambda: op.metric("jobs_expired_total") == 1, "it to be counted", DEADLINE)
        k8s.patch(f"{JOBS}/late", {"spec": {"ttlSecondsAfterFinished": 0}})
        wait_for(lambda: not k8s.find(f"{JOBS}/late"), "a job whose time was given after its end to go", DEADLINE)

        s_create(k8s, s_job("rests", suspend=True, collectors=2))
        status = s_await_phase(k8s, "rests", "Suspended")
        check(s_conditions(status)["Suspended"] == ("True", "JobSuspended") and not s_pods(k8s, "rests"), status)
        for _ in range(2):
            k8s.patch(f"{JOBS}/rests", {"spec": {"suspend": False}})
            s_await_pods(k8s, "rests", 3)
            s_move(k8s, "rests-coordinator", "Running")
            status = s_await_phase(k8s, "rests", "Running")
            check(s_conditions(status)["Suspended"] == ("False", "JobResumed") and "startTimestamp" in status, status)
            k8s.patch(f"{JOBS}/rests", {"spec": {"suspend": True}})
            s_await_phase(k8s, "rests", "Suspended")
            s_await_pods(k8s, "rests", 0)
        status = k8s.get(f"{JOBS}/rests")["status"]
        check("startTimestamp" not in status and not status.get("restarts"), status)
        check(all(not any(key != "active" for key in one) for one in status["replicaStatus"].values()), status)
        s_delete(k8s, "rests")
        op.idle()


def test_an_embedded_job_is_left_alone(k8s):
    with Operator(k8s) as op:
        s_create(k8s, s_job("embedded", managedBy="coordinator"))
        s_create(k8s, s_job("after"))
        s_await_pods(k8s, "after", 1)
        op.idle()
        check(not s_pods(k8s, "embedded") and not k8s.get(f"{JOBS}/embedded").get("status"), "not touched")
        s_delete(k8s, "embedded")
        s_delete(k8s, "after")


# --- tasks (v2alpha1's shape)

def test_tasks(k8s):
    job = {"apiVersion": "diengine.opendilab.org/v1alpha1", "kind": "DIJob", "metadata": {"name": "tasks"},
           "spec": {"tasks": [{"type": "learner", "replicas": 1, **s_template("learner")},
                              {"type": "collector", "replicas": 2, **s_template("collector")}]}}
    with Operator(k8s, "--open-api") as op:
        s_create(k8s, job)
        names = ["tasks-learner-0", "tasks-collector-0", "tasks-collector-1"]
        wait_for(lambda: all(k8s.find(f"{PODS}/{name}") for name in names), "three pods")
        wait_for(lambda: k8s.find(f"{SERVICES}/di-tasks"), "the one service")
        for rank, name in enumerate(names):
            s_move(k8s, name, "Running", f"10.79.0.{rank + 1}")
        s_await_phase(k8s, "tasks", "Running")
        path = "/v2alpha1/job/default.tasks/replicas"
        wait_for(lambda: op.call("GET", path)[2] == [f"10.79.0.{rank + 1}:22270" for rank in range(3)], "addresses by rank")
        check(op.call("POST", path, {"replicas": 2})[0] == 200 and op.call("DELETE", path, {"replicas": 1})[0] == 200, "taken")
        check(op.call("GET", "/v2alpha1/job/tasks/replicas")[0] == 400, "a bad id")
        check(op.call("GET", "/v2alpha1/job/default.nobody/replicas")[0] == 404, "an unknown job")
        for name in names:
            s_move(k8s, name, "Succeeded")
        s_await_phase(k8s, "tasks", "Succeeded")
        op.idle()
        k8s.kubectl("delete", "dijob", "tasks", "--wait=false")
        wait_for(lambda: not any(k8s.find(f"{PODS}/{name}") for name in names), "the pods to go")


# --- quiet, and more than one

def test_no_writes_in_steady_state(k8s):
    with Operator(k8s, "--open-api") as op:
        for number in range(5):
            s_start(k8s, s_job(f"calm-{number}", collectors=2, learners=1))
            for name in s_await_pods(k8s, f"calm-{number}", 4):
                s_move(k8s, name, "Running")
        for number in range(5):
            for role, count in (("coordinator", 1), ("collector", 2), ("learner", 1)):
                s_await_active(k8s, f"calm-{number}", role, count)
        wait_for(lambda: all(len(s_services(k8s, f"calm-{n}")) == 4 for n in range(5)), "the services")
        op.idle()
        wait_for(lambda: (lambda n: (time.sleep(1), len(k8s.audit(agent="tutti-operator", writes=True)) == n)[1])(
            len(k8s.audit(agent="tutti-operator", writes=True))), "the last event to be written")
        before = time.time()
        for number in range(5):  # changes that are none for us
            k8s.kubectl("annotate", "dijob", f"calm-{number}", "note=1")
            for name in s_pods(k8s, f"calm-{number}"):
                k8s.patch(f"{PODS}/{name}", {"metadata": {"annotations": {"note": "1"}}})
        with Operator(k8s, "--open-api") as other:  # and a fresh one has nothing to do either
            other.idle()
            time.sleep(2)
        writes = k8s.audit(agent="tutti-operator", writes=True, since=before)
        check(not writes, f"{[(e['verb'], e['objectRef']) for e in writes]}")
        for number in range(5):
            s_delete(k8s, f"calm-{number}")


def s_lease(k8s):
    return k8s.get("/apis/coordination.k8s.io/v1/namespaces/di-system/leases/tutti-operator")["spec"]


LEASE_S = 6  # for how long others respect a renewal
ONE_LEADS = ("--leader-elect", "--open-api", "--lease-namespace=di-system")


def s_leading(k8s, one, two):
    """Which of two operators leads, the other one, and the lease. That was the same before and after they were asked: who is held up between
    two questions loses it."""
    def look():
        lease = s_lease(k8s)
        leading = [op for op in (one, two) if op.metric("leader") == 1]
        if not leading or s_lease(k8s)["acquireTime"] != lease["acquireTime"]:
            return None
        check(len(leading) == 1, "one leader")
        return leading[0], two if leading[0] is one else one, lease
    return wait_for(look, "a leader")


def s_taken_after(k8s, number):
    """A leader ends by a signal: how many seconds after it had renewed the lease the other one took that, and with it the jobs."""
    with Operator(k8s, *ONE_LEADS) as one, Operator(k8s, *ONE_LEADS) as two:
        leader, other, held = s_leading(k8s, one, two)
        check(held["leaseDurationSeconds"] == LEASE_S, held)
        leader.stop(number)
        wait_for(lambda: other.metric("leader") == 1, "the other to lead")
        taken = s_lease(k8s)
        s_create(k8s, s_job("lead-2"))
        s_await_pods(k8s, "lead-2", 1)
        s_delete(k8s, "lead-2")
        return cluster.unix_time(taken["acquireTime"]) - cluster.unix_time(held["renewTime"])


def test_two_operators_one_leader(k8s):
    k8s.kubectl("create", "namespace", "di-system", check=False)
    with Operator(k8s, *ONE_LEADS) as first:
        wait_for(lambda: first.metric("leader") == 1, "a leader")
        with Operator(k8s, *ONE_LEADS) as second:
            _, other, _ = s_leading(k8s, first, second)
            s_start(k8s, s_job("lead"))
            wait_for(lambda: other.call("GET", f"{REPLICAS}?namespace=default&coordinator=lead-coordinator")[0] == 200,
                     "an answer of the other one")
            data = other.call("POST", REPLICAS, {"namespace": "default", "coordinator": "lead-coordinator",
                                                 "collectors": {"replicas": 1}})[2]
            check(len(data["collectors"]) == 1, "the other one makes replicas too")
            wait_for(lambda: len(s_services(k8s, "lead")) == 2, "the leader to see to it")
            s_delete(k8s, "lead")
    # Whoever cannot be heard for a few seconds does not get it freed, and the other one waits as after a crash.
    check(any(s_taken_after(k8s, signal.SIGTERM) < LEASE_S for _ in range(5)), "a leader that ends frees the lease")
    waited = s_taken_after(k8s, signal.SIGKILL)
    check(waited >= LEASE_S, f"taken {waited:.1f} s after a renewal")


UNDER_WAY = 32  # requests of an operator at a time (k8s/api/client.c)
HELD_UP = 120  # jobs: more than are written at once


def s_clear(k8s):
    """Jobs and pods; the garbage collector may take half a minute to learn of the kind."""
    k8s.kubectl("delete", "dijob", "--all", "--wait=false")
    k8s.api("DELETE", PODS, {"gracePeriodSeconds": 0})
    wait_for(lambda: not k8s.get(PODS)["items"], "the pods to go", DEADLINE)


def s_hold_up(k8s, ops, name):
    """Stop the leader amid many jobs: it has made some pods and not yet told of all of them. It, the other one and the jobs; None where it had."""
    leader, other, _ = s_leading(k8s, *ops)
    leader.process.send_signal(signal.SIGSTOP)  # so that it hears of all of them at once
    jobs = [f"{name}-{n}" for n in range(HELD_UP)]
    for job in jobs:
        s_create(k8s, s_job(job))
    leader.process.send_signal(signal.SIGCONT)
    wait_for(lambda: len(k8s.get(PODS)["items"]) >= HELD_UP // 4, "some of their pods", pause=0.001)
    leader.process.send_signal(signal.SIGSTOP)
    pods = {pod["metadata"]["labels"]["dijob-name"] for pod in k8s.get(PODS)["items"]}
    told = [event for event in k8s.get("/api/v1/namespaces/default/events")["items"]
            if event["reason"] == "SuccessfulCreate" and event["involvedObject"]["name"] in pods]
    if len(told) < len(pods):
        return leader, other, jobs
    leader.process.send_signal(signal.SIGCONT)
    wait_for(lambda: any(op.metric("leader") == 1 and op.is_idle() for op in ops), "an idle leader")  # it may be the other one by now
    s_clear(k8s)
    return None


def s_writes(k8s, since):
    return [(entry["verb"], entry["objectRef"]["resource"], entry["objectRef"].get("name"))
            for entry in k8s.audit(agent="tutti-operator", writes=True, since=since) if entry["objectRef"]["resource"] != "leases"]


def test_a_leader_that_was_stopped(k8s):
    """It goes on when another one leads: what it had decided before, and not written, is that one's to decide. Not under a sanitizer: what the
    program asks for is the same there."""
    if os.environ.get("TT_SANITIZE"):
        return
    k8s.kubectl("create", "namespace", "di-system", check=False)
    with Operator(k8s, *ONE_LEADS) as one, Operator(k8s, *ONE_LEADS) as two:
        held_up = next(filter(None, (s_hold_up(k8s, (one, two), f"held-{turn}") for turn in range(10))), None)
        check(held_up, "the leader had always told of each pod that it had made")
        leader, other, jobs = held_up
        wait_for(lambda: other.metric("leader") == 1, "the other to lead")
        for job in jobs:
            s_await_pods(k8s, job, 1)
            s_await_phase(k8s, job, "Created")
        other.idle()
        since = time.time()
        leader.process.send_signal(signal.SIGCONT)
        wait_for(lambda: "another replica looks after the jobs" in leader.text(), "it to hear of that")
        wait_for(lambda: sum(entry["verb"] == "get" and entry["objectRef"]["resource"] == "leases"
                             for entry in k8s.audit(agent="tutti-operator", since=since)) >= 2, "it to look at the lease twice")
        # What it was about to send at the very moment that it was stopped goes on with it, to names that are taken by then; what waited behind
        # that, three times as much and more, does not.
        writes = s_writes(k8s, since)
        check(len(writes) <= UNDER_WAY, f"it wrote {len(writes)} times: {writes}")
        check(all(len(s_pods(k8s, job)) == 1 for job in jobs), "a pod a job")
        s_clear(k8s)


def s_run_two(k8s, job):
    """Two collectors run; there may be one too many for a while, from a create of an operator that was killed."""
    pods = s_pods(k8s, job, "collector")
    for name, pod in pods.items():
        if pod["status"]["phase"] != "Running":
            s_move(k8s, name, "Running")  # 404: it was the one too many
    return len(pods) == 2 and all(pod["status"]["phase"] == "Running" for pod in pods.values())


def test_killed_at_random_moments(k8s):
    """Jobs go their way while the operator is killed again and again: no pod twice, none missing, every phase right."""
    rng = random.Random(7)
    ended = threading.Event()

    def chaos():
        longest = 0.8 * SLOW
        while not ended.is_set():
            op = Operator(k8s, "--open-api", ready=False)
            ended.wait(rng.uniform(0.05, longest))
            op.stop(signal.SIGKILL)
            longest *= 1.02  # a slow machine gets there, too
    thread = threading.Thread(target=chaos)
    thread.start()
    names = [f"chaos-{n}" for n in range(6)]
    try:
        for name in names:
            s_create(k8s, s_job(name, collectors=2, cleanPodPolicy="All" if name.endswith(("0", "3")) else "Running"))
        for name in names:
            s_await_pods(k8s, name, 1, "coordinator")
            s_move(k8s, f"{name}-coordinator", "Running")
        for name in names:
            wait_for(lambda: s_run_two(k8s, name), lambda: f"two collectors of {name}, not {list(s_pods(k8s, name))}", DEADLINE)
        for name in names:
            s_await_phase(k8s, name, "Running")
            wait_for(lambda: len(s_services(k8s, name)) == 3, f"the services of {name}", DEADLINE)
            wait_for(lambda: len(s_pods(k8s, name)) == 3, lambda: f"three pods, not {list(s_pods(k8s, name))}", DEADLINE)
        for name in names:
            s_move(k8s, f"{name}-coordinator", "Succeeded")
        for name in names:
            s_await_phase(k8s, name, "Succeeded")
            s_await_pods(k8s, name, 0 if name.endswith(("0", "3")) else 1)
            wait_for(lambda: not s_services(k8s, name), f"the services of {name} to go", DEADLINE)
    finally:
        ended.set()
        thread.join()
    with Operator(k8s) as op:
        op.idle()
        for name in names:
            check(s_phase(k8s, name) == "Succeeded", "and so it stays")
            s_delete(k8s, name)


def test_a_server_that_comes_and_goes(k8s):
    with Operator(k8s, "--open-api") as op:
        s_start(k8s, s_job("there", collectors=1))
        for part in ("kube-apiserver", "etcd"):
            k8s.stop_part(part, signal.SIGKILL)
            time.sleep(2)  # requests of the operator are to fail meanwhile
            check(k8s.http(op.probes, "/healthz")[0] == 200, "alive without a server")
            check(op.call("GET", f"{REPLICAS}?namespace=default&coordinator=there-coordinator")[0] == 200, "from its stores")
            k8s.start_part(part)
            k8s.await_api()
            name = f"after-{part}"
            wait_for(lambda: k8s.find(f"{JOBS}/{name}") or s_create(k8s, s_job(name)), "the server to take a job")
            s_await_pods(k8s, name, 1, "coordinator")
            s_await_phase(k8s, name, "Created")
            s_delete(k8s, name)
        s_delete(k8s, "there")


def test_the_command(k8s):
    """Its words, and its end."""
    done = k8s.run_in([TUTTI, "operator", "--kubeconfig", "/proc/nowhere"], check=False)
    check(done.returncode == 66 and "/proc/nowhere" in done.stderr, f"{done.returncode} {done.stderr}")
    done = k8s.run_in([TUTTI, "operator", "--gpus-per-node", "x"], check=False)
    check(done.returncode == 64 and "gpus-per-node" in done.stderr, f"{done.returncode} {done.stderr}")
    with Operator(k8s) as op:
        done = k8s.run_in([TUTTI, "operator", f"--server-bind-address={guard.ADDRESS}:{op.api}"], check=False)
        check(done.returncode == 73 and "in use" in done.stderr, f"{done.returncode} {done.stderr}")
        check(k8s.http(op.probes, "/healthz")[0] == 200 and k8s.http(op.probes, "/nope")[0] == 404, "probes")


if __name__ == "__main__":
    cluster.main(test_from_created_to_succeeded, test_every_cleanup_policy, test_the_replicas_api,
                 test_a_caller_whose_address_is_not_known_yet, test_a_failed_replica_is_replaced_once, test_a_role_that_can_only_fail,
                 test_a_typo_fails_the_job,
                 test_learners_with_several_gpus, test_declared_replicas, test_a_refused_template, test_edits_behind_its_back,
                 test_a_pod_of_that_name_that_is_not_ours, test_the_same_name_again, test_the_key_is_the_jobs_own,
                 test_the_key_of_an_older_operator, test_what_a_batch_job_has, test_an_embedded_job_is_left_alone, test_tasks,
                 test_no_writes_in_steady_state, test_two_operators_one_leader, test_a_leader_that_was_stopped, test_killed_at_random_moments,
                 test_a_server_that_comes_and_goes, test_the_command,
                 controllers=True, audit=True)
