#!/usr/bin/env python3
"""docs/guide/kubernetes.md, and what docs/guide/scale.md has for a cluster, typed from the pages themselves: each command as it stands
there, in a copy of the tree that a reader has, on a cluster whose nodes find the image under the guide's name for it. Where the page waits
for a person (`-w`, Ctrl-C) the test waits for what the page says is to be seen."""

import json
import os
import re
import shutil
import sys
import time

sys.dont_write_bytecode = True
import cluster

cluster.require(full=True)
import image_rig  # noqa: E402
import test_gang  # noqa: E402
import test_queue  # noqa: E402
import transcript_rig  # noqa: E402
from cluster import check, wait_for  # noqa: E402
from transcript_rig import SOURCE, commands  # noqa: E402

IMAGE = "registry.example/tutti:0.1.0"
JOB = "/apis/diengine.opendilab.org/v1alpha1/namespaces/default/dijobs/cartpole"
PODS = "/api/v1/namespaces/default/pods"
EVENTS = "/api/v1/namespaces/default/events?fieldSelector=involvedObject.name=cartpole"
OPERATORS = "/api/v1/namespaces/di-system/pods?labelSelector=app.kubernetes.io/name=di-operator"
PATIENCE = 270.0
s_batch = transcript_rig.Transcript("transcript-batch.md", "A session with a gang scheduler and a queue", """\
The commands of [kubernetes.md](kubernetes.md#all-of-its-pods-or-none) for both and what they print, written down by
`tests/k8s/test_guide.py --record docs/guide` on a cluster of one node, with the operator there.
Neither Volcano nor Kueue is in that cluster: it has their kinds, and a test plays their part, as the words between say.""",
                                    [(r"\bdijob-cartpole-[0-9a-f]{5}\b", "dijob-cartpole-RANDOM")])


def blocks(heading, page="kubernetes.md"):
    return transcript_rig.blocks(heading, page)


def type_in(k8s, command):
    """At the prompt, in the copy of the tree; its stdout and stderr."""
    return transcript_rig.Prompt(k8s, k8s.tree, env={"XDG_STATE_HOME": k8s.tree}).type(command, deadline=PATIENCE)


def phase(k8s):
    return k8s.find(JOB) and k8s.get(JOB).get("status", {}).get("phase")


def await_phase(k8s, wanted):
    wait_for(lambda: phase(k8s) == wanted, lambda: f"cartpole to be {wanted}, not {phase(k8s)}", PATIENCE)


def reasons(k8s):
    """Of the events on the job."""
    return {event["reason"] for event in k8s.get(EVENTS)["items"]}


def await_nothing(k8s):
    wait_for(lambda: not k8s.get(PODS)["items"], "the pods to go", PATIENCE)


def copy_tree(k8s):
    """Where a reader types."""
    k8s.tree = os.path.join(k8s.directory, "tree")
    for name in ("k8s", "configs"):
        shutil.copytree(os.path.join(SOURCE, name), os.path.join(k8s.tree, name))


def test_install(k8s):
    copy_tree(k8s)
    image_rig.load(k8s, name=IMAGE)  # in place of the guide's first two commands, which want a registry
    typed = list(commands(blocks("Install")[0]))
    check(typed[0].startswith("./dev image") and IMAGE in typed[1], f"the guide makes {IMAGE} first: {typed[:2]}")
    for command in typed[2:]:
        type_in(k8s, command)
        if "apply -k" in command:
            k8s.await_kind("dijob")


def test_from_nothing_to_succeeded(k8s):
    said = {}
    for command in commands(blocks("From nothing to Succeeded")[0]):
        if " -w" in command:
            await_phase(k8s, "Succeeded")
            wait_for(lambda: "DIJobSucceeded" in reasons(k8s), "the event, which comes after the phase", PATIENCE)
            command = command.replace(" -w", "")
        said[command.split("#")[0].strip()] = type_in(k8s, command)
    summary = [line for line in said["kubectl logs -f cartpole-coordinator"].splitlines() if line.startswith("{")]
    check(len(summary) == 1 and json.loads(summary[0])["status"] == "succeeded", f"{said}")
    check("DIJobSucceeded" in said["kubectl describe dijob cartpole"], said["kubectl describe dijob cartpole"])
    await_nothing(k8s)


def scale_block():
    """The long job, and what is typed while it runs."""
    long, typed = blocks("Scale a running job")
    return long, typed


