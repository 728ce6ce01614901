#!/usr/bin/env python3
"""v2alpha1 served beside v1alpha1: its samples by real kubectl to their end, jobs of both shapes written and read through both
versions without the loss of a byte, pods that fail, tasks that are scaled, and DI-orchestrator's API of that version."""

import glob
import json
import re
import sys

sys.dont_write_bytecode = True
import cluster
import test_operator as rig
from cluster import check, wait_for

GROUP = "diengine.opendilab.org"
VERSIONS = ("v1alpha1", "v2alpha1")
PODS, SERVICES = rig.PODS, rig.SERVICES
SAMPLES = f"{rig.SOURCE}/k8s/samples/v2alpha1"
DEADLINE = int(rig.DEADLINE)  # kubectl takes no fractions


# --- seeing

def s_ready(k8s):
    """The schemas as k8s/overlays/v2alpha1 has them; the rest of that overlay needs a node."""
    if getattr(k8s, "knows_dijobs", False):
        return
    parts = k8s.kubectl("kustomize", f"{rig.SOURCE}/k8s/overlays/v2alpha1").stdout.split("\n---\n")
    crds = [text for text in parts if "kind: CustomResourceDefinition" in text]
    check(len(crds) == 2, f"{len(crds)} schemas in the overlay")
    k8s.kubectl("apply", "-f", "-", input="\n---\n".join(crds))
    wait_for(lambda: all(k8s.find(s_path(version)) for version in VERSIONS), "both versions to be served")
    k8s.await_kind("dijob")
    k8s.restart_part("kube-controller-manager")  # or its garbage collector learns of the kind half a minute later
    k8s.knows_dijobs = True


def s_kind(version):
    """How kubectl names the kind in one version."""
    return f"dijobs.{version}.{GROUP}"


def s_path(version, name=None):
    return f"/apis/{GROUP}/{version}/namespaces/default/dijobs" + (f"/{name}" if name else "")


def s_read(k8s, name, part="spec"):
    """A part of a job, byte by byte the same in both versions."""
    while True:
        one, two = (k8s.get(s_path(version, name)) for version in VERSIONS)
        if one["metadata"]["resourceVersion"] == two["metadata"]["resourceVersion"]:
            break
    for seen, version in zip((one, two), VERSIONS):
        check(seen["apiVersion"] == f"{GROUP}/{version}" and seen["kind"] == "DIJob", f"{seen['apiVersion']} {seen['kind']}")
    texts = [json.dumps(seen.get(part, {})) for seen in (one, two)]
    check(texts[0] == texts[1], f"{part} of {name}\nv1alpha1: {texts[0]}\nv2alpha1: {texts[1]}")
    return one.get(part, {})


def s_pods(k8s, job):
    """{name: pod} of those that are not on their way out."""
    items = k8s.get(f"{PODS}?labelSelector=diengine/job={job}")["items"]
    return {pod["metadata"]["name"]: pod for pod in items if "deletionTimestamp" not in pod["metadata"]}


def s_uids(k8s, job):
    return {name: pod["metadata"]["uid"] for name, pod in s_pods(k8s, job).items()}


def s_ranks(k8s, job):
    return {name: int(pod["metadata"]["annotations"]["diengine/rank"]) for name, pod in s_pods(k8s, job).items()}


def s_env(pod):
    return {item["name"]: item.get("value") for item in pod["spec"]["containers"][0]["env"]}


def s_await_phase(k8s, name, phase):
    k8s.kubectl("wait", f"dijob/{name}", f"--for=jsonpath={{.status.phase}}={phase}", f"--timeout={DEADLINE}s",
                deadline=DEADLINE + 20)
    return s_read(k8s, name, "status")


def s_end_pods(k8s, how, *names):
    """What the containers of these pods do."""
    k8s.kubectl("annotate", "--overwrite", "pods", *names, f"tutti-test/ends={how}")


