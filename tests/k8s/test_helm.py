#!/usr/bin/env python3
"""k8s/helm/tutti, as it is packaged: object by object it is what kubectl makes of k8s/deploy, the overlays and k8s/monitoring, so that the
two cannot drift; what is no value of it is refused; and the guide's section is typed on a cluster: installed, a job run, changed, taken away."""

import functools
import json
import os
import re
import subprocess
import sys
import tempfile
import textwrap

sys.dont_write_bytecode = True
import cluster

cluster.require(full=True)
if "helm" not in cluster.programs():
    print("SKIP: Helm is not built: tests/k8s/cluster/build helm (two minutes, once, with Go)")
    sys.exit(77)
import image_rig  # noqa: E402
import test_guide  # noqa: E402
from cluster import check, wait_for  # noqa: E402

SOURCE = os.environ["TT_SOURCE_DIR"]
CHART = os.path.join(SOURCE, "k8s/helm/tutti")
WORK = tempfile.TemporaryDirectory(prefix="tt-helm-")
for place in ("CACHE", "CONFIG", "DATA"):
    os.environ[f"HELM_{place}_HOME"] = os.path.join(WORK.name, place)

DEFAULTS = ["namespace.create=true"]
EVERYTHING = ["tfjob.enabled=true", "gang=volcano", "queue=kueue", "nodePort.enabled=true", "v2alpha1.enabled=true", "monitoring.enabled=true"]
# (folders of k8s, what says the same to the chart)
SWITCHES = [(["deploy"], []), (["overlays/tfjob"], ["tfjob.enabled=true"]), (["overlays/gang"], ["gang=volcano"]),
            (["overlays/queue"], ["queue=kueue"]),
            (["overlays/nodeport"], ["nodePort.enabled=true"]), (["overlays/v2alpha1"], ["v2alpha1.enabled=true"]),
            (["overlays/namespaced"], ["scope=namespace"]), (["deploy", "monitoring"], ["monitoring.enabled=true"]),
            (["deploy", "samples/elasticdl"], ["elasticdl.enabled=true"]),
            (["overlays/gang", "samples/elasticdl-gang"], ["gang=volcano", "elasticdl.enabled=true"]),
            (["overlays/queue", "samples/elasticdl-queue"], ["queue=kueue", "elasticdl.enabled=true"]),
            (["deploy", "monitoring", "samples/elasticdl", "monitoring/elasticdl"], ["monitoring.enabled=true", "elasticdl.enabled=true"])]
NO_OPERATOR = {"overlays/embedded"}
# Labels by which the chart's objects are found, Helm's and ours; what selects is none of them.
OWN_LABELS = {"app.kubernetes.io/managed-by", "app.kubernetes.io/instance", "app.kubernetes.io/version", "app.kubernetes.io/part-of", "helm.sh/chart"}
KEEP = ("helm.sh/resource-policy", "keep")
# Where no cluster says it. Older than that is refused.
KUBERNETES = ("--kube-version", "1.30.0")
# (a value, words of the refusal)
REFUSED = [("gang=kueue", "gang"), ("queue=volcano", "queue"), ("scope=team", "scope"), ("replicas=two", "replicas"), ("gpusPerNode=0", "gpusPerNode"),
           ("tfjob.enabeld=true", "enabeld"), ("nodeport.enabled=true", "nodeport"), ("nodePort.port=65536", "nodePort"),
           ("tfjob.enabled=yes", "tfjob"), ("namespace.name=Team_1", "namespace"), ("image.tag=a b", "tag"), ("extraArgs={-v}", "extraArgs"),
           ("image.pullPolicy=Sometimes", "pullPolicy"), ("elasticdl.namespace=", "elasticdl"), ("elasticdl.extraArgs={-v}", "extraArgs"), ("tfjob.accelerators.gpu.volumes[0].name=lib", "hostPath"),
           ("tfjob.accelerators.gpu.volume=lib", "volume")]
# Cuts documents of YAML apart and says each as JSON, with nothing added or left out: a chart, for Helm reads YAML and Python does not.
READER = """{{- range $name, $_ := .Files.Glob "in/*" }}
{{- range splitList "\\n---\\n" ($.Files.Get $name) }}
{{- with fromYaml . }}
---
{{ dict "from" (base $name) "object" . | toJson }}
{{- end }}
{{- end }}
{{- end }}
"""
JOBS = "/apis/diengine.opendilab.org/v1alpha1/namespaces/default/dijobs"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
DEPLOYMENT = "/apis/apps/v1/namespaces/di-system/deployments/di-operator"


