#!/usr/bin/env python3
"""Tutti's own roles in pods: configs/k8s/dijob-cartpole.yaml as it is, to Succeeded with the weights of a local run; scaled by
kubectl while it trains, its pods killed and moved, and the weights keep their bits."""

import json
import os
import re
import signal
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
import cluster

cluster.require(full=True)
import image_rig  # noqa: E402
import job_rig  # noqa: E402
from cluster import check, wait_for  # noqa: E402
from job_rig import (DEADLINE, JOBS, PODS, SOURCE, TUTTI, await_more_updates, await_roster, await_updates, phase, pods,  # noqa: E402
                     roster, summary)

SAMPLE = os.path.join(SOURCE, "configs/k8s/dijob-cartpole.yaml")
CONFIG = os.path.join(SOURCE, "configs/cartpole-ppo.yaml")
SAME = ("weights_sha256", "env_steps", "updates", "episodes", "solved_at_steps")
s_local = {}


def local(*sets):
    """The summary of the same run by `tutti run`."""
    if sets not in s_local:
        with tempfile.TemporaryDirectory() as folder:
            args = [TUTTI, "run", CONFIG, "--seed", "1", "--output", "json", "--run-dir", os.path.join(folder, "run")]
            for item in sets:
                args += ["--set", item]
            done = subprocess.run(args, capture_output=True, text=True, check=True, timeout=240,
                                  env={**os.environ, "XDG_STATE_HOME": folder})
            s_local[sets] = json.loads(done.stdout)
    return s_local[sets]


# Until it is stopped; and with a constant learning rate: annealed, the weights would stand still from 150k steps on.
LONG = ("stop.return_mean=null", "algorithm.anneal=none")
BATCH = 16 * 64
# Where no pod is killed: a silence, of a process that the machine holds up, is no death. Who alone has the weights would be missed.
PATIENT = "net.lease_ms=30000"


def create(k8s, name, *sets, **replicas):
    job_rig.create(k8s, SAMPLE, name, *sets, **replicas)


def check_same(got, wanted, keys=SAME):
    for key in keys:
        check(got[key] == wanted[key], f"{key}: {got[key]} in pods, {wanted[key]} by tutti run")


def stop(k8s, name):
    """End it at the version that it has come to; as `tutti run` comes to the same version undisturbed."""
    job_rig.stop(k8s, name)
    got = summary(k8s, name)
    still = local(*LONG, f"stop.env_steps={(got['updates'] + 1) * BATCH}")
    check_same(got, still, ("weights_sha256", "updates"))
    solved = still["solved_at_steps"]  # maybe in a batch more than the one had that was stopped in its update
    check(got["solved_at_steps"] == (solved if (solved or 0) <= got["env_steps"] else None), f"{got} in pods, {still} by tutti run")
    return got


def test_install(k8s):
    job_rig.install(k8s)


def test_the_sample_solves_cartpole(k8s):
    k8s.kubectl("create", "-f", SAMPLE)
    got = summary(k8s, "cartpole")
    check_same(got, local())
    check(got["status"] == "succeeded" and got["reason"] == "return_mean" and got["return_mean"] >= 475, got)


def test_scaled_while_it_trains(k8s):
    """1 -> 4 -> 2 collectors by kubectl scale, 1 -> 2 -> 1 learners by kubectl patch."""
    create(k8s, "scaled", *LONG, PATIENT, "stop.env_steps=1G", collector=1, learner=1)
    await_updates(k8s, "scaled")
    k8s.kubectl("scale", "dijob/scaled", "--replicas=4")
    await_roster(k8s, "scaled", "4 collectors")
    k8s.kubectl("patch", "dijob", "scaled", "--type=merge", "-p", '{"spec": {"learner": {"replicas": 2}}}')
    await_roster(k8s, "scaled", "4 collectors, 2 learners")
    k8s.kubectl("scale", "dijob/scaled", "--replicas=2")
    await_roster(k8s, "scaled", "2 collectors, 2 learners")
    k8s.kubectl("patch", "dijob", "scaled", "--type=merge", "-p", '{"spec": {"learner": {"replicas": 1}}}')
    await_roster(k8s, "scaled", "2 collectors, 1 learners")
    check(stop(k8s, "scaled")["rolled_back"] == 0, "rolled back")