def test_a_long_job_is_scaled_and_its_weights_fetched(k8s):
    long, typed = scale_block()
    for command in commands(long):
        type_in(k8s, command)
    await_phase(k8s, "Running")
    log = lambda: k8s.logs("cartpole-coordinator")
    wait_for(lambda: "run: update " in log(), "the first updates", PATIENCE)
    with k8s.slowed():
        for command in commands(typed):
            type_in(k8s, command)
            if "--replicas=4" in command:
                wait_for(lambda: "4 collectors" in log(), "four collectors", PATIENCE)
        *typed, look = commands(blocks("On a cluster", "scale.md")[0])
        for command in typed:
            type_in(k8s, command)
        learners = lambda: set(re.findall(r"^ +(learner/\d+) ", type_in(k8s, look), re.M))  # each stands in two tables
        wait_for(lambda: len(learners()) >= 2, lambda: f"two learners: {learners()}", PATIENCE)
        refused = k8s.kubectl("patch", "dijob", "cartpole", "--type=merge", "-p", '{"spec": {"learner": {"replicas": 3}}}', check=False)
        check("spec.learner.replicas: Forbidden: expected at most maxReplicas" in refused.stderr, refused)
    # beyond the 150k steps at which the config's own schedule ends, the weights still change
    steps = lambda: [int(found) for found in re.findall(r"update \d+, (\d+) env steps", log())]
    wait_for(lambda: any(count > 200000 for count in steps()), lambda: log()[-500:], PATIENCE)
    check("learning rate" not in log(), "no word of an end of learning")

    def fetched():
        done = k8s.run_in(["bash", "-c", f"PATH={os.path.dirname(k8s.programs['kubectl'])}:$PATH; cd {k8s.tree} && "
                           f"{blocks('Get the weights')[0][0]}"], check=False)
        return done.stderr if done.returncode == 0 else None
    with k8s.slowed():
        said = wait_for(fetched, "weights of a run that trains", PATIENCE)
        check("sha256" in said and os.path.getsize(f"{k8s.tree}/cartpole.safetensors") > 1000, said)
        type_in(k8s, "kubectl delete hpa --all; kubectl delete dijob cartpole")
    await_nothing(k8s)


def make_volume(k8s, name):
    """What a claim finds, once; its folder."""
    folder = os.path.join(k8s.directory, name)
    os.mkdir(folder)
    os.chown(folder, 65532, 65532)  # a hostPath knows no fsGroup
    k8s.apply({"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name}, "spec": {
        "capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": folder}}})
    return folder


def snapshots(folder):
    """Updates of those that are there."""
    found = os.listdir(f"{folder}/checkpoints") if os.path.isdir(f"{folder}/checkpoints") else []
    return [int(match[1]) for match in (re.fullmatch(r"(\d{8})\.safetensors", name) for name in found) if match]


def move_deadline(k8s, seconds):
    """To so long after it was Running."""
    k8s.patch(JOB, {"spec": {"activeDeadlineSeconds": seconds}})


def test_a_deadline_a_rest_an_end(k8s):
    made, rested, ended = blocks("A deadline, a rest, an end")
    folder = make_volume(k8s, "batch")
    for command in commands(made):
        type_in(k8s, command)
    deadline_s = k8s.get(JOB)["spec"]["activeDeadlineSeconds"]
    move_deadline(k8s, 3600)  # it comes when all was seen that comes before it, however slow the machine is
    check(not k8s.get(PODS)["items"], "no pod of a job that was made suspended")
    for command in commands(rested):
        type_in(k8s, command)
        if "=Running" in command:
            wait_for(lambda: max(snapshots(folder), default=0) > 0, "a snapshot with something learned", PATIENCE)
    before = max(snapshots(folder))
    status = k8s.get(JOB)["status"]
    check("startTimestamp" not in status and not status.get("restarts"), status)
    for command in commands(ended):
        if "DeadlineExceeded" in command:
            log = lambda: k8s.kubectl("logs", "cartpole-coordinator", "-c", "di-container", check=False).stdout
            first = wait_for(lambda: re.search(r"update (\d+),", log()), "training to go on", PATIENCE)
            check(int(first[1]) >= before, f"went on at update {first[1]}, with a snapshot of {before}")
            wait_for(lambda: max(snapshots(folder)) > before, "a snapshot with something learned after the rest", PATIENCE)
            started = wait_for(lambda: k8s.get(JOB)["status"].get("startTimestamp"), "its time to begin", PATIENCE)
            move_deadline(k8s, int(time.time() - cluster.unix_time(started)) + deadline_s)
            with k8s.slowed():  # a minute
                type_in(k8s, command)
        else:
            type_in(k8s, command)
    await_nothing(k8s)
    check(max(snapshots(folder)) > before, "what was learned after the rest is kept")