def s_delete(k8s, name):
    k8s.kubectl("delete", "dijob", name, "--wait=false")
    wait_for(lambda: not k8s.get(f"{PODS}?labelSelector=diengine/job={name}")["items"]
             and not k8s.find(f"{SERVICES}/di-{name}"), f"{name} to leave nothing", DEADLINE)


class Phases:
    """The phases that a job goes through from now on, each in its turn: what a watch of one version tells."""

    def __init__(self, k8s, name, version):
        self.k8s, self.phases = k8s, []
        self.path = f"{s_path(version)}?watch=1&timeoutSeconds=1&fieldSelector=metadata.name={name}"
        self.at = k8s.get(s_path(version))["metadata"]["resourceVersion"]

    def seen(self):
        """From where the last look ended: an API server remembers a hundred changes, or those of a minute."""
        code, text = self.k8s.http(6443, f"{self.path}&resourceVersion={self.at}")
        check(code == 200, f"{code}: {text}")
        for event in map(json.loads, text.splitlines()):
            check(event["type"] != "ERROR", f"{event}")
            self.at = event["object"]["metadata"]["resourceVersion"]
            phase = event["object"].get("status", {}).get("phase")
            if phase and phase != (self.phases[-1] if self.phases else None):
                self.phases.append(phase)
        return self.phases

    def expect(self, *phases):
        """All of them so far."""
        wait_for(lambda: len(self.seen()) >= len(phases), lambda: f"{phases}, not {self.phases}", DEADLINE)
        check(self.seen() == list(phases), f"{self.phases}, expected {phases}")


# --- making

def s_job(name, version="v2alpha1", **spec):
    return {"apiVersion": f"{GROUP}/{version}", "kind": "DIJob", "metadata": {"name": name}, "spec": spec}


def s_task(type, replicas=None, annotations=None, **fields):
    template = rig.s_template(fields.get("name", type))["template"]
    if annotations:
        template["metadata"] = {"annotations": annotations}
    return {"type": type, **({"replicas": replicas} if replicas else {}), **fields, "template": template}


def s_start(k8s, job):
    k8s.kubectl("create", "-f", "-", input=json.dumps(job))
    s_await_phase(k8s, job["metadata"]["name"], "Running")


# --- the samples

def s_check_pods(k8s, job):
    """Names, ranks, addresses and environment, from the spec alone."""
    name, tasks = job["metadata"]["name"], job["spec"]["tasks"]
    places = [(task, task.get("name", task["type"]), rank) for task in tasks for rank in range(task.get("replicas", 1))]
    full = lambda called, rank: f"{name}-{called}-{rank}.di-{name}.default.svc.cluster.local"
    pods = s_pods(k8s, name)
    check(set(pods) == {f"{name}-{called}-{rank}" for _, called, rank in places}, f"the pods {sorted(pods)}")
    for number, (task, called, rank) in enumerate(places):
        pod = pods[f"{name}-{called}-{rank}"]
        metadata, spec = pod["metadata"], pod["spec"]
        check((spec["hostname"], spec["subdomain"], spec["restartPolicy"]) == (metadata["name"], f"di-{name}", "Never"),
              f"{spec['hostname']} {spec['subdomain']} {spec['restartPolicy']}")
        labels = {"job": name, "operator": "di-operator", "pod": metadata["name"], "task-type": task["type"], "task-name": called}
        check({key: metadata["labels"].get(f"diengine/{key}") for key in labels} == labels, f"{metadata['labels']}")
        notes = {"replicas": str(len(places)), "rank": str(number), "task-rank": str(rank), "node": ""}
        check({key: metadata["annotations"].get(f"diengine/{key}") for key in notes} == notes, f"{metadata['annotations']}")
        own = f"DI_{called.upper().replace('-', '_')}_NODES"
        wanted = {"DI_JOB_ID": f"default/{name}", "DI_RANK": str(number),
                  "DI_SERVER_URL": "http://di-server.di-system:8080",
                  "DI_NODES": ",".join(full(other, at) for _, other, at in places),
                  own: ",".join(full(other, at) for there, other, at in places if there["type"] == task["type"])}
        env = s_env(pod)
        check({key: env.get(key) for key in wanted} == wanted, f"{env}\nwanted {wanted}")
        given = [item["name"] for item in task["template"]["spec"]["containers"][0].get("env", [])]
        check(set(env) == {*wanted, *given}, f"{sorted(env)}")
        owner = metadata["ownerReferences"]
        check(len(owner) == 1 and owner[0]["uid"] == job["metadata"]["uid"] and owner[0]["controller"], f"{owner}")
        volumes = [volume["name"] for volume in spec.get("volumes", [])]
        check(all(volume["name"] in volumes for volume in job["spec"].get("volumes", [])), f"{volumes}")
    service = wait_for(lambda: k8s.find(f"{SERVICES}/di-{name}"), "the service")["spec"]
    check(service["clusterIP"] == "None" and [(p["name"], p["port"]) for p in service["ports"]] == [("di-port", 22270)]
          and service["selector"] == {"diengine/job": name, "diengine/operator": "di-operator"}, f"{service}")