def is_whole(k8s, name):
    """Is it the first era still? Another one begins where nobody has the weights, and who alone has them is missed if the machine holds it up for
    a lease of 5 s, or for two of them where a coordinator is new. That is of no kill: False, and the job goes, for another one to be asked."""
    log = wait_for(lambda: roster(k8s, name) and k8s.logs(f"{name}-coordinator"), f"the log of {name}")
    if set(re.findall(r"coordinator: roster \d+: era (\d+),", log)) == {"1"}:
        return True
    check("not a word for" in log or "no learner with its weights" in log, f"{name} rolled back: {log}")
    k8s.kubectl("delete", "dijob", name)
    return False


def lose_pods(k8s, name):
    create(k8s, name, *LONG, "stop.env_steps=1G")
    await_roster(k8s, name, "2 collectors, 2 learners, 1 aggregators")
    await_more_updates(k8s, name)
    for role in ("collector", "learner"):
        k8s.kubectl("delete", "pod", pods(k8s, name, role)[0]["metadata"]["name"], "--grace-period=0", "--force")
    wait_for(lambda: len(pods(k8s, name, "learner")) == 2, "another learner")
    uid = pods(k8s, name, "coordinator")[0]["metadata"]["uid"]
    k8s.kubectl("delete", "pod", f"{name}-coordinator", "--grace-period=0", "--force")
    wait_for(lambda: [pod for pod in pods(k8s, name, "coordinator") if pod["metadata"]["uid"] != uid], "another coordinator")
    await_roster(k8s, name, "2 collectors, 2 learners, 1 aggregators")
    await_more_updates(k8s, name)
    if not is_whole(k8s, name):
        return False
    check(stop(k8s, name)["rolled_back"] == 0, "rolled back")
    return True


def test_pods_that_are_lost(k8s):
    """A collector and a learner deleted by force, then the coordinator: others come in their places."""
    check(any(lose_pods(k8s, f"lost-{turn}") for turn in range(3)), "always rolled back")


def container_pid(name):
    """The first process of a pod's container, by the environment that only it has."""
    def look():
        for entry in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{entry}/environ", "rb") as file:
                    if f"KUBERNETES_POD_NAME={name}".encode() in file.read().split(b"\0"):
                        return int(entry)
            except OSError:
                continue
        return None
    return wait_for(look, f"the process of {name}")


def crash_containers(k8s, name):
    create(k8s, name, *LONG, "stop.env_steps=1G")
    await_roster(k8s, name, "2 collectors, 2 learners, 1 aggregators")
    await_more_updates(k8s, name)
    for pod in (f"{name}-coordinator", pods(k8s, name, "learner")[0]["metadata"]["name"]):
        before = roster(k8s, name)
        os.kill(container_pid(pod), signal.SIGKILL)
        wait_for(lambda p=pod: k8s.get(f"{PODS}/{p}")["status"]["containerStatuses"][0]["restartCount"] >= 1, f"{pod} to restart")
        await_roster(k8s, name, "2 collectors, 2 learners, 1 aggregators", old=before)
    await_more_updates(k8s, name)
    if not is_whole(k8s, name):  # what the next coordinator does not know
        return False
    uid = k8s.get(f"{PODS}/{name}-coordinator")["metadata"]["uid"]
    k8s.kubectl("delete", "pod", f"{name}-coordinator")  # as a drain of its node does: SIGTERM, and it goes with its volume
    wait_for(lambda: [pod for pod in pods(k8s, name, "coordinator") if pod["metadata"]["uid"] != uid], "another coordinator")
    await_roster(k8s, name, "2 collectors, 2 learners, 1 aggregators")
    await_more_updates(k8s, name)
    if not is_whole(k8s, name):
        return False
    check(stop(k8s, name)["rolled_back"] == 0, "rolled back")
    return True


def test_containers_that_crash(k8s):
    """kill -9 of the coordinator and a learner: the kubelet starts them again in their pods; then the coordinator moves."""
    # no other cluster of this machine has a job of that name
    check(any(crash_containers(k8s, f"crash-{os.getpid()}-{turn}") for turn in range(3)), "always rolled back")


def reason(k8s, name):
    """The last column of kubectl get dijob."""
    rows = k8s.kubectl("get", "dijob", name).stdout.splitlines()
    return rows[1][rows[0].index("REASON"):].strip()


