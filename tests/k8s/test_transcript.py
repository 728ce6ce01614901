#!/usr/bin/env python3
"""The commands of DI-orchestrator's guide, typed one by one with the real kubectl against a real cluster: each gives what it gave
there, or better. `test_transcript.py --record docs/guide` writes down what a person sees (transcript.md).

The job is k8s/samples/dijob-qbert.yaml as it stands but for its CPUs and memory, which no test machine has. In place of
DI-engine's image there is one with a shell, curl and a command `ding` that asks for replicas and waits to be told that it has
converged: who computes makes no difference here (DI-engine's own client: test_di_engine.py).
"""

import json
import os
import re
import subprocess
import sys

sys.dont_write_bytecode = True
import cluster
import transcript_rig
from cluster import check, wait_for
from transcript_rig import SOURCE, TUTTI

PODS = "/api/v1/namespaces/default/pods"
JOBS = "/apis/diengine.opendilab.org/v1alpha1/namespaces/default/dijobs"
SERVER = "http://10.89.0.1:8080"
API = "$KUBERNETES_SERVER_URL/v1alpha1/replicas"
DING = r"""#!/bin/sh
case "$*" in
*"module config"*) echo compiled >qbert_dqn_k8s.py.pkl ;;
*"module coordinator"*)
    echo "collectors and learners wanted"
    until curl -s -f -X POST -d '{"namespace": "'$KUBERNETES_POD_NAMESPACE'", "coordinator": "'$KUBERNETES_POD_NAME'",
        "collectors": {"replicas": 2}, "learners": {"replicas": 1, "gpus": "0"}}' $KUBERNETES_SERVER_URL/v1alpha1/replicas
    do sleep 0.2; done # denied while the operator does not know its pod's address
    echo
    until [ -e /ding/converged ]; do sleep 0.1; done
    echo "[DI-engine dist pipeline]Your RL agent is converged" ;;
*) echo "$* waits for its coordinator"; exec sleep 100000 ;;
esac
"""

# A container's first process, which no signal ends that it does not ask for: a pod's end would be half a minute.
SHELL = b"""#!/bin/sh
trap 'exit 143' TERM
/bin/sh "$@" &
wait $!
"""

cluster.require(full=True)
s_page = transcript_rig.Transcript("transcript.md", "A session with kubectl", """\
The commands of DI-orchestrator's guide and what they print here, written down by
`tests/k8s/test_transcript.py --record docs/guide` on a cluster of one node. What differs from there:
[dijob.md](dijob.md). Sessions with the other front ends: [TFJobs](transcript-tfjob.md), [ElasticDL's tasks](transcript-elasticdl.md),
[tasks](transcript-tasks.md).""", [
    # a job has 25 events, and one more after each five minutes: in a session that takes so long one of its end is there, too
    (r"^  Normal +(?:DIJobSucceeded .*|SuccessfulDelete .*: qbert-dqn-(?:learner-.*|coordinator))\n", "")])
say = s_page.say


# --- typing

def type_in(k8s, command, check_code=True, errors=True):
    """A line at the prompt, where the manifest is."""
    return transcript_rig.Prompt(k8s, k8s.directory, s_page).type(command, check_code, errors)


def ask(k8s, method, query="", body=None):
    """The replicas API from the coordinator's pod, as DI-engine's `ding -m dist --add` does it: sh and curl."""
    data = f" -d '{json.dumps(body)}'" if body is not None else ""
    inner = f'curl -s -w " %{{http_code}}" -X {method}{data} "{API}{query}"'
    text = type_in(k8s, "kubectl exec qbert-dqn-coordinator -- sh -c '%s'" % inner.replace("'", "'\\''"), errors=False)
    reply, _, code = text.rpartition(" ")
    check(code.isdigit(), f"{inner}: {text}")
    return int(code), json.loads(reply)


# --- the stage