def s_run_sample(k8s, op, path):
    written = json.loads(k8s.kubectl("create", "--dry-run=client", "-o", "json", "-f", path).stdout)
    name = written["metadata"]["name"]
    said = k8s.kubectl("create", "-f", path).stdout
    check(said == f"dijob.{GROUP}/{name} created\n", said)
    spec = s_read(k8s, name)
    check(spec == {"cleanPodPolicy": "Running", **written["spec"]}, f"{spec}\nwritten: {written['spec']}")
    status = s_await_phase(k8s, name, "Running")
    job = k8s.get(s_path("v2alpha1", name))
    s_check_pods(k8s, job)
    count = len(s_pods(k8s, name))
    counts = {task.get("name", task["type"]): {"Running": task.get("replicas", 1)} for task in spec["tasks"]}
    check((status["replicas"], status["readyReplicas"], status["taskStatus"]) == (count, count, counts), f"{status}")
    s_end_pods(k8s, "after=0s", *s_pods(k8s, name))
    status = s_await_phase(k8s, name, "Succeeded")
    conditions = rig.s_conditions(status)
    check(conditions == {"Pending": ("False", "JobPending"), "Starting": ("False", "JobStarting"),
                         "Running": ("False", "JobRunning"), "Succeeded": ("True", "JobSucceeded")}, f"{conditions}")
    left = 0 if spec["cleanPodPolicy"] == "All" else count
    wait_for(lambda: len(s_pods(k8s, name)) == left and not k8s.find(f"{SERVICES}/di-{name}"), f"{left} pods, no service", DEADLINE)
    op.idle()
    check(s_read(k8s, name) == spec, f"the spec of {name} after its life")
    s_delete(k8s, name)


def test_the_samples_run(k8s):
    s_ready(k8s)
    files = [path for path in sorted(glob.glob(f"{SAMPLES}/**/*.yaml", recursive=True)) if not path.endswith("restart.yaml")]
    check(len(files) >= 6, f"{files}")
    with rig.Operator(k8s) as op:
        for path in files:
            s_run_sample(k8s, op, path)