def told(k8s, name, word):
    """The messages of the Warnings of that reason."""
    items = k8s.get(f"/api/v1/namespaces/default/events?fieldSelector=involvedObject.name={name}")["items"]
    return [event["message"] for event in items if (event["type"], event["reason"]) == ("Warning", word)]


def test_a_quota(k8s):
    """No failure either, and the user is told; once it is lifted the job is to go on by itself, within the minute that the tests take which
    come next: test_after_a_quota."""
    k8s.kubectl("create", "quota", "few", "--hard=pods=0")
    wait_for(lambda: "pods" in k8s.get("/api/v1/namespaces/default/resourcequotas/few").get("status", {}).get("hard", {}), "the quota")
    create(k8s, "many", *LONG, "stop.env_steps=1G", collector=1, learner=1)
    wait_for(lambda: reason(k8s, "many") == "QuotaExceeded", lambda: reason(k8s, "many"), DEADLINE)
    check(not any(one["type"] == "TemplateRefused" for one in k8s.get(f"{JOBS}/many")["status"]["conditions"]), "for templates only")
    wait_for(lambda: any("exceeded quota: few" in message for message in told(k8s, "many", "FailedCreate")), "the event")
    k8s.kubectl("delete", "quota", "few")
    wait_for(lambda: k8s.kubectl("run", "any", "--image=any", "--dry-run=server", check=False).returncode == 0, "pods to be let in again")


def test_a_kubelet_that_is_away(k8s):
    """Its node's pods train on without it; what is wanted meanwhile comes when it is back."""
    create(k8s, "away", *LONG, PATIENT, "stop.env_steps=1G", collector=1, learner=1)
    await_updates(k8s, "away")
    wait_for(lambda: all(pod["status"].get("phase") == "Running" for role in ("collector", "learner", "coordinator")
                         for pod in pods(k8s, "away", role)), "the kubelet to have said that they run")
    k8s.stop_part("kubelet", signal.SIGKILL)
    k8s.kubectl("scale", "dijob/away", "--replicas=3")
    wait_for(lambda: len(pods(k8s, "away", "collector")) == 3, "the pods of three collectors")
    waiting = [pod for pod in pods(k8s, "away", "collector") if pod["status"].get("phase") == "Pending"]
    check(len(waiting) == 2, f"two that nobody starts, not {len(waiting)}")
    k8s.kubectl("delete", "pod", waiting[0]["metadata"]["name"], "--grace-period=0", "--force")
    wait_for(lambda: len(pods(k8s, "away", "collector")) == 3, "another one for the one deleted")
    k8s.start_part("kubelet")
    await_roster(k8s, "away", "3 collectors")
    await_more_updates(k8s, "away")
    check(stop(k8s, "away")["rolled_back"] == 0, "rolled back")


def test_a_config_that_is_wrong(k8s):
    """Its coordinator would say the same for ever: the job has failed, and says it with the coordinator's own last line."""
    create(k8s, "wrong", "learner.shard=3")
    wait_for(lambda: phase(k8s, "wrong") == "Failed", lambda: f"wrong to fail, not to be {phase(k8s, 'wrong')}", DEADLINE)
    words = "ended with exit code 78 (bad configuration): "
    status = k8s.get(f"{JOBS}/wrong")["status"]
    condition = next(one for one in status["conditions"] if one["type"] == "Failed")
    check(condition["status"] == "True" and words in condition["message"] and "learner.shard" in condition["message"], f"{condition}")
    check(reason(k8s, "wrong") == "BadConfiguration", reason(k8s, "wrong"))
    wait_for(lambda: any(words in message and "learner.shard" in message for message in told(k8s, "wrong", "DIJobFailed")),
             "the event")
    check("BadConfiguration" in k8s.kubectl("get", "all").stdout, "kubectl get all shows it")
    k8s.kubectl("delete", "dijob", "wrong")


def test_what_may_pass_is_said(k8s):
    """An image that is nowhere: no failure, and the user is told where he looks."""
    job = json.loads(k8s.kubectl("create", "--dry-run=client", "-o", "json", "-f", SAMPLE).stdout)
    job["metadata"]["name"] = "nowhere"
    container = job["spec"]["coordinator"]["template"]["spec"]["containers"][0]
    container.update(image="localhost:1/no/such:image", imagePullPolicy="Always")
    k8s.kubectl("create", "-f", "-", input=json.dumps(job))
    wait_for(lambda: reason(k8s, "nowhere") == "ImagePullFailed", lambda: reason(k8s, "nowhere"), DEADLINE)
    wait_for(lambda: any("nowhere-coordinator" in message and "no/such" in message
                         for message in told(k8s, "nowhere", "ImagePullFailed")), "the event")
    check(phase(k8s, "nowhere") == "Created", phase(k8s, "nowhere"))
    k8s.kubectl("delete", "dijob", "nowhere")