def test_the_weights_of_a_run_that_has_ended(k8s):
    claim = make_volume(k8s, "claim")
    type_in(k8s, next(commands(blocks("From nothing to Succeeded")[0][1:])))
    for command in commands(blocks("Get the weights")[1]):
        said = type_in(k8s, command)
        if "tutti eval" in command:
            mean = float(re.search(r"return (-?[\d.]+)", said)[1])
            check(mean >= 400, said)
        if "-c results" in command:
            summary = json.loads([line for line in k8s.kubectl("logs", "cartpole-coordinator", "-c", "di-container").stdout.splitlines()
                                  if line.startswith("{")][0])
            check(f"version {summary['updates']}," in said and "final.safetensors" in said, f"{said} {summary}")
    await_nothing(k8s)
    check(os.path.exists(f"{claim}/checkpoints/final.safetensors"), "the claim keeps them")


def test_weights_over_http(k8s):
    """With the page's Secret, by its TUTTI_TOKEN: from a pod, and through a port that kubectl forwards. The job trains on for the test's sake."""
    secret, fetch = blocks("Get the weights")[2:]
    os.makedirs(f"{k8s.tree}/mine", exist_ok=True)
    type_in(k8s, next(commands(blocks("From nothing to Succeeded")[0][1:])))
    for command in commands(secret):
        type_in(k8s, command)
    with open(f"{k8s.tree}/mine/kustomization.yaml", "a", encoding="utf-8") as file:  # more lines of its patch
        for setting in ("stop.return_mean=null", "stop.env_steps=1G"):
            file.write(f"    - {{op: add, path: /spec/coordinator/template/spec/containers/0/args/-, value: --set={setting}}}\n")
    type_in(k8s, "kubectl create -k mine")
    wait_for(lambda: "run: update " in k8s.logs("cartpole-coordinator"), "the first updates", PATIENCE)
    token = type_in(k8s, "kubectl get secret cartpole-token -o jsonpath='{.data.token}' | base64 -d")
    check(re.fullmatch("[0-9a-f]{64}", token), token)
    (command,) = commands(fetch)
    variable, program, *args = command.split()
    check((variable, program) == ("TUTTI_TOKEN=...", "tutti"), command)
    prompt = transcript_rig.Prompt(k8s, k8s.tree, env={"XDG_STATE_HOME": k8s.tree})
    forward = re.search(r"`(kubectl port-forward \S+ \d+)` and (\S+)\)", transcript_rig.section("Get the weights", "kubernetes.md"))
    terminal = transcript_rig.Terminal(prompt, forward[1])
    terminal.until("Forwarding from")
    type_in(k8s, "rm -f cartpole.safetensors")
    here = command.replace("cartpole-coordinator", forward[2])

    def fetched():
        done = k8s.run_in(prompt.line(here.replace("...", token)), check=False, env=prompt.env)
        check(done.returncode == 0 or "no weights yet" in done.stderr, done.stderr)
        return done.stderr if done.returncode == 0 else None
    said = wait_for(fetched, "weights of a run that trains", PATIENCE)
    check("sha256" in said and os.path.getsize(f"{k8s.tree}/cartpole.safetensors") > 1000, said)
    denied = k8s.run_in(prompt.line(here.replace("...", "f" * 64)), check=False, env=prompt.env)
    check(denied.returncode == 77, f"with another token: {denied.returncode} {denied.stderr}")
    terminal.end(interrupt=True)
    with k8s.slowed():
        k8s.apply({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "elsewhere"}, "spec": {
            "restartPolicy": "OnFailure", "securityContext": {"runAsUser": 65532, "fsGroup": 65532},
            "volumes": [{"name": "work", "emptyDir": {}}],
            "containers": [{"name": "c", "image": IMAGE, "command": ["/usr/bin/tutti"], "args": args, "workingDir": "/work",
                            "volumeMounts": [{"name": "work", "mountPath": "/work"}],
                            "env": [{"name": "TUTTI_TOKEN", "valueFrom": {"secretKeyRef": {"name": "cartpole-token", "key": "token"}}}]}]}})
        wait_for(lambda: k8s.get(f"{PODS}/elsewhere")["status"].get("phase") == "Succeeded",
                 lambda: f"weights in a pod: {k8s.logs('elsewhere')}", PATIENCE)
        check("sha256" in k8s.logs("elsewhere"), k8s.logs("elsewhere"))
        type_in(k8s, "kubectl delete dijob cartpole; kubectl delete pod elsewhere; kubectl delete secret cartpole-token")
    await_nothing(k8s)