@functools.cache
def program(name):
    return cluster.programs()[name]


def call(*argv):
    return subprocess.run([program(argv[0]), *argv[1:]], capture_output=True, text=True, timeout=120, check=False)


def said(*argv):
    done = call(*argv)
    check(done.returncode == 0, f"{argv}: exit {done.returncode}: {done.stderr}{done.stdout}")
    return done.stdout


@functools.cache
def package():
    """What a chart museum would have: what a packager leaves out is missing here, too."""
    said("helm", "package", CHART, "--destination", WORK.name)
    (name,) = [name for name in os.listdir(WORK.name) if name.endswith(".tgz")]
    return os.path.join(WORK.name, name)


def render(*values, options=()):
    flags = [word for value in values for word in ("--set", value)]
    return said("helm", "template", "tutti", package(), "--namespace", "di-system", *KUBERNETES, *flags, *options)


def read(texts):
    """{name: [object, ...]} of {name: documents of YAML}."""
    with tempfile.TemporaryDirectory(dir=WORK.name) as folder:
        files = {"Chart.yaml": "{apiVersion: v2, name: reader, version: 0.0.0}", "templates/all.yaml": READER}
        for path, text in {**files, **{f"in/{name}": text for name, text in texts.items()}}.items():
            os.makedirs(os.path.dirname(os.path.join(folder, path)), exist_ok=True)
            with open(os.path.join(folder, path), "w", encoding="utf-8") as file:
                file.write(text)
        lines = [json.loads(line) for line in said("helm", "template", folder).splitlines() if line.startswith("{")]
    check(all("kind" in line["object"] for line in lines), "YAML that Helm cannot read")
    return {name: [line["object"] for line in lines if line["from"] == name] for name in texts}


def key(thing):
    return thing["kind"], thing["metadata"].get("namespace", ""), thing["metadata"]["name"]


def bare(thing):
    """Without what only says whose it is."""
    labels, notes = thing["metadata"].pop("labels", {}), thing["metadata"].pop("annotations", {})
    rest = {"labels": {name: value for name, value in labels.items() if name not in OWN_LABELS},
            "annotations": {name: value for name, value in notes.items() if (name, value) != KEEP}}
    thing["metadata"] |= {name: value for name, value in rest.items() if value}
    return thing


def by_key(things):
    found = {key(thing): bare(thing) for thing in things}
    check(len(found) == len(things), f"one object twice: {sorted(map(key, things))}")
    return found


def differences(ours, theirs, path=""):
    """Where they differ, with both sides."""
    if isinstance(ours, dict) and isinstance(theirs, dict):
        for name in sorted({*ours, *theirs}):
            yield from differences(ours.get(name), theirs.get(name), f"{path}.{name}")
    elif isinstance(ours, list) and isinstance(theirs, list) and len(ours) == len(theirs):
        for number, (one, other) in enumerate(zip(ours, theirs)):
            yield from differences(one, other, f"{path}[{number}]")
    elif ours != theirs:
        yield f"{path}: the chart has {json.dumps(ours)[:300]}, kubectl {json.dumps(theirs)[:300]}"


def test_lint():
    switches = [word for value in EVERYTHING for word in ("--set", value)]
    for flags in ([], switches, ["--set", "scope=namespace"]):
        said("helm", "lint", "--strict", CHART, *flags)


def test_every_overlay_is_a_switch():
    overlays = {f"overlays/{name}" for name in os.listdir(os.path.join(SOURCE, "k8s/overlays"))}
    known = {folder for folders, _ in SWITCHES for folder in folders} | NO_OPERATOR
    check(not overlays - known, f"no value of the chart does what these do: {sorted(overlays - known)}")


def test_the_chart_is_the_kustomization():
    texts = {}
    for number, (folders, values) in enumerate(SWITCHES):
        texts[f"{number}-ours"] = render(*DEFAULTS, *values)
        texts[f"{number}-theirs"] = "\n---\n".join(said("kubectl", "kustomize", os.path.join(SOURCE, "k8s", folder)) for folder in folders)
    found = read(texts)
    wrong = []
    for number, (folders, values) in enumerate(SWITCHES):
        ours, theirs = by_key(found[f"{number}-ours"]), by_key(found[f"{number}-theirs"])
        check(len(theirs) >= 8, f"{folders}: {sorted(theirs)}")
        wrong += [f"{folders} {values}: only the chart has {name}" for name in sorted(ours.keys() - theirs.keys())]
        wrong += [f"{folders} {values}: the chart has no {name}" for name in sorted(theirs.keys() - ours.keys())]
        wrong += [f"{folders} {values}: {name}{text}" for name in sorted(ours.keys() & theirs.keys()) for text in differences(ours[name], theirs[name])]
    check(not wrong, "\n".join(wrong))