def test_a_crash_loop_is_said(k8s):
    """A program that ends at once, again and again, in its pod: no failure of a job that is not ours to judge."""
    job = json.loads(k8s.kubectl("create", "--dry-run=client", "-o", "json", "-f", SAMPLE).stdout)
    job["metadata"]["name"] = "loops"
    del job["spec"]["engine"]
    job["spec"]["coordinator"]["template"]["spec"]["containers"][0].update(command=["/usr/bin/tutti"], args=["fetch", "/nowhere"])
    k8s.kubectl("create", "-f", "-", input=json.dumps(job))
    wait_for(lambda: reason(k8s, "loops") == "CrashLoop", lambda: reason(k8s, "loops"), DEADLINE)
    # Of the pod that was the first to be in trouble: the coordinator ends with 66, the others, which have nobody to ask, with 64.
    said = re.compile(r"pod loops-\S+ ended with exit code (66 .*/nowhere|64 .*: give either --run DIR)")
    wait_for(lambda: any(map(said.match, told(k8s, "loops", "CrashLoop"))), lambda: f"the event: {told(k8s, 'loops', 'CrashLoop')}")
    check(phase(k8s, "loops") not in ("Failed", "Succeeded"), phase(k8s, "loops"))
    k8s.kubectl("delete", "dijob", "loops")


def learner_log(k8s, name):
    """What the learner with a node said last, also in a life before this one."""
    placed = [pod["metadata"]["name"] for pod in pods(k8s, name, "learner") if pod["spec"].get("nodeName")]
    if not placed:
        return ""
    return "".join(k8s.kubectl("logs", placed[0], *which, check=False).stdout for which in ((), ("--previous",)))


def test_learners_with_cards(k8s):
    """k8s/samples/gpu: a card of the node for each learner, from the image that has the library. No node of the tests has a driver, and the
    learners say so; as `auto` they learn on the CPU, to the same weights."""
    if not os.path.exists(image_rig.CARDS):
        print("without cards: this build has no compiler for them (tools/install-cuda)")
        return
    image_rig.load(k8s, "--cuda")
    k8s.set_capacity("nvidia.com/gpu", 1)
    k8s.kubectl("delete", "dijob", "cartpole")  # of the first test
    text = k8s.kubectl("kustomize", os.path.join(SOURCE, "k8s/samples/gpu")).stdout
    k8s.kubectl("create", "-f", "-", input=text)
    wait_for(lambda: "there is no NVIDIA driver here" in learner_log(k8s, "cartpole"), "a learner that looks for a card", DEADLINE)
    both = pods(k8s, "cartpole", "learner")
    placed = [pod for pod in both if pod["spec"].get("nodeName")]
    check(len(both) == 2 and len(placed) == 1, f"{len(placed)} of {len(both)} on the node's only card")
    check(all(pod["spec"]["containers"][0]["resources"]["limits"]["nvidia.com/gpu"] == "1" for pod in both), "a card each")
    k8s.kubectl("delete", "dijob", "cartpole")
    wait_for(lambda: not pods(k8s, "cartpole", "learner"), "its pods to go")
    k8s.set_capacity("nvidia.com/gpu", 2)
    k8s.kubectl("create", "-f", "-", input=text.replace("learner.device=cuda", "learner.device=auto"))
    check_same(summary(k8s, "cartpole"), local())


def test_after_a_quota(k8s):
    await_updates(k8s, "many")
    wait_for(lambda: reason(k8s, "many") == "", lambda: reason(k8s, "many"), DEADLINE)
    stop(k8s, "many")


cluster.main(test_install, test_the_sample_solves_cartpole, test_scaled_while_it_trains, test_pods_that_are_lost,
             test_containers_that_crash, test_a_quota, test_a_kubelet_that_is_away, test_a_config_that_is_wrong, test_what_may_pass_is_said, test_a_crash_loop_is_said,
             test_after_a_quota, test_learners_with_cards, full=True)