def s_image(k8s):
    """A shell, curl with what it is linked to, and `ding`."""
    curl = subprocess.run(["sh", "-c", "command -v curl"], capture_output=True, text=True, check=True).stdout.strip()
    listed = subprocess.run(["ldd", curl], capture_output=True, text=True, check=True).stdout
    files = {path: os.path.realpath(path) for path in re.findall(r"(/\S+)", listed) if os.path.exists(path)}
    files.update({"/usr/bin/curl": curl, "/bin/busybox": cluster.images.BUSYBOX, "/bin/ding": DING.encode(),
                  "/bin/bash": SHELL, "/ding": ("dir", 0o777), "/tmp": ("dir", 0o1777)})
    files.update({f"/bin/{name}": ("link", "busybox") for name in ("sh", "cat", "sleep", "touch", "ls", "rm")})
    k8s.make_image("docker.io/opendilab/ding:nightly-atari", files)


def s_start(k8s):
    s_image(k8s)
    with open(f"{SOURCE}/k8s/samples/dijob-qbert.yaml", encoding="utf-8") as file:
        text = re.sub(r"memory: \"10Gi\"", 'memory: "32Mi"', re.sub(r"cpu: \d+", "cpu: 50m", file.read()))
    text = text.replace("/data/nfs/ding/qbert-dqn", os.path.join(k8s.directory, "nfs"))
    with open(os.path.join(k8s.directory, "dijob-qbert.yaml"), "w", encoding="utf-8") as file:
        file.write(text)
    k8s.kubectl("apply", "-k", f"{SOURCE}/k8s/crd")
    wait_for(lambda: k8s.find(JOBS) is not None, "DIJobs to be served")
    k8s.await_kind("dijob")
    with open(os.path.join(k8s.directory, "logs", "operator.log"), "wb") as log:
        k8s.exec_in([TUTTI, "operator", f"--server-address={SERVER}"], env={"KUBECONFIG": k8s.kubeconfig}, stderr=log)


def s_pods(k8s, role=""):
    return sorted(pod["metadata"]["name"] for pod in k8s.get(PODS)["items"]
                  if f"qbert-dqn-{role}" in pod["metadata"]["name"] and "deletionTimestamp" not in pod["metadata"])


def s_services(k8s):
    items = k8s.get("/api/v1/namespaces/default/services?labelSelector=dijob-name=qbert-dqn")["items"]
    return sorted(item["metadata"]["name"] for item in items)


def s_await_words(k8s, job, *words):
    """In the events of a job: they come a moment after what they tell of."""
    events = f"/api/v1/namespaces/default/events?fieldSelector=involvedObject.name={job}"
    for one in words:
        wait_for(lambda: any(one in event["message"] for event in k8s.get(events)["items"]), f"'{one}' in the events of {job}")


def s_running(k8s, count):
    def look():
        pods = [pod for pod in k8s.get(PODS)["items"] if "deletionTimestamp" not in pod["metadata"]]
        return len(pods) == count == len(k8s.get(PODS)["items"]) and \
            all(pod["status"].get("phase") == "Running" for pod in pods)
    wait_for(look, f"{count} running pods")


def s_await_counts(k8s, collectors, learners):
    """In the job's status, which follows its pods."""
    counts = lambda: [k8s.get(f"{JOBS}/qbert-dqn")["status"].get(f"{role}Replicas") for role in ("collector", "learner")]
    wait_for(lambda: counts() == [collectors, learners], lambda: f"{collectors} collectors and {learners} learners: {counts()}")


def s_phase(k8s, phase):
    wait_for(lambda: k8s.get(f"{JOBS}/qbert-dqn").get("status", {}).get("phase") == phase, f"phase {phase}")


# --- the guide, from top to bottom

