#!/usr/bin/env python3
"""What k8s/ gives a cluster, on a real API server: the schema takes every sample and refuses what is wrong, in the words
that the guide promises; nothing is lost between the versions; the deployment is whole and its rights are the least."""

import copy
import glob
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
import cluster

cluster.require()

SOURCE = os.environ["TT_SOURCE_DIR"]
K8S = os.path.join(SOURCE, "k8s")
API = "/apis/diengine.opendilab.org/{}/namespaces/default/dijobs"
V1, V2 = API.format("v1alpha1"), API.format("v2alpha1")
ANNOTATION = "kubectl.kubernetes.io/last-applied-configuration"
OPERATOR = "system:serviceaccount:di-system:di-operator"
EMBEDDED = "system:serviceaccount:default:cartpole-coordinator"


def template(**spec):
    return {"spec": {"containers": [{"name": "di-container", "image": "i"}], **spec}}


def job(name="x", **spec):
    return {"apiVersion": "diengine.opendilab.org/v1alpha1", "kind": "DIJob", "metadata": {"name": name},
            "spec": spec or {"coordinator": {"template": template()}}}


def roles(**spec):
    return job(coordinator={"template": template()}, **spec)


def container(**fields):
    return job(coordinator={"template": template(containers=[{"name": "di-container", **fields}])})


def policy(action, operator, *values):
    return {"rules": [{"action": action, "onExitCodes": {"operator": operator, "values": list(values)}}]}


def task(**fields):
    return {"type": "none", "name": "a", "template": template(), **fields}


NAME = "Invalid name {}, expected at most 45 lower case letters, digits and dashes, a letter first and no dash last"
NEEDS_OPERATOR = ("spec.suspend, spec.activeDeadlineSeconds and spec.ttlSecondsAfterFinished need an operator, and spec.managedBy "
                  "is coordinator")