def test_what_stays():
    """Helm leaves what jobs lie in: the CRDs, and the namespace."""
    things = read({"all": render(*DEFAULTS, *EVERYTHING)})["all"]
    kept = {thing["kind"] for thing in things if KEEP in thing["metadata"].get("annotations", {}).items()}
    check(kept == {"CustomResourceDefinition", "Namespace"}, kept)
    check(len([thing for thing in things if thing["kind"] == "CustomResourceDefinition"]) == 3, "three CRDs")
    check(all(thing["metadata"]["labels"]["app.kubernetes.io/managed-by"] == "Helm" for thing in things), "Helm's label")


def test_one_namespace_with_everything():
    """No object of the cluster, and the rules of the cluster's operator but for nodes and queues."""
    here = [value for value in EVERYTHING if value != "queue=kueue"]  # which wants the whole cluster
    found = read({"team": render(*here, "scope=namespace", "namespace.name=team"), "cluster": render(*EVERYTHING)})
    refused = call("helm", "template", "tutti", package(), *KUBERNETES, "--set", "queue=kueue", "--set", "scope=namespace")
    check(refused.returncode != 0 and "wants scope: cluster" in refused.stderr, f"a queue in one namespace: {refused}")
    team, whole = by_key(found["team"]), by_key(found["cluster"])
    check({namespace for _, namespace, _ in team} == {"team"}, sorted(team))
    for ours, theirs in (("di-operator-jobs", "di-operator"), ("di-operator-tfjobs",) * 2, ("di-operator-podgroups",) * 2):
        rules = [rule for rule in whole[("ClusterRole", "", theirs)]["rules"] if rule["resources"] != ["nodes"]]
        check(team[("Role", "team", ours)]["rules"] == rules, ours)
        (subject,) = team[("RoleBinding", "team", ours)]["subjects"]
        check(subject == {"kind": "ServiceAccount", "name": "di-operator", "namespace": "team"}, subject)


def test_other_values():
    values = {"image": {"repository": "registry.example/tutti", "tag": "1.2", "pullPolicy": "Always", "pullSecrets": [{"name": "mine"}]},
              "replicas": 1, "gpusPerNode": 4, "gang": "scheduler-plugins", "tfjob": {"enabled": True, "crd": False},
              "crds": {"enabled": False}, "rbac": {"create": False, "userRoles": False}, "serviceAccount": {"create": False, "name": "other"},
              "networkPolicy": {"enabled": False}, "resources": {"limits": {"memory": "1Gi"}}, "extraArgs": ["--workers=64"],
              "extraEnv": [{"name": "TZ", "value": "UTC"}], "podLabels": {"team": "a"}, "podAnnotations": {"note": "b"},
              "nodeSelector": {"disk": "ssd"}, "tolerations": [{"operator": "Exists"}], "affinity": {"podAntiAffinity": None},
              "topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway"}],
              "priorityClassName": "high", "monitoring": {"enabled": True, "dashboard": False, "labels": {"release": "p"}, "interval": "5s"}}
    path = os.path.join(WORK.name, "values.json")
    with open(path, "w", encoding="utf-8") as file:
        json.dump(values, file)
    things = by_key(read({"all": render(options=["--values", path])})["all"])
    check(sorted(kind for kind, _, _ in things) == ["Deployment", "Service", "Service", "ServiceMonitor"], sorted(things))
    monitor = things[("ServiceMonitor", "di-system", "di-operator")]
    check(monitor["metadata"]["labels"] == {"release": "p"} and monitor["spec"]["endpoints"][0]["interval"] == "5s", monitor)
    spec = things[("Deployment", "di-system", "di-operator")]["spec"]
    pod, (container,) = spec["template"]["spec"], spec["template"]["spec"]["containers"]
    check(spec["replicas"] == 1 and spec["template"]["metadata"]["annotations"] == {"note": "b"}, spec)
    check(spec["template"]["metadata"]["labels"] == {"app.kubernetes.io/name": "di-operator", "app.kubernetes.io/part-of": "tutti", "team": "a"}, spec)
    check((container["image"], container["imagePullPolicy"]) == ("registry.example/tutti:1.2", "Always"), container)
    check(container["args"][-4:] == ["--gpus-per-node=4", "--also=tfjob", "--gang=scheduler-plugins", "--workers=64"], container["args"])
    check({"name": "TZ", "value": "UTC"} in container["env"] and container["resources"]["limits"]["memory"] == "1Gi", container)
    check(pod["imagePullSecrets"] == [{"name": "mine"}] and pod["serviceAccountName"] == "other", pod)
    check("affinity" not in pod, pod.get("affinity"))
    for name in ("nodeSelector", "tolerations", "topologySpreadConstraints", "priorityClassName"):
        check(pod[name] == values[name], f"{name}: {pod[name]}")