# --- what a scheduler of gangs and a queue have of it: schedulers are not to be had here, so this test plays their part

def mine(k8s, prompt):
    """The first kustomization of the page, which sections above have written over."""
    for command in list(commands(blocks("From nothing to Succeeded")[0]))[:2]:
        prompt.type(command)


def members(k8s, where=lambda pod: True):
    return [pod["metadata"]["name"] for pod in k8s.get(f"{PODS}?labelSelector=dijob-name=cartpole")["items"] if where(pod)]


def place_gang(k8s):
    """Volcano: once so many pods are there as the group says, it gives all of them their node."""
    path = test_gang.s_groups(test_gang.VOLCANO, "cartpole")
    least = k8s.get(path)["spec"]["minMember"]
    waits = lambda: members(k8s, lambda pod: pod["spec"]["schedulerName"] == "volcano" and "nodeName" not in pod["spec"])
    names = wait_for(lambda: len(waits()) == least and waits(), lambda: f"{least} pods for Volcano: {waits()}", PATIENCE)
    k8s.patch(f"{path}/status", {"status": {"phase": "Running", "running": least}})  # before they run: with the job's end the group goes
    for name in names:
        k8s.api("POST", f"{PODS}/{name}/binding", {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": name},
                                                   "target": {"kind": "Node", "name": cluster.parts.NODE}})


def await_operators(k8s):
    """Only those of the Deployment as it is now: the rollout is over when the last old one has been asked to end, and until it has heard of that
    it may lead, and knows neither gangs nor queues."""
    names = lambda: [pod["metadata"]["name"] for pod in k8s.get(OPERATORS)["items"]]
    wait_for(lambda: len(names()) == 2, lambda: f"two operators: {names()}", PATIENCE)


def check_rights(k8s):
    """The operator in its pods has only the rights that the overlay gives it, and missed none."""
    said = k8s.kubectl("-n", "di-system", "logs", "-l", "app.kubernetes.io/name=di-operator", "--tail=-1").stdout
    check("operator" in said and "forbidden" not in said, said)


def test_all_of_its_pods_or_none(k8s):
    test_gang.s_serve(k8s, test_gang.VOLCANO)
    prompt = transcript_rig.Prompt(k8s, k8s.tree, s_batch, shown="tutti")
    s_batch.say("## All of its pods, or none")
    mine(k8s, prompt)
    prompt.follow(
        blocks("All of its pods, or none")[0],
        ("kubectl apply -k k8s/overlays/gang", r"^clusterrole\S+/di-operator-podgroups created$"), ("kubectl -n di-system set image", "updated$"),
        ("kubectl -n di-system rollout status", "successfully rolled out$", lambda: await_operators(k8s)), ("kubectl create -k mine", "^dijob.* created$",
         lambda: wait_for(lambda: len(members(k8s)) == 6, lambda: f"six pods: {members(k8s)}", PATIENCE)),
        ("kubectl get podgroups", r"^cartpole +6 +\d+s$"))
    s_batch.say("Volcano gives all six of them a node.")
    place_gang(k8s)
    await_phase(k8s, "Succeeded")
    wait_for(lambda: not k8s.find(test_gang.s_groups(test_gang.VOLCANO, "cartpole")), "the group to go with the job's end", PATIENCE)
    check("No resources found" in prompt.type("kubectl get podgroups"), "the group is there")
    prompt.follow(["kubectl get dijob cartpole", "kubectl delete dijob cartpole"], ("kubectl", "^cartpole +Succeeded "), ("kubectl", "deleted"))
    await_nothing(k8s)
    check_rights(k8s)