POLICY = "Invalid CleanPodPolicy {}, expected in [None, Running, All]"
# (what is wrong with it, the words that the user reads)
BAD = [
    (roles(cleanPodPolicy="Foo"), "spec.cleanPodPolicy: Invalid value: \"string\": " + POLICY.format("Foo")),
    (roles(cleanPodPolicy="running"), POLICY.format("running")),
    (roles(cleanPodPolicy=1), "must be of type string"),
    (job("q" * 46), "metadata.name: Invalid value: \"object\": " + NAME.format("q" * 46)),
    (job("1st"), NAME.format("1st")),
    (job("a.b"), NAME.format("a.b")),
    (job("a-"), "lowercase RFC 1123 subdomain"),
    (job(group="g"), "spec.coordinator: Required value: expected spec.coordinator, or spec.tasks"),
    (job(coordinator={}), "spec.coordinator.template: Required value"),
    (job(coordinator={"template": {}}), "spec.coordinator.template.spec: Required value"),
    (job(coordinator={"template": {"spec": {}}}), "spec.coordinator.template.spec.containers: Required value"),
    (roles(collector={"replicas": 1}), "spec.collector.template: Required value"),
    (roles(collector={"template": template(), "replicas": -1}), "spec.collector.replicas in body should be greater than or equal to 0"),
    (roles(collector={"template": template(), "replicas": 65537}), "should be less than or equal to 65536"),
    (roles(learner={"template": template(), "replicas": 257}), "should be less than or equal to 256"),
    (roles(learner={"template": template(), "replicas": "two"}), "spec.learner.replicas in body must be of type integer"),
    (roles(collector={"template": template(), "replicas": 9, "maxReplicas": 8}), "spec.collector.replicas: Forbidden: expected at most maxReplicas"),
    (roles(learner={"template": template(), "replicas": 1, "minReplicas": 2}), "spec.learner.replicas: Forbidden: expected at least minReplicas"),
    (roles(learner={"template": template(), "minReplicas": 3, "maxReplicas": 2}), "spec.learner.minReplicas: Forbidden: expected at most maxReplicas"),
    (roles(learner={"template": template(), "maxReplicas": 0}), "spec.learner.maxReplicas in body should be greater than or equal to 1"),
    (roles(aggregator={"replicas": 65}), "should be less than or equal to 64"),
    (roles(tasks=[task()]), "spec.tasks: Forbidden: spec.tasks cannot stand beside spec.coordinator"),
    (job(tasks=[task()], collector={"template": template()}), "spec.tasks cannot stand beside"),
    (job(tasks=[]), "should have at least 1 items"),
    (job(tasks=[task(type="actor")]), "Unsupported value: \"actor\": supported values: \"learner\", \"collector\", \"evaluator\", \"none\""),
    (job(tasks=[task(replicas=0)]), "spec.tasks[0].replicas in body should be greater than or equal to 1"),
    (job(tasks=[task(name="A_b")]), "spec.tasks[0].name in body should match"),
    (job(tasks=[{"type": "none", "name": "a"}]), "spec.tasks[0].template: Required value"),
    (job("j" * 45, tasks=[task(name="t" * 13)]), "the names of the job and of a task have more than 57 characters together"),
    (job(tasks=[task()], backoffLimit=-1), "spec.backoffLimit in body should be greater than or equal to 0"),
    (job(tasks=[task()], priority="urgent"), "Unsupported value: \"urgent\""),
    (roles(podFailurePolicy={}), "spec.podFailurePolicy.rules: Required value"),
    (roles(podFailurePolicy=policy("FailIndex", "In", 1)), "Unsupported value: \"FailIndex\": supported values: \"FailJob\", \"Count\""),
    (roles(podFailurePolicy=policy("FailJob", "Is", 1)), "Unsupported value: \"Is\": supported values: \"In\", \"NotIn\""),
    (roles(podFailurePolicy=policy("FailJob", "In")), "onExitCodes.values in body should have at least 1 items"),
    (roles(podFailurePolicy=policy("FailJob", "In", 1, 0)), "spec.podFailurePolicy.rules[0].onExitCodes.values: Forbidden: 0 is no failure"),
    (roles(podFailurePolicy=policy("FailJob", "In", 256)), "should be less than or equal to 255"),
    (roles(podFailurePolicy=policy("FailJob", "In", 2, 2)), "values[1]: Duplicate value"),
    (roles(podFailurePolicy={"rules": 21 * policy("Count", "In", 1)["rules"]}), "must have at most 20 items"),
    (roles(podFailurePolicy={"rules": [{"action": "FailJob"}]}), "rules[0].onExitCodes: Required value"),
    (roles(podFailurePolicy={"rules": [{"action": "Ignore", "onPodConditions": []}]}), "unknown field \"spec.podFailurePolicy.rules[0].onPodConditions\""),
    (roles(engine="torch"), "supported values: \"tutti\", \"di-engine\""),
    (roles(managedBy="me"), "supported values: \"operator\", \"coordinator\""),
    (roles(activeDeadlineSeconds=0), "spec.activeDeadlineSeconds in body should be greater than or equal to 1"),
    (roles(activeDeadlineSeconds=2147483648), "spec.activeDeadlineSeconds in body should be less than or equal to 2147483647"),
    (roles(ttlSecondsAfterFinished=-1), "spec.ttlSecondsAfterFinished in body should be greater than or equal to 0"),
    (roles(suspend="yes"), "spec.suspend in body must be of type boolean"),
    (roles(managedBy="coordinator", suspend=True), "spec.managedBy: Forbidden: " + NEEDS_OPERATOR),
    (roles(managedBy="coordinator", activeDeadlineSeconds=1), NEEDS_OPERATOR),
    (roles(managedBy="coordinator", ttlSecondsAfterFinished=0), NEEDS_OPERATOR),
    (roles(volumes=[{"emptyDir": {}}]), "spec.volumes[0].name: Required value"),
    (roles(replicas=2), "unknown field \"spec.replicas\""),
    (roles(colector={"template": template()}), "unknown field \"spec.colector\""),
    (container(image=5), "spec.coordinator.template.spec.containers[0].image in body must be of type string"),
    (container(env=[{"name": "A", "value": 1}]), "containers[0].env[0].value in body must be of type string"),
    (container(args="a"), "containers[0].args in body must be of type array"),
    (container(ports=[{"name": "di-port"}]), "containers[0].ports[0].containerPort: Required value"),
    (container(volumeMounts=[{"name": "v"}]), "containers[0].volumeMounts[0].mountPath: Required value"),
    (job(coordinator={"template": template(containers="abc")}), "containers in body must be of type array"),
    (job(coordinator={"template": template(containers=[{"image": "i"}])}), "containers[0].name: Required value"),
    (job(coordinator={"template": template(nodeSelector={"a": 1})}), "nodeSelector.a in body must be of type string"),
    (job(coordinator={"template": template(volumes=[{"name": "v", "hostPath": {}}])}), "hostPath.path: Required value"),
]
# What other schemas refuse, or might.
GOOD = [
    roles(cleanPodPolicy=""), roles(cleanPodPolicy="ALL"), roles(cleanPodPolicy="None"), job("q" * 45),
    roles(collector={"template": template(), "replicas": 0}), roles(aggregator={"replicas": 2}),
    roles(podFailurePolicy={"rules": []}), roles(podFailurePolicy=policy("FailJob", "NotIn", 0, 143)),
    roles(podFailurePolicy={"rules": 20 * policy("Count", "In", *range(1, 256))["rules"]}),
    roles(engine="tutti", managedBy="coordinator"), roles(managedBy="coordinator", suspend=False), job("j" * 45, tasks=[task(name="t" * 12)]),
    container(resources={"limits": {"cpu": 0.5, "memory": "10Gi", "nvidia.com/gpu": 2}}),
    container(restartPolicy="Always", newFieldOfTomorrow={"deep": [1, {"er": True}]}),
    job(coordinator={"template": {"metadata": {"creationTimestamp": None, "labels": {"a": "b"}}, **template()}}),
    job(coordinator={"template": template(volumes=None, initContainers=[{"name": "i", "image": "i", "restartPolicy": "Always"}])}),
]
# Every field that has a value of its own kind; what goes in through one version comes out of the other.
EVERYTHING = [
    roles(group="g", engine="tutti", managedBy="operator", cleanPodPolicy="ALL", priorityClassName="p", priority="high",
          preemptible=True, backoffLimit=0, podFailurePolicy=policy("FailJob", "In", 2), activeDeadlineSeconds=3600, ttlSecondsAfterFinished=0, suspend=True, volumes=[{"name": "v", "csi": {"driver": "d", "volumeAttributes": {"a": "b"}}}],
          collector={"replicas": 4, "minReplicas": 0, "maxReplicas": 8, "template": template(tolerations=[{"operator": "Exists"}], tomorrow=[0.5, None, "x"])},
          learner={"replicas": 1, "minReplicas": 1, "maxReplicas": 1, "template": template()}, aggregator={"replicas": 0, "template": template()}),
    job(cleanPodPolicy="Running", backoffLimit=7, preemptible=False, priority="normal", volumes=[{"name": "v", "emptyDir": {}}],
        tasks=[task(type="learner", name="l", replicas=1), task(type="none", name="b", replicas=3)]),
]
NOW = "2026-01-02T03:04:05Z"
STATUS = {
    "phase": "Running", "observedGeneration": 3, "startTimestamp": NOW, "completionTimestamp": NOW,
    "conditions": [{"type": "Running", "status": "True", "reason": "DIJobRunning", "message": "m", "lastUpdateTime": NOW,
                    "lastTransitionTime": NOW}],
    "replicaStatus": {"Coordinator": {"active": 1}, "Collector": {"succeeded": 2, "failed": 1}, "Learner": {}, "Aggregator": {}},
    "collectorReplicas": 4, "collectorSelector": "dijob-name=x,replica-type=collector", "learnerReplicas": 1,
    "aggregatorReplicas": 0, "coordinatorUID": "u", "restarts": 1, "reschedules": 2, "replicas": 5, "readyReplicas": 4,
    "taskStatus": {"learner": {"Running": 1}}, "allocation": ["node"], "profilings": {"anything": [1]},
}