def test_accelerators_are_the_sample():
    """k8s/samples/accelerators by the chart: the same file, given to the operator in the same way; another file is another pod."""
    sample = os.path.join(SOURCE, "k8s/samples/accelerators")
    with open(os.path.join(sample, "controller-config-file.yaml"), encoding="utf-8") as file:
        text = file.read()
    path, name = os.path.join(WORK.name, "accelerators.yaml"), "di-operator-accelerators"
    with open(path, "w", encoding="utf-8") as file:
        file.write("tfjob:\n  enabled: true\n" + textwrap.indent(text, "  "))
    rendered = {"ours": render(*DEFAULTS, options=["--values", path]), "theirs": said("kubectl", "kustomize", sample),
                "changed": render(*DEFAULTS, "tfjob.accelerators.other.envVars[0].name=A", options=["--values", path])}
    found = {key: by_key(things) for key, things in read({**rendered, "theirs": re.sub(rf"{name}-\w+", name, rendered["theirs"])}).items()}
    config = ("ConfigMap", "di-system", name)
    files = {key: things.pop(config)["data"]["controller-config-file.yaml"] for key, things in found.items()}
    files = {key: things[0] for key, things in read({key: f"kind: File\n{file}" for key, file in files.items()}).items()}
    check(files["ours"] == files["theirs"] != files["changed"], files)
    deployments = {key: things[("Deployment", "di-system", "di-operator")] for key, things in found.items()}
    sums = {key: one["spec"]["template"]["metadata"].pop("annotations", {}).get("checksum/accelerators") for key, one in deployments.items()}
    check(sums["ours"] and sums["ours"] != sums["changed"], sums)
    wrong = [text for key in found["theirs"] for text in differences(found["ours"].get(key), found["theirs"][key])]
    check(not wrong and found["ours"].keys() == found["theirs"].keys(), "\n".join(wrong))
    without = read({"all": render(*DEFAULTS, "tfjob.enabled=false", options=["--values", path])})["all"]
    check(config not in by_key(without), "a file for nobody")


def test_what_is_refused():
    for value, words in REFUSED:
        done = call("helm", "template", "tutti", CHART, *KUBERNETES, "--set", value)
        check(done.returncode != 0 and words in done.stderr and "schema" in done.stderr, f"{value}: exit {done.returncode}: {done.stderr}")
    done = call("helm", "template", "tutti", CHART, "--kube-version", "1.29.9")
    check(done.returncode != 0 and "requires kubeVersion" in done.stderr, done.stderr)


# --- on a cluster, as the guide says it

def page():
    """The section's blocks: install, change, take away."""
    blocks = test_guide.blocks("With Helm")
    check(len(blocks) == 3, f"three blocks: {blocks}")
    return blocks


def type_block(k8s, number):
    return "".join(test_guide.type_in(k8s, command) for command in test_guide.commands(page()[number]))


def release(k8s):
    (one,) = json.loads(k8s.run_in([program("helm"), "list", "--namespace", "di-system", "--output", "json"]).stdout)
    return one["name"], one["revision"], one["status"]