def test_submit(k8s):
    s_start(k8s)
    say("## Submit a job")
    check(type_in(k8s, "kubectl create -f dijob-qbert.yaml") == "dijob.diengine.opendilab.org/qbert-dqn created\n", "created")
    s_phase(k8s, "Running")
    say("Its coordinator is there first; it asks for the others.")
    s_running(k8s, 4)
    wait_for(lambda: "successfully create replicas" in k8s.logs("qbert-dqn-coordinator"), "the answer in the log")
    wait_for(lambda: s_services(k8s) == s_pods(k8s), "a service a pod")
    table = type_in(k8s, "kubectl get pod")
    check(len(re.findall(r"^qbert-dqn-(?:coordinator|collector-[a-z0-9]{5}|learner-[a-z0-9]{5}) +1/1 +Running", table, re.M)) == 4,
          "four running pods")
    table = type_in(k8s, "kubectl get dijob")
    check(re.search(r"^NAME +PHASE +AGE +REASON *\nqbert-dqn +Running +\d\S* *$", table, re.M), "name, phase, age")
    table = type_in(k8s, "kubectl get service -l dijob-name=qbert-dqn")
    check(sorted(re.findall(r"^(\S+) +ClusterIP +None +<none> +22\d+/TCP", table, re.M)) == s_pods(k8s), "a service a pod")
    check("successfully create replicas" in type_in(k8s, "kubectl logs qbert-dqn-coordinator"), "the answer in its log")


def test_describe(k8s):
    say("## Look at it")

    def counted():
        status = k8s.get(f"{JOBS}/qbert-dqn")["status"].get("replicaStatus", {})
        return status.get("Collector") == {"active": 2} and status.get("Learner") == {"active": 1}
    wait_for(counted, "the counters")
    s_await_words(k8s, "qbert-dqn", "DIJob qbert-dqn created", *(f"Create {what}: qbert-dqn-{role}" for what in ("pod", "service")
                                                                 for role in ("coordinator", "collector", "learner")))
    text = type_in(k8s, "kubectl describe dijob qbert-dqn | sed -n '/^Status:/,$p'")
    roles = re.findall(r"^    (Aggregator|Collector|Coordinator|Learner):", text, re.M)
    check(roles == sorted(roles) and "Coordinator" in roles, f"the roles in order: {roles}")
    check(re.search(r"Phase: +Running", text) and "DIJobCreated" in text and "SuccessfulCreate" in text, "phase and events")
    check("Create pod: qbert-dqn-coordinator" in text, "the event's words")
    text = type_in(k8s, "kubectl explain dijob.spec.cleanPodPolicy")
    check("cleanPodPolicy" in text, "explained")


def test_replicas_api(k8s):
    say("## More and fewer replicas, asked for over HTTP\n\nFrom the coordinator's pod, as `ding -m dist --add` does it.")
    who = {"namespace": "default", "coordinator": "qbert-dqn-coordinator"}
    code, reply = ask(k8s, "GET", "?namespace=default&coordinator=qbert-dqn-coordinator")
    check(code == 200 and reply["message"] == "successfully get replicas" and len(reply["data"]["collectors"]) == 2, f"{reply}")
    code, reply = ask(k8s, "POST", body={**who, "collectors": {"replicas": 1}, "learners": {"replicas": 0}})
    made = reply["data"]["collectors"]
    check(code == 200 and reply["message"] == "successfully create replicas" and len(made) == 1, f"{reply}")
    check(re.fullmatch(r"qbert-dqn-collector-[a-z0-9]{5}\.default:22270", made[0]), made[0])
    s_running(k8s, 5)
    code, reply = ask(k8s, "POST", "/failed", {**who, "collectors": [made[0].split(".")[0]], "learners": []})
    check(code == 200 and reply["message"] == "successfully recreate replicas" and len(reply["data"]["collectors"]) == 1, f"{reply}")
    check(reply["data"]["collectors"] != made, "another one")
    code, reply = ask(k8s, "DELETE", body={**who, "collectors": {"replicas": 1}, "learners": {"replicas": 0}})
    check(code == 200 and reply["message"] == "successfully delete replicas" and len(reply["data"]["collectors"]) == 1, f"{reply}")
    code, reply = ask(k8s, "GET", "?foo=1")
    check((code, reply["code"], reply["message"]) == (400, 1, "request param foo is not supported"), f"{reply}")
    code, reply = ask(k8s, "PATCH")
    check((code, reply["message"]) == (501, "PATCH not implemented"), f"{reply}")
    s_running(k8s, 4)