def files(*folders):
    found = [os.path.join(folder, name) for start in folders for folder, _, names in os.walk(os.path.join(K8S, "samples", start))
             for name in names if name.endswith(".yaml") and name != "kustomization.yaml"]
    return sorted(found)


def test_the_schema_is_one(k8s):
    """Plain `kubectl apply`, twice; one schema, in both versions and both kinds."""
    k8s.kubectl("apply", "-k", f"{K8S}/crd")
    assert "configured" not in k8s.kubectl("apply", "-k", f"{K8S}/crd").stdout
    k8s.kubectl("wait", "--for=condition=Established", "crd", "--all", "--timeout=100s")
    for kind in ("dijob", "agconfig"):
        k8s.await_kind(kind)
    crds = {}
    for name in ("dijobs", "aggregatorconfigs"):
        crd = crds[name] = k8s.get(f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{name}.diengine.opendilab.org")
        assert len(crd["metadata"]["annotations"][ANNOTATION]) < 150_000, "near to the limit of kubectl apply"
        assert not [c for c in crd["status"]["conditions"] if c["type"] == "NonStructuralSchema" and c["status"] == "True"]
        one, two = crd["spec"]["versions"]
        assert (one.pop("name"), one.pop("served"), one.pop("storage")) == ("v1alpha1", True, True)
        assert (two.pop("name"), two.pop("served"), two.pop("storage")) == ("v2alpha1", False, False)
        assert one == two, f"{name}: the versions differ"
    spec = spec_of(crds["dijobs"])
    templates = [spec[role]["properties"]["template"] for role in ("coordinator", "collector", "learner", "aggregator")]
    templates += [spec["tasks"]["items"]["properties"]["template"],
                  spec_of(crds["aggregatorconfigs"])["aggregator"]["properties"]["template"]]
    assert all(one == templates[0] for one in templates), "dijob.yaml and aggregatorconfig.yaml have different templates"


def spec_of(crd):
    return crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]


def names_below(schema, path):
    """Fields of a schema as docs/internals/k8s-api.md writes them, pod templates as one."""
    for name, field in schema.get("properties", {}).items():
        inner, where = (field["items"], f"{path}{name}[]") if field.get("type") == "array" else (field, path + name)
        if name in ("template", "volumes", "conditions", "profilings") or not inner.get("properties"):
            yield where if name in ("conditions", "allocation", "failedPods") else path + name
        else:
            yield from names_below(inner, where + ".")


def test_the_page_of_names(k8s):
    """The page of field names has all of the schema's, and no other."""
    with open(os.path.join(SOURCE, "docs/internals/k8s-api.md"), encoding="utf-8") as file:
        listed = set(re.findall(r"^\| `((?:spec|status)\.[^`]+)`", file.read(), re.M))
    crd = k8s.get("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/dijobs.diengine.opendilab.org")
    schema = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]
    known = set(names_below(schema["spec"], "spec.")) | set(names_below(schema["status"], "status."))
    assert known == listed, f"only in the schema: {known - listed}; only on the page: {listed - known}"