def test_failing_pods(k8s):
    """The sample that fails: once more, then no more."""
    s_ready(k8s)
    name = "job-restart"
    with rig.Operator(k8s) as op:
        phases = Phases(k8s, name, "v2alpha1")
        k8s.kubectl("create", "-f", f"{SAMPLES}/e2e/dijob-restart.yaml")
        phases.expect("Pending", "Starting", "Running")
        before = s_uids(k8s, name)
        bad, good = f"{name}-failing-1", f"{name}-failing-0"
        s_end_pods(k8s, "phase=Failed,code=1", bad)
        phases.expect("Pending", "Starting", "Running", "Restarting", "Starting", "Running")
        after = s_uids(k8s, name)
        check(set(after) == {bad, good} and after[good] == before[good] and after[bad] != before[bad], f"{before} {after}")
        check(s_ranks(k8s, name) == {good: 0, bad: 1}, f"{s_ranks(k8s, name)}")
        status = s_read(k8s, name, "status")
        check(status["restarts"] == 1 and status["readyReplicas"] == 2, f"{status}")
        s_end_pods(k8s, "phase=Failed,code=1", bad)
        phases.expect("Pending", "Starting", "Running", "Restarting", "Starting", "Running", "Failed")
        op.idle()
        status = s_read(k8s, name, "status")
        check(status["restarts"] == 1 and rig.s_conditions(status)["Failed"] == ("True", "JobFailed"), f"{status}")
        check(status["taskStatus"] == {"failing": {"Running": 1, "Failed": 1}}, f"{status}")
        check(s_uids(k8s, name) == after, "with cleanPodPolicy None every pod stays")
        wide = k8s.kubectl("get", s_kind("v2alpha1"), name, "-o", "wide").stdout
        check(re.fullmatch(r"NAME +PHASE +AGE +REASON +COLLECTORS +LEARNERS +READY +REPLICAS +RESTARTS +RESCHEDULES *\n"
                           rf"{name} +Failed +\S+ +BackoffLimitExceeded +1 +2 +1 +0 *\n", wide), wide)
        told = lambda: {(kind, reason) for kind, reason, _ in rig.s_events(k8s, name)}
        wait_for(lambda: {("Normal", "JobPending"), ("Normal", "JobStarting"), ("Normal", "JobRunning"), ("Warning", "JobRestarting"),
                          ("Warning", "JobFailed")} <= told(), lambda: f"the events, not {told()}", DEADLINE)
        s_delete(k8s, name)


# --- scaling

def s_scale(k8s, version, name, task, replicas):
    k8s.kubectl("patch", s_kind(version), name, "--type=json", "-p",
                json.dumps([{"op": "replace", "path": f"/spec/tasks/{task}/replicas", "value": replicas}]))


def test_tasks_are_scaled(k8s):
    s_ready(k8s)
    name = "scaled"
    with rig.Operator(k8s, "--open-api") as op:
        phases = Phases(k8s, name, "v1alpha1")
        s_start(k8s, s_job(name, tasks=[s_task("learner"), s_task("collector", 2)]))
        first = s_uids(k8s, name)
        s_scale(k8s, "v2alpha1", name, 1, 4)
        again = ["Rescheduling", "Starting", "Running"]
        phases.expect("Pending", "Starting", "Running", *again)
        uids = s_uids(k8s, name)
        check(all(uids[pod] == uid for pod, uid in first.items()), f"{first} {uids}")
        check(s_ranks(k8s, name) == {f"{name}-learner-0": 0, **{f"{name}-collector-{i}": i + 1 for i in range(4)}},
              f"{s_ranks(k8s, name)}")
        new = s_env(s_pods(k8s, name)[f"{name}-collector-3"])
        check(new["DI_RANK"] == "4" and new["DI_NODES"].count(",") == 4 and new["DI_COLLECTOR_NODES"].count(",") == 3, f"{new}")
        by_rank = sorted((int(pod["metadata"]["annotations"]["diengine/rank"]), pod["status"]["podIP"])
                         for pod in s_pods(k8s, name).values())
        check(op.call("GET", f"/v2alpha1/job/default.{name}/replicas")[2] == [f"{ip}:22270" for _, ip in by_rank], f"{by_rank}")
        s_scale(k8s, "v1alpha1", name, 1, 1)
        phases.expect("Pending", "Starting", "Running", *again, *again)
        check(s_uids(k8s, name) == {pod: uid for pod, uid in first.items() if not pod.endswith("collector-1")},
              f"{s_uids(k8s, name)}: those that were first")
        s_scale(k8s, "v1alpha1", name, 0, 2)  # the free rank, though the task comes first
        phases.expect("Pending", "Starting", "Running", *again, *again, *again)
        check(s_ranks(k8s, name) == {f"{name}-learner-0": 0, f"{name}-collector-0": 1, f"{name}-learner-1": 2},
              f"{s_ranks(k8s, name)}")
        op.idle()
        status = s_read(k8s, name, "status")
        check((status["reschedules"], status.get("restarts", 0), status["replicas"]) == (3, 0, 3), f"{status}")
        check(status["taskStatus"] == {"learner": {"Running": 2}, "collector": {"Running": 1}}, f"{status}")
        k8s.kubectl("delete", "pod", f"{name}-learner-0", "--wait=false")  # nobody's failure
        wait_for(lambda: s_read(k8s, name, "status").get("reschedules") == 4, "a new learner", DEADLINE)
        s_await_phase(k8s, name, "Running")
        check(s_ranks(k8s, name)[f"{name}-learner-0"] == 0, f"{s_ranks(k8s, name)}")
        s_delete(k8s, name)