def test_in_a_queue(k8s):
    test_queue.s_serve(k8s)
    prompt = transcript_rig.Prompt(k8s, k8s.tree, s_batch, shown="tutti")
    s_batch.say("## In a queue")
    prompt.follow(
        blocks("In a queue")[0],
        ("kubectl apply -k k8s/overlays/queue", r"^clusterrole\S+/di-operator-queue created$"), ("kubectl -n di-system set image", "updated$"),
        ("kubectl -n di-system rollout status", "successfully rolled out$", lambda: await_operators(k8s)), ("cat >mine/kustomization.yaml", r"\A\Z"),
        ("kubectl create -k mine", "^dijob.* created$", lambda: test_queue.s_await_workload(k8s, "cartpole"), lambda: await_phase(k8s, "Suspended"),
         lambda: wait_for(lambda: k8s.get(JOB)["status"].get("reason") == "AwaitingAdmission", "the reason", PATIENCE)),
        ("kubectl get dijob cartpole", r"^cartpole +Suspended +\d+s +AwaitingAdmission$"), ("kubectl get workloads", r"^dijob-cartpole-\w{5} +team-rl +\d+s$"))
    check(not members(k8s), "no pod before it is admitted")
    s_batch.say("Kueue has room for it.")
    test_queue.s_admit(k8s, "cartpole", "plain")
    await_phase(k8s, "Succeeded")
    test_queue.s_await_workload(k8s, "cartpole", lambda workload: test_queue.s_states(workload).get("Finished") == "True", "finished")
    prompt.follow(["kubectl get dijob cartpole", "kubectl get workloads", "kubectl delete dijob cartpole"], ("kubectl", "^cartpole +Succeeded "),
                  ("kubectl", r"^dijob-cartpole-\w{5} +team-rl +all +True +True +\d+s$"), ("kubectl", "deleted"))
    await_nothing(k8s)
    check_rights(k8s)
    for overlay in ("gang", "queue"):  # `kubectl delete -k k8s/deploy` leaves these
        k8s.kubectl("delete", "-f", os.path.join(SOURCE, f"k8s/overlays/{overlay}/rbac.yaml"))


# ---

def test_instead_of_di_orchestrator(k8s):
    """0.2.2 as its own manifest leaves it: names that ours has, too, and a schema that wants a webhook for conversion."""
    type_in(k8s, "kubectl delete -k k8s/deploy")
    upstream = os.path.join(SOURCE, "tests/k8s/upstream")
    for name in ("operator.yaml", "dijob-v1alpha1.yaml"):
        k8s.kubectl("create", "-f", os.path.join(upstream, name))
    for command in commands(blocks("Instead of DI-orchestrator")[0]):
        type_in(k8s, command)
    k8s.await_kind("dijob")
    system = "/apis/apps/v1/namespaces/di-system/deployments", "/api/v1/namespaces/di-system/services"
    left = [item["metadata"]["name"] for path in system for item in k8s.get(path)["items"]]
    check(sorted(left) == ["di-operator", "di-operator-metrics", "di-server"], f"{left}")
    ports = {port["port"]: port["targetPort"] for port in k8s.get(f"{system[1]}/di-server")["spec"]["ports"]}
    check(ports == {8080: "api", 8081: "api"}, f"{ports}")
    webhooks = k8s.get("/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations")["items"]
    check(not webhooks, f"{webhooks}")


def test_uninstall_and_the_namespaced_overlay(k8s):
    for command in commands(blocks("Uninstall")[0]):
        type_in(k8s, command)
    wait_for(lambda: k8s.find("/api/v1/namespaces/di-system") is None, "the namespace to go", PATIENCE)
    for command in ("kubectl apply -k k8s/crd", "kubectl apply -k k8s/overlays/namespaced",
                    f"kubectl -n di-system set image deployment/di-operator operator={IMAGE}",
                    "kubectl -n di-system rollout status deployment/di-operator --timeout=240s"):
        type_in(k8s, command)


if __name__ == "__main__":
    transcript_rig.main([s_batch], test_install, test_from_nothing_to_succeeded, test_a_long_job_is_scaled_and_its_weights_fetched,
                        test_a_deadline_a_rest_an_end, test_the_weights_of_a_run_that_has_ended, test_weights_over_http, test_all_of_its_pods_or_none,
                        test_in_a_queue, test_instead_of_di_orchestrator, test_uninstall_and_the_namespaced_overlay, full=True)