def run_job(k8s, name):
    """It succeeds when the operator answers it, by the address that its environment has."""
    script = ('until wget -q -O- "$KUBERNETES_SERVER_URL/v1alpha1/replicas?namespace=$KUBERNETES_POD_NAMESPACE&coordinator=$KUBERNETES_POD_NAME"; '
              'do sleep 0.2; done')
    main = {"name": "di-container", "image": "docker.io/local/busybox:1", "imagePullPolicy": "IfNotPresent", "command": ["sh", "-c", script]}
    k8s.apply({"apiVersion": "diengine.opendilab.org/v1alpha1", "kind": "DIJob", "metadata": {"name": name},
               "spec": {"coordinator": {"template": {"spec": {"containers": [main]}}}}})
    phase = lambda: k8s.get(f"{JOBS}/{name}").get("status", {}).get("phase")
    wait_for(lambda: phase() == "Succeeded", lambda: f"{name} to succeed, not {phase()}", 120)


def served(k8s):
    versions = k8s.get(f"{CRDS}/dijobs.diengine.opendilab.org")["spec"]["versions"]
    return [version["name"] for version in versions if version["served"]]


def test_install_and_a_job(k8s):
    test_guide.copy_tree(k8s)
    image_rig.load(k8s, name=test_guide.IMAGE)
    told = type_block(k8s, 0)
    check("looks after the DIJobs of all namespaces" in told and page()[0][1] in told, f"Helm says what comes next: {told}")
    k8s.await_kind("dijob")
    check(release(k8s) == ("tutti", "1", "deployed"), release(k8s))
    status = lambda: k8s.get(DEPLOYMENT)["status"]  # Helm has waited for its ReplicaSet
    wait_for(lambda: status().get("readyReplicas") == 2, lambda: f"two operators: {status()}")
    check(k8s.get("/api/v1/namespaces/di-system")["metadata"]["labels"]["pod-security.kubernetes.io/enforce"] == "restricted", "the standard")
    run_job(k8s, "first")


def test_upgrade(k8s):
    """Values change, those of before stay, and so does the job; the CRD changes with them, as one in Helm's folder crds/ would not."""
    check(served(k8s) == ["v1alpha1"], served(k8s))
    type_block(k8s, 1)
    check(release(k8s) == ("tutti", "2", "deployed"), release(k8s))
    spec = k8s.get(DEPLOYMENT)["spec"]
    check((spec["replicas"], spec["template"]["spec"]["containers"][0]["image"]) == (1, test_guide.IMAGE), spec)
    check(served(k8s) == ["v1alpha1", "v2alpha1"], served(k8s))
    run_job(k8s, "second")


def test_uninstall_leaves_the_jobs(k8s):
    type_block(k8s, 2)
    check(k8s.find(DEPLOYMENT) is None and k8s.find("/apis/rbac.authorization.k8s.io/v1/clusterroles/di-operator") is None, "the operator to be gone")
    jobs = k8s.get(JOBS)["items"]
    check([(job["metadata"]["name"], job["status"]["phase"]) for job in jobs] == [("first", "Succeeded"), ("second", "Succeeded")], jobs)


def test_what_is_there_is_taken_over(k8s):
    """CRDs that the release of before left are its own; what kubectl applied is with --take-ownership, and only so."""
    uids = {job["metadata"]["uid"] for job in k8s.get(JOBS)["items"]}
    install = next(test_guide.commands(page()[0]))
    check(install.startswith("helm install "), install)
    install = install.replace(" --wait", "")
    test_guide.type_in(k8s, install)
    check(release(k8s) == ("tutti", "1", "deployed") and served(k8s) == ["v1alpha1"], f"{release(k8s)} {served(k8s)}")
    type_block(k8s, 2)
    test_guide.type_in(k8s, "kubectl apply -k k8s/deploy")
    refused = k8s.run_in([program("helm"), *install.replace("k8s/helm/tutti", CHART).split()[1:]], check=False)
    check(refused.returncode != 0 and "invalid ownership metadata" in refused.stderr, refused.stderr)
    test_guide.type_in(k8s, f"{install} --take-ownership")
    image = k8s.get(DEPLOYMENT)["spec"]["template"]["spec"]["containers"][0]["image"]
    check(release(k8s)[2] == "deployed" and image == test_guide.IMAGE, f"{release(k8s)} {image}")
    check({job["metadata"]["uid"] for job in k8s.get(JOBS)["items"]} == uids, "the same jobs")


cluster.main(test_lint, test_every_overlay_is_a_switch, test_the_chart_is_the_kustomization, test_what_stays, test_one_namespace_with_everything,
             test_other_values, test_accelerators_are_the_sample, test_what_is_refused, test_install_and_a_job, test_upgrade, test_uninstall_leaves_the_jobs,
             test_what_is_there_is_taken_over, full=True)