def test_a_preemptible_job_moves_as_one(k8s):
    s_ready(k8s)
    name = "moves"
    with rig.Operator(k8s):
        s_start(k8s, s_job(name, preemptible=True, tasks=[s_task("none", 2, name="my-task")]))
        first = set(s_uids(k8s, name).values())
        s_scale(k8s, "v2alpha1", name, 0, 3)
        wait_for(lambda: s_read(k8s, name, "status").get("reschedules") == 1, "Rescheduling", DEADLINE)
        s_await_phase(k8s, name, "Running")
        check(len(s_uids(k8s, name)) == 3 and not first & set(s_uids(k8s, name).values()), "all of them are new")
        check(all(s_env(pod)["DI_MY_TASK_NODES"].count(",") == 2 for pod in s_pods(k8s, name).values()), "and know each other")
        s_delete(k8s, name)


# --- the API of this version

def test_the_replicas_api(k8s):
    s_ready(k8s)
    name = "asked"
    path = f"/v2alpha1/job/default.{name}/replicas"
    late = {"tutti-test/starts": "never"}
    with rig.Operator(k8s, "--open-api") as op:
        k8s.kubectl("create", "-f", "-", input=json.dumps(s_job(name, tasks=[s_task("learner"), s_task("evaluator", None, late)])))
        s_await_phase(k8s, name, "Starting")
        pods = s_pods(k8s, name)
        wait_for(lambda: s_pods(k8s, name)[f"{name}-learner-0"]["status"].get("podIP"), "the learner's address")
        address = s_pods(k8s, name)[f"{name}-learner-0"]["status"]["podIP"] + ":22270"
        wait_for(lambda: op.call("GET", path)[2] == [address, ""], f"{address}, and a rank without one")
        check(op.call("GET", path)[:2] == (200, "successfully get replicas"), f"{op.call('GET', path)}")
        before = json.dumps(s_read(k8s, name))
        check(op.call("POST", path, {"replicas": 5})[:2] == (200, "successfully create replicas"), "POST is taken")
        check(op.call("DELETE", path, {"replicas": 1})[:2] == (200, "successfully delete replicas"), "DELETE is taken")
        op.idle()
        check(json.dumps(s_read(k8s, name)) == before and s_uids(k8s, name).keys() == pods.keys(), "and change nothing")
        for bad, code in (("asked", 400), (".asked", 400), ("default.", 400), ("default.nobody", 404), ("other.asked", 404)):
            check(op.call("GET", f"/v2alpha1/job/{bad}/replicas")[0] == code, f"{bad}: expected {code}")
        check(op.call("POST", path, {"replicas": -1})[0] == 400 and op.call("POST", path, {"replicas": "two"})[0] == 400, "numbers")
        check(op.call("PATCH", path, {})[0] == 501, "PATCH")
        s_delete(k8s, name)
        k8s.kubectl("create", "-f", "-", input=json.dumps(s_job(name, tasks=[s_task("learner"), s_task("learner", name="b")])))
        status = s_await_phase(k8s, name, "Failed")
        check(rig.s_conditions(status)["Failed"] == ("True", "JobFailed"), f"{status}")
        check(op.call("GET", path)[2] is None, "a job without pods")
        s_delete(k8s, name)