def test_scale(k8s):
    say("## Scale with kubectl\n\nNew here: once the manifest, or `kubectl patch`, declares a number, the spec decides, and no longer "
        "the HTTP API.")
    text = type_in(k8s, "kubectl scale dijob/qbert-dqn --replicas=4")
    check(text == "dijob.diengine.opendilab.org/qbert-dqn scaled\n", text)
    s_running(k8s, 6)
    type_in(k8s, "kubectl patch dijob qbert-dqn --type=merge -p '{\"spec\": {\"learner\": {\"replicas\": 2}}}'")
    s_running(k8s, 7)
    check(len(s_pods(k8s, "learner")) == 2, "two learners")
    s_await_counts(k8s, 4, 2)
    type_in(k8s, "kubectl get dijob qbert-dqn -o wide")
    type_in(k8s, "kubectl scale dijob/qbert-dqn --replicas=1")
    wait_for(lambda: len(s_pods(k8s, "collector")) == 1, "one collector")


def test_end(k8s):
    say("## It ends\n\nThe coordinator exits with 0: the job has succeeded. `cleanPodPolicy: Running` takes the pods that still run and "
        "leaves the coordinator's for its log.")
    k8s.let_go("qbert-dqn-coordinator", "/ding/converged")
    s_phase(k8s, "Succeeded")
    wait_for(lambda: [pod["metadata"]["name"] for pod in k8s.get(PODS)["items"]] == ["qbert-dqn-coordinator"], "the cleanup")
    wait_for(lambda: not s_services(k8s), "the services to go")
    counted = lambda: k8s.get(f"{JOBS}/qbert-dqn")["status"]["replicaStatus"]
    wait_for(lambda: not any(one.get("active") for one in counted().values()), lambda: f"nobody to be active: {counted()}")
    s_await_counts(k8s, 0, 0)
    check(re.search(r"^qbert-dqn +Succeeded +\d+", type_in(k8s, "kubectl get dijob"), re.M), "succeeded")
    text = type_in(k8s, "kubectl describe dijob qbert-dqn | sed -n '/^Status:/,$p'")
    check(re.search(r"Coordinator:\n +Succeeded: +1", text) and "DIJobSucceeded" in text, "counters and event")
    check(re.search(r"DIJob qbert-dqn succeeded because coordinator succeeded", text), "the condition's words")
    type_in(k8s, "kubectl get pod")
    check("converged" in type_in(k8s, "kubectl logs qbert-dqn-coordinator | tail -1"), "its last words")
    text = type_in(k8s, "kubectl delete dijob qbert-dqn")
    check(text.startswith('dijob.diengine.opendilab.org "qbert-dqn" deleted'), text)
    wait_for(lambda: not k8s.get(PODS)["items"], "the pods to go")
    check("No resources found" in type_in(k8s, "kubectl get dijob,pod"), "nothing left")


def test_refusals(k8s):
    say("## What is refused, and how it says so")
    text = type_in(k8s, "sed 's/cleanPodPolicy: Running/cleanPodPolicy: Sometimes/' dijob-qbert.yaml | kubectl create -f -", False)
    check("Invalid CleanPodPolicy Sometimes, expected in [None, Running, All]" in text, text)
    text = type_in(k8s, "sed 's/imagePullPolicy/imagePulPolicy/; s/qbert-dqn/typo/' dijob-qbert.yaml | kubectl create -f -", False)
    if "created" in text:  # the schema keeps what it does not know; the API server's word about the pod is passed on

        def refused():
            conditions = k8s.get(f"{JOBS}/typo").get("status", {}).get("conditions", [])
            return any("imagePulPolicy" in one.get("message", "") for one in conditions)
        wait_for(refused, "the server's words in a condition")
        s_await_words(k8s, "typo", "imagePulPolicy", "DIJob typo created")
        text = type_in(k8s, "kubectl describe dijob typo | sed -n '/^Events:/,$p'")
        check("imagePulPolicy" in text, text)


if __name__ == "__main__":
    transcript_rig.main([s_page], test_submit, test_describe, test_replicas_api, test_scale, test_end, test_refusals, full=True)