def fields_of_server(definitions, crds):
    """{type: {field: type of what it holds or None}} as the tables (kubernetes.def, fields.def) have them, from the schemas of a server."""
    found = {}

    def inside(schema):
        return schema["items"] if schema.get("type") == "array" else schema

    def add(name, schema, inner):
        if name not in found:
            found[name] = {}
            found[name].update({field: inner(field, inside(value)) for field, value in schema["properties"].items()})
        return name

    def of_kubernetes(_, value):
        full = value.get("$ref", "").split("/")[-1]
        if not definitions.get(full, {}).get("properties"):
            return None
        return add(full.split(".")[-1], definitions[full], of_kubernetes)

    def of_ours(kind):
        def inner(field, value):
            if field in ("metadata", "template", "volumes", "volumeMounts"):
                full = {"metadata": "apimachinery.pkg.apis.meta.v1.ObjectMeta", "template": "api.core.v1.PodTemplateSpec",
                        "volumes": "api.core.v1.Volume", "volumeMounts": "api.core.v1.VolumeMount"}[field]
                return of_kubernetes(field, {"$ref": "io.k8s." + full})
            each = value.get("additionalProperties")
            if isinstance(each, dict) and each.get("properties"):
                return "*" + add(kind + {"tfReplicaSpecs": "ReplicaSpec"}[field], each, inner)
            if field == "status" or not value.get("properties"):
                return None
            return add(kind + field[0].upper() + field[1:], value, inner)
        return inner

    for kind, name in (("DIJob", "dijobs"), ("AggregatorConfig", "aggregatorconfigs"), ("TFJob", "tfjobs")):
        add(kind, crds[name]["spec"]["versions"][0]["schema"]["openAPIV3Schema"], of_ours(kind))
    for kind in ("ConfigMap", "PodTemplate", "Secret"):
        of_kubernetes(kind, {"$ref": "io.k8s.api.core.v1." + kind})
    return found


def fields_of_table():
    entries = []
    for path in [os.path.join(K8S, "..", "common/config/kubernetes.def"), *glob.glob(os.path.join(K8S, "*/fields.def"))]:
        with open(path, encoding="utf-8") as file:
            entries += re.findall(r"^FIELDS\((\w+),((?:\s*\"[^\"]*\")+)\)", file.read(), re.M)
    return {name: {field: kind or None for field, _, kind in (word.partition(":") for word in "".join(
        re.findall(r"\"([^\"]*)\"", text)).split())} for name, text in entries}