# --- nothing is lost

def s_roles(name, version):
    return s_job(name, version, group="g", engine="di-engine", priority="high", priorityClassName="", cleanPodPolicy="ALL",
                 preemptible=True, backoffLimit=0, volumes=[{"name": "v", "emptyDir": {"sizeLimit": "1Mi"}}],
                 coordinator=rig.s_template("coordinator", tolerations=[{"operator": "Exists"}], enableServiceLinks=False,
                                            hostAliases=[{"ip": "10.1.2.3", "hostnames": ["z", "a"]}]),
                 collector={"replicas": 2, **rig.s_template("collector")}, learner={"replicas": 1, **rig.s_template("learner")},
                 aggregator={"replicas": 0, **rig.s_template("aggregator")})


def s_tasks(name, version):
    return s_job(name, version, group="g", cleanPodPolicy="Running", backoffLimit=7, preemptible=False, priority="normal",
                 volumes=[{"name": "v", "emptyDir": {}}],
                 tasks=[s_task("learner", name="l"), s_task("none", 2, {"tutti-test/drains": "after=0s"}, name="b")])


def s_replace(k8s, kind, name, form):
    """What was read is written; again where the operator has written a status in between, as the server's words ask for."""
    def written():
        text = k8s.kubectl("get", kind, name, "-o", form).stdout
        done = k8s.kubectl("replace", "-f", "-", input=text, check=False)
        check(done.returncode == 0 or "the object has been modified" in done.stderr, done.stderr)
        return done.returncode == 0
    wait_for(written, f"a replace of {name}", DEADLINE)


def s_handle(k8s, name, version):
    """What people do to a job, in one version; each time the spec is what it was but for what was changed."""
    kind = s_kind(version)
    spec = s_read(k8s, name)
    same = lambda what: check(json.dumps(s_read(k8s, name)) == json.dumps(spec), f"{what} in {version} changed the spec of {name}")
    k8s.kubectl("label", "--overwrite", kind, name, f"seen={version}")
    same("label")
    k8s.kubectl("annotate", "--overwrite", kind, name, f"seen={version}")
    same("annotate")
    s_replace(k8s, kind, name, "json")
    same("replace of what was read")
    s_replace(k8s, kind, name, "yaml")
    same("replace of the YAML")
    k8s.kubectl("patch", kind, name, "--type=merge", "-p", json.dumps({"spec": {"group": version}}))
    spec["group"] = version
    same("patch")
    scaled = k8s.kubectl("scale", kind, name, "--replicas=3", check=False)
    if "tasks" in spec:
        check(scaled.returncode, f"kubectl scale of a job of tasks: {scaled.stdout}")
        same("a scale that is refused")
        return
    check(scaled.returncode == 0, scaled.stderr)
    spec["collector"]["replicas"] = 3
    same("scale")
    rig.s_await_pods(k8s, name, 3, "collector")
    k8s.kubectl("scale", kind, name, "--current-replicas=3", "--replicas=2")
    spec["collector"]["replicas"] = 2
    same("scale back")
    rig.s_await_pods(k8s, name, 2, "collector")


def s_other_pods(k8s, name):
    """UIDs of all but the collectors, which are scaled."""
    return {pod["metadata"]["uid"] for pod in k8s.get(PODS)["items"]
            if pod["metadata"]["name"].startswith(name) and "-collector-" not in pod["metadata"]["name"]}