def test_the_table_of_fields(k8s):
    """What a manifest may hold on one machine is what it may hold on this server."""
    k8s.kubectl("apply", "-k", f"{K8S}/crd/tfjob")
    k8s.await_kind("tfjob")
    groups = {"dijobs": "diengine.opendilab.org", "aggregatorconfigs": "diengine.opendilab.org", "tfjobs": "kubeflow.org"}
    crds = {name: k8s.get(f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{name}.{group}") for name, group in groups.items()}
    theirs, ours = fields_of_server(k8s.get("/openapi/v2")["definitions"], crds), fields_of_table()
    assert len(ours) > 100, len(ours)
    different = {name: (theirs.get(name), ours.get(name)) for name in theirs.keys() | ours.keys()
                 if theirs.get(name) != ours.get(name)}
    assert not different, different


def test_samples(k8s):
    """Every sample as a user types it; those of v2alpha1 also under the version that is always served."""
    k8s.kubectl("apply", "-k", f"{K8S}/crd/tfjob")
    k8s.await_kind("tfjob")
    files_of_commands = ("/accelerators/", "/elasticdl-gpu/", "/elasticdl-gang/", "/elasticdl-queue/")  # which read them: no object, and one that has no image yet
    ones = [name for name in files("") if "/v2alpha1/" not in name and not any(folder in name for folder in files_of_commands)]
    ones += [os.path.join(SOURCE, "configs/k8s", name) for name in os.listdir(os.path.join(SOURCE, "configs/k8s"))
             if name != "kustomization.yaml"]
    ones.append(f"{K8S}/overlays/embedded/job.yaml")
    twos = files("v2alpha1")
    assert len(ones) >= 15 and len(twos) >= 6, (ones, twos)
    flags = [word for name in ones for word in ("-f", name)]
    k8s.kubectl("create", "--dry-run=server", "--validate=strict", *flags)
    for name in twos:
        with open(name, encoding="utf-8") as file:
            text = file.read()
        assert "no matches for kind" in k8s.kubectl("create", "--dry-run=server", "-f", name, check=False).stderr
        k8s.kubectl("create", "--dry-run=server", "--validate=strict", "-f", "-", input=text.replace("/v2alpha1", "/v1alpha1"))


def refusal(k8s, object):
    """Why the server does not take it. A kubectl for each would be a tenth of a second of a core, seventy times."""
    try:
        k8s.api("POST", V1 + "?dryRun=All&fieldValidation=Strict", object)
    except cluster.ApiError as error:
        return error.body["message"]
    return None


def test_table(k8s):
    for object, words in BAD:
        said = refusal(k8s, object)
        assert said and words in said, f"{json.dumps(object)}\nwanted: {words}\ngot: {said}"
    for object in GOOD:
        said = refusal(k8s, object)
        assert said is None, f"{json.dumps(object)}\n{said}"
    with tempfile.TemporaryDirectory() as folder:
        for number, (object, _) in enumerate(BAD):
            with open(os.path.join(folder, f"{number}.json"), "w", encoding="utf-8") as file:
                json.dump(object, file)
        read = k8s.kubectl("create", "--dry-run=server", "--validate=strict", "-f", folder, check=False).stderr
    for _, words in BAD:
        assert words in read, f"kubectl does not print {words}, only\n{read}"


def test_defaults(k8s):
    made = k8s.api("POST", V1 + "?dryRun=All", roles())["spec"]
    assert made["cleanPodPolicy"] == "Running" and set(made) == {"coordinator", "cleanPodPolicy"}, made
    made = k8s.api("POST", V1 + "?dryRun=All", job(tasks=[{"type": "learner", "template": template()}]))["spec"]
    assert made["tasks"] == [{"type": "learner", "template": template()}] and "backoffLimit" not in made, made
    assert k8s.api("POST", V1 + "?dryRun=All", roles(cleanPodPolicy=""))["spec"]["cleanPodPolicy"] == ""
    number = container(resources={"limits": {"cpu": 0.1}})
    assert k8s.api("POST", V1 + "?dryRun=All", number)["spec"]["coordinator"] == number["spec"]["coordinator"]


def test_words(k8s):
    """kubectl's own: columns, short names, explain."""
    k8s.api("POST", V1, job())
    assert k8s.kubectl("get", "dijob").stdout.split("\n")[0].split() == ["NAME", "PHASE", "AGE", "REASON"]
    wide = k8s.kubectl("get", "dijob", "x", "-o", "wide").stdout.split("\n")[0].split()
    assert wide == "NAME PHASE AGE REASON COLLECTORS LEARNERS READY REPLICAS RESTARTS RESCHEDULES".split(), wide
    assert "dijob.diengine.opendilab.org/x " in k8s.kubectl("get", "all").stdout
    assert "No resources found" in k8s.kubectl("get", "agconfig", "-A").stderr
    assert k8s.kubectl("create", "-f", f"{K8S}/samples/dijob-qbert.yaml").stdout == "dijob.diengine.opendilab.org/qbert-dqn created\n"
    assert k8s.kubectl("delete", "dijob", "qbert-dqn").stdout.startswith('dijob.diengine.opendilab.org "qbert-dqn" deleted')
    for path, words in (("spec", ("cleanPodPolicy", "coordinator", "tasks")),
                        ("spec.coordinator.template.spec.containers", ("image", "volumeMounts", "di-container")),
                        ("spec.tasks.template.spec.containers.resources", ("limits", "requests")),
                        ("status", ("collectorReplicas", "observedGeneration"))):
        text = k8s.kubectl("explain", "dijob." + path).stdout
        assert all(word in text for word in words) and "<empty>" not in text, text


def test_status(k8s):
    """Every field of the status is kept, and the scale reads it."""
    assert k8s.patch(f"{V1}/x/status", {"status": STATUS})["status"] == STATUS
    assert k8s.kubectl("get", "dijob", "x", "-o", "wide").stdout.split("\n")[1].split()[1] == "Running"


def test_scale(k8s):
    done = k8s.kubectl("scale", "dijob/x", "--replicas=2", check=False)
    assert "spec.collector.template: Required value" in done.stderr, done
    k8s.patch(f"{V1}/x", {"spec": {"collector": {"template": template()}}})
    assert k8s.kubectl("scale", "dijob/x", "--replicas=4").stdout == "dijob.diengine.opendilab.org/x scaled\n"
    scale = k8s.get(f"{V1}/x/scale")
    assert scale["spec"]["replicas"] == 4 and scale["status"] == {"replicas": 4, "selector": STATUS["collectorSelector"]}, scale
    k8s.patch(f"{V1}/x", {"spec": {"collector": {"minReplicas": 2, "maxReplicas": 8}}})
    for number, words in ((1, "expected at least minReplicas"), (9, "expected at most maxReplicas")):
        done = k8s.kubectl("scale", "dijob/x", f"--replicas={number}", check=False)
        assert done.returncode == 1 and f"spec.collector.replicas: Forbidden: {words}" in done.stderr, done
    k8s.kubectl("scale", "dijob/x", "--replicas=8")
    k8s.patch(f"{V1}/x", {"spec": {"collector": {"replicas": None, "minReplicas": None, "maxReplicas": None}}})
    assert "replicas" not in k8s.get(f"{V1}/x")["spec"]["collector"]


def test_updates(k8s):
    """What may not change, and what may though it would not be let in any more."""
    try:
        k8s.patch(f"{V1}/x", {"spec": {"coordinator": None, "collector": None, "tasks": [task()]}})
        raise AssertionError("a job changed its shape")
    except cluster.ApiError as error:
        assert "cannot become one with spec.tasks" in str(error), error
    crd = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/dijobs.diengine.opendilab.org"
    ours = k8s.get(crd)["spec"]
    lax = copy.deepcopy(ours)
    for version in lax["versions"]:
        del version["schema"]["openAPIV3Schema"]["x-kubernetes-validations"]
    k8s.patch(crd, {"spec": lax})
    name = "the-job-of-another-operator-whose-schema-lets-names-of-any-length-in"
    cluster.wait_for(lambda: create(k8s, name), "the lax schema to hold")
    k8s.patch(crd, {"spec": ours})
    cluster.wait_for(lambda: refusal(k8s, job("1st")), "our schema to hold again")
    assert k8s.patch(f"{V1}/{name}/status", {"status": {"phase": "Succeeded"}})["status"]["phase"] == "Succeeded"
    assert k8s.patch(f"{V1}/{name}", {"metadata": {"labels": {"a": "b"}}})["metadata"]["labels"] == {"a": "b"}
    k8s.api("DELETE", f"{V1}/{name}")
    k8s.api("DELETE", f"{V1}/x")


def test_managed_by(k8s):
    """Who looks after a TFJob stays the same, said or not said, with a runPolicy or without."""
    k8s.kubectl("apply", "-k", f"{K8S}/crd/tfjob")
    k8s.await_kind("tfjob")
    path, name = "/apis/kubeflow.org/v1/namespaces/default/tfjobs", "kept"
    ours, other = "kubeflow.org/training-operator", "kueue.x-k8s.io/multikueue"
    workers = {"tfReplicaSpecs": {"Worker": {"template": {"spec": {"containers": [{"name": "tensorflow", "image": "i"}]}}}}}
    for policy, changes in ((None, ({"managedBy": other}, {"managedBy": ours})),
                            ({}, ({"managedBy": other},)), ({"suspend": True}, ({"managedBy": ours},)),
                            ({"managedBy": other}, ({"managedBy": ours}, {"managedBy": None}, None))):
        spec = {**workers, **({} if policy is None else {"runPolicy": policy})}
        k8s.api("POST", path, {"apiVersion": "kubeflow.org/v1", "kind": "TFJob", "metadata": {"name": name}, "spec": spec})
        for change in changes:
            try:
                k8s.patch(f"{path}/{name}", {"spec": {"runPolicy": change}})
                raise AssertionError(f"{policy} took {change}")
            except cluster.ApiError as error:
                assert "spec.runPolicy.managedBy: Forbidden: cannot be changed" in str(error), error
        k8s.patch(f"{path}/{name}", {"spec": {"runPolicy": {"backoffLimit": 3}}})  # which is somebody else's matter
        if policy is None:
            k8s.patch(f"{path}/{name}", {"spec": {"runPolicy": None}})
        k8s.api("DELETE", f"{path}/{name}")


def create(k8s, name):
    try:
        return k8s.api("POST", V1, job(name))
    except cluster.ApiError as error:
        return error.code == 409


def milliseconds(path, name):
    """A constant of the C code."""
    with open(os.path.join(K8S, path), encoding="utf-8") as file:
        return int(re.search(rf"\b{name} = (\d+)", file.read())[1])


def test_deployment(k8s):
    k8s.kubectl("apply", "-k", f"{K8S}/deploy")
    again = [line for line in k8s.kubectl("apply", "-k", f"{K8S}/deploy").stdout.splitlines() if not line.endswith("unchanged")]
    assert again == ["poddisruptionbudget.policy/di-operator configured"], again  # kubectl's way with those: always, without effect
    overlays = [f"overlays/{name}" for name in ("nodeport", "v2alpha1", "namespaced", "embedded", "tfjob", "gang", "queue")]
    for folder in [*overlays, "samples/accelerators"]:
        k8s.kubectl("apply", "--dry-run=server", "-k", f"{K8S}/{folder}")
    deployment = k8s.get("/apis/apps/v1/namespaces/di-system/deployments/di-operator")
    pod = deployment["spec"]["template"]
    version = subprocess.run([os.environ["TUTTI"], "version"], capture_output=True, text=True, check=True, timeout=30).stdout.split()[1]
    images = {pod["spec"]["containers"][0]["image"]}
    for name in (f"{SOURCE}/configs/k8s/dijob-cartpole.yaml", f"{K8S}/overlays/embedded/job.yaml"):
        with open(name, encoding="utf-8") as file:
            images |= set(re.findall(r"image: (\S+)", file.read()))
    assert images == {f"tutti:{version}"}, f"{images}: k8s/deploy/kustomization.yaml or a sample has another version"
    with open(f"{SOURCE}/configs/k8s/dijob-qbert.yaml", encoding="utf-8") as file:
        assert set(re.findall(r"image: (\S+)", file.read())) == {f"tutti-gym:{version}"}, "dijob-qbert.yaml has another version"
    assert deployment["spec"]["selector"]["matchLabels"].items() <= pod["metadata"]["labels"].items()
    # asked to end, it answers whom it has heard and frees its lease
    ends_ms = milliseconds("operator/operator.c", "END_MS") + milliseconds("api/lease.c", "FREE_MS")
    assert 1000 * pod["spec"]["terminationGracePeriodSeconds"] > ends_ms, f"it is killed before: {pod['spec']}"
    # the namespace enforces restricted pod security: the operator's pod passes, another does not
    pods = "/api/v1/namespaces/di-system/pods?dryRun=All"
    k8s.api("POST", pods, {"metadata": {"name": "operator", **pod["metadata"]}, "spec": pod["spec"]})
    try:
        k8s.api("POST", pods, {"metadata": {"name": "other"}, "spec": template()["spec"]})
        raise AssertionError("the namespace lets any pod in")
    except cluster.ApiError as error:
        assert error.code == 403 and "PodSecurity" in str(error), error
    labels = k8s.get("/api/v1/namespaces/di-system")["metadata"]["labels"]
    assert all(labels[f"pod-security.kubernetes.io/{mode}"] == "restricted" for mode in ("enforce", "warn", "audit")), labels
    # and so do the pods of the jobs that run our own program
    names = [["-f", f"{SOURCE}/configs/k8s/{name}"] for name in ("dijob-cartpole.yaml", "dijob-qbert.yaml")]
    for source in [*names, ["-f", f"{K8S}/overlays/embedded/job.yaml"], ["-k", f"{K8S}/samples/results"]]:
        found = json.loads(k8s.kubectl("apply", "--dry-run=server", "-o", "json", *source).stdout)
        for object in found.get("items", [found]):
            for role in ("coordinator", "collector", "learner", "aggregator"):
                if object["kind"] == "DIJob" and role in object["spec"]:
                    spec = {**object["spec"][role]["template"]["spec"], "serviceAccountName": "di-operator"}
                    k8s.api("POST", pods, {"metadata": {"name": role}, "spec": spec})


def test_rights(k8s):
    def reviewed(spec):
        review = {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": spec}
        return k8s.api("POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews", review)["status"]["allowed"]

    def may(user, verb, what, *where):
        """What `kubectl auth can-i VERB WHAT --as=USER ...` asks, which takes a tenth of a second of a core for it."""
        (resource, _, name), place = what.partition("/"), user.split(":")[2]
        words = {"namespace": "" if "-A" in where else where[-1] if "-n" in where else "default", "name": name, "verb": verb,
                 "subresource": next((word.partition("=")[2] for word in where if word.startswith("--subresource=")), "")}
        return reviewed({"user": user, "groups": ["system:serviceaccounts", f"system:serviceaccounts:{place}", "system:authenticated"],
                         "resourceAttributes": {**dict(zip(("resource", "group"), resource.split(".", 1))), **words}})

    def await_rights(user, verb, what, *where):
        cluster.wait_for(lambda: may(user, verb, what, *where), f"rights of {user}")  # a moment after they were written

    group = "diengine.opendilab.org"
    await_rights(OPERATOR, "list", f"dijobs.{group}", "-A")
    for verb, what in [("list", f"dijobs.{group}"), ("get", f"aggregatorconfigs.{group}"), ("watch", "pods"), ("create", "pods"),
                       ("delete", "pods"), ("create", "services"), ("delete", "services"), ("create", "events"), ("patch", "events"),
                       ("create", "secrets"), ("list", "nodes"), ("delete", f"dijobs.{group}")]:
        assert may(OPERATOR, verb, what, "-A"), f"the operator may not {verb} {what}"
    assert may(OPERATOR, "patch", f"dijobs.{group}", "-A", "--subresource=status")
    for verb, what in [("get", "secrets"), ("list", "secrets"), ("delete", "secrets"), ("patch", f"dijobs.{group}"), ("create", f"dijobs.{group}"),
                       ("list", f"aggregatorconfigs.{group}"), ("watch", f"aggregatorconfigs.{group}"), ("get", "nodes"), ("watch", "nodes"),
                       ("patch", "pods"), ("update", "nodes"), ("list", "configmaps"), ("create", "deployments.apps"),
                       ("create", "clusterroles.rbac.authorization.k8s.io"), ("get", "leases.coordination.k8s.io")]:
        assert not may(OPERATOR, verb, what, "-A"), f"the operator may {verb} {what}"
    assert not may(OPERATOR, "create", "pods", "-A", "--subresource=exec")
    lease = "leases.coordination.k8s.io"
    await_rights(OPERATOR, "create", lease, "-n", "di-system")  # of a Role, which the server hears of by itself
    assert may(OPERATOR, "update", lease + "/tutti-operator", "-n", "di-system")
    assert not may(OPERATOR, "update", lease + "/other", "-n", "di-system") and not may(OPERATOR, "create", lease, "-n", "default")

    tfjobs = "tfjobs.kubeflow.org"  # they may be another operator's: only where somebody asks for it
    assert not may(OPERATOR, "list", tfjobs, "-A")
    k8s.kubectl("apply", "-k", f"{K8S}/overlays/tfjob")
    await_rights(OPERATOR, "list", tfjobs, "-A")
    assert may(OPERATOR, "delete", tfjobs, "-A") and may(OPERATOR, "patch", tfjobs, "-A", "--subresource=status")
    assert may(OPERATOR, "create", "deployments.apps", "-A") and may(OPERATOR, "create", "configmaps", "-A")  # of v1alpha1
    assert not may(OPERATOR, "delete", "deployments.apps", "-A") and not may(OPERATOR, "get", "configmaps", "-A")
    assert not may(OPERATOR, "create", tfjobs, "-A") and not may(OPERATOR, "patch", tfjobs, "-A")
    deployment = k8s.get("/apis/apps/v1/namespaces/di-system/deployments/di-operator")
    assert "--also=tfjob" in deployment["spec"]["template"]["spec"]["containers"][0]["args"], deployment

    def may_group(verb, api, resource="podgroups", sub=""):
        return reviewed({"user": OPERATOR, "resourceAttributes": {"group": api, "resource": resource, "subresource": sub, "verb": verb}})

    assert not may_group("create", "scheduling.volcano.sh")
    k8s.kubectl("apply", "-k", f"{K8S}/overlays/gang")
    cluster.wait_for(lambda: may_group("create", "scheduling.volcano.sh"), "the right to PodGroups")
    for api in ("scheduling.volcano.sh", "scheduling.x-k8s.io"):
        assert all(may_group(verb, api) for verb in ("get", "create", "patch", "delete")), api
        assert not may_group("list", api), api
    deployment = k8s.get("/apis/apps/v1/namespaces/di-system/deployments/di-operator")
    assert "--gang=volcano" in deployment["spec"]["template"]["spec"]["containers"][0]["args"], deployment

    kueue = "kueue.x-k8s.io"
    assert not may_group("create", kueue, "workloads")
    k8s.kubectl("apply", "-k", f"{K8S}/overlays/queue")
    cluster.wait_for(lambda: may_group("create", kueue, "workloads"), "the right to Workloads")
    assert all(may_group(verb, kueue, "workloads") for verb in ("get", "list", "watch", "create", "patch", "delete"))
    assert may_group("update", kueue, "workloads", "status") and not may_group("update", kueue, "workloads")
    assert may_group("get", "scheduling.k8s.io", "priorityclasses") and may_group("get", kueue, "workloadpriorityclasses")
    assert may_group("get", kueue, "resourceflavors") and not may_group("create", kueue, "resourceflavors")
    deployment = k8s.get("/apis/apps/v1/namespaces/di-system/deployments/di-operator")
    assert "--queue=kueue" in deployment["spec"]["template"]["spec"]["containers"][0]["args"], deployment

    k8s.kubectl("apply", "-k", f"{K8S}/overlays/embedded")
    await_rights(EMBEDDED, "create", "pods", "-n", "default")
    assert may(EMBEDDED, "get", "pods", "-n", "default") and may(EMBEDDED, "get", "services", "-n", "default")  # of a name that is there already
    await_rights(EMBEDDED, "patch", f"dijobs.{group}/cartpole", "--subresource=status")
    ours = ["get", "dijobs", f"--as={EMBEDDED}", "-n", "default"]
    k8s.kubectl(*ours, "--field-selector=metadata.name=cartpole")
    assert "forbidden" in k8s.kubectl(*ours, check=False).stderr and "forbidden" in k8s.kubectl(*ours, "other", check=False).stderr
    assert may(EMBEDDED, "create", "pods", "-n", "default") and may(EMBEDDED, "patch", f"dijobs.{group}/cartpole", "--subresource=status")
    assert not may(EMBEDDED, "create", "pods", "-n", "kube-system") and not may(EMBEDDED, "list", "secrets", "-n", "default")
    assert not may(EMBEDDED, "patch", f"dijobs.{group}/cartpole") and not may(EMBEDDED, "list", "nodes")

    with tempfile.TemporaryDirectory() as folder:  # the operator of one namespace: its one line edited, as the file says
        shutil.copytree(K8S, folder, dirs_exist_ok=True)
        path = os.path.join(folder, "overlays/namespaced/kustomization.yaml")
        with open(path, encoding="utf-8") as file:
            edited = file.read().replace("namespace: di-system}", "namespace: team}")
        with open(path, "w", encoding="utf-8") as file:
            file.write(edited)
        text = k8s.kubectl("kustomize", os.path.dirname(path)).stdout
    assert not re.search("Cluster|kind: CustomResource", text), text
    assert re.search(r"^kind: Namespace\nmetadata:\n(?:  .*\n)*  name: team\n", text, re.M), text  # where all the rest is
    k8s.kubectl("apply", "-f", "-", input=text)
    team = "system:serviceaccount:team:di-operator"
    await_rights(team, "create", "pods", "-n", "team")
    await_rights(team, "update", lease + "/tutti-operator", "-n", "team")
    assert may(team, "create", "pods", "-n", "team") and may(team, "update", lease + "/tutti-operator", "-n", "team")
    assert not may(team, "create", "pods", "-n", "default") and not may(team, "list", "nodes")


def test_versions(k8s):
    """With v2alpha1 served: what is written through one version is read through the other."""
    k8s.kubectl("apply", "-k", f"{K8S}/overlays/v2alpha1")
    cluster.wait_for(lambda: k8s.find(V2), "v2alpha1 to be served")
    flags = [word for name in files("v2alpha1") for word in ("-f", name)]
    cluster.wait_for(lambda: k8s.kubectl("create", "--dry-run=server", "--validate=strict", *flags, check=False).returncode == 0,
                     "the samples of v2alpha1 to be taken")
    for number, (write, read) in enumerate([(V1, V2), (V2, V1)] * 2):
        wanted = copy.deepcopy(EVERYTHING[number // 2])
        version = write.split("/")[3]
        wanted["apiVersion"], name = f"diengine.opendilab.org/{version}", f"v{number}"
        wanted["metadata"]["name"] = name
        k8s.api("POST", write, wanted)
        k8s.patch(f"{read}/{name}/status", {"status": STATUS})
        k8s.patch(f"{read}/{name}", {"metadata": {"labels": {"a": "b"}}})
        if "collector" in wanted["spec"]:
            k8s.kubectl("scale", "dijob", name, "--replicas=7")
            wanted["spec"]["collector"]["replicas"] = 7
        for path in (write, read):
            seen = k8s.get(f"{path}/{name}")
            assert seen["spec"] == wanted["spec"] and seen["status"] == STATUS, (seen, wanted)
            assert seen["apiVersion"].endswith(path.split("/")[3]) and seen["metadata"]["labels"] == {"a": "b"}


cluster.main(test_the_schema_is_one, test_the_page_of_names, test_the_table_of_fields,
             test_deployment, test_samples, test_table, test_defaults, test_words,
             test_status, test_scale, test_updates, test_managed_by, test_rights, test_versions)