def s_keep(k8s, job):
    """Made through one version and handled through both; its pods never notice."""
    name, version = job["metadata"]["name"], job["apiVersion"].split("/")[1]
    k8s.kubectl("create", "-f", "-", input=json.dumps(job))
    check(s_read(k8s, name) == job["spec"], f"{s_read(k8s, name)}\nwanted {job['spec']}")
    s_await_phase(k8s, name, "Running")
    before = s_other_pods(k8s, name)
    for one in reversed(VERSIONS):
        s_handle(k8s, name, one)
    check(s_other_pods(k8s, name) == before, "the pods are the same")
    metadata = s_read(k8s, name, "metadata")
    check(metadata["labels"]["seen"] == metadata["annotations"]["seen"] == VERSIONS[0], f"{metadata}")
    k8s.kubectl("delete", f"{s_kind(version)}", name, "--wait=false")


def s_apply(k8s, job):
    """`kubectl apply` by turns in both versions: what is applied is what is there, nothing more and nothing less."""
    name, more = job["metadata"]["name"], {"group": "h", "backoffLimit": 9}
    fewer = {key: value for key, value in job["spec"].items() if key not in ("priority", "backoffLimit")}
    for version, spec in ((VERSIONS[0], job["spec"]), (VERSIONS[1], {**job["spec"], **more}), (VERSIONS[0], fewer),
                          (VERSIONS[1], job["spec"])):
        k8s.kubectl("apply", "-f", "-", input=json.dumps({**job, "apiVersion": f"{GROUP}/{version}", "spec": spec}))
        check(s_read(k8s, name) == spec, f"{s_read(k8s, name)}\napplied {spec}")
    k8s.kubectl("delete", "dijob", name, "--wait=false")


def test_nothing_is_lost_between_the_versions(k8s):
    s_ready(k8s)
    with rig.Operator(k8s):
        s_keep(k8s, s_roles("roles", "v2alpha1"))
        s_keep(k8s, s_tasks("tasks", "v1alpha1"))
        s_apply(k8s, s_roles("applied-roles", "v1alpha1"))
        s_apply(k8s, s_tasks("applied-tasks", "v2alpha1"))
        wait_for(lambda: not k8s.get(PODS)["items"], "the pods to go", DEADLINE)


def test_columns(k8s):
    """The same in both versions, for both shapes."""
    s_ready(k8s)
    with rig.Operator(k8s) as op:
        for make in (s_roles, s_tasks):
            s_start(k8s, make(make.__name__.replace("s_", "a-"), "v2alpha1"))
        op.idle()
        for version in VERSIONS:
            narrow = k8s.kubectl("get", s_kind(version)).stdout
            check(re.fullmatch(r"NAME +PHASE +AGE +REASON *\na-roles +Running +\S+ *\na-tasks +Running +\S+ *\n", narrow), narrow)
            wide = k8s.kubectl("get", s_kind(version), "-o", "wide").stdout
            check(re.fullmatch(r"NAME +PHASE +AGE +REASON +COLLECTORS +LEARNERS +READY +REPLICAS +RESTARTS +RESCHEDULES *\n"
                               r"a-roles +Running +\S+ +2 +1 *\na-tasks +Running +\S+ +3 +3 +0 +0 *\n", wide), wide)
        k8s.kubectl("delete", "dijob", "--all", "--wait=false")
        wait_for(lambda: not k8s.get(PODS)["items"], "the pods to go", DEADLINE)


cluster.main(test_the_samples_run, test_failing_pods, test_tasks_are_scaled, test_a_preemptible_job_moves_as_one,
             test_the_replicas_api, test_nothing_is_lost_between_the_versions, test_columns, fake_kubelet="node-1",
             controllers="garbage-collector-controller,namespace-controller,serviceaccount-controller")
