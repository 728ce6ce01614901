#!/usr/bin/env python3
"""Tutti's roles as pods of a DIJob: started in any order, scaled, drained, crashed and moved; the weights keep their bits."""

import json
import os
import re
import signal
import struct
import sys

sys.dont_write_bytecode = True
import podrig
from podrig import Cluster
from rig import SANITIZED, SOURCE, check, equal, main, steps, wait_for

CONFIG = os.path.join(SOURCE, "configs", "cartpole-ppo.yaml")
SAME = ("weights_sha256", "env_steps", "updates", "episodes")


def s_coordinator(cluster, sets=(), **more):
    args = ["--config", "cartpole-ppo", "--seed", "1"]
    for item in sets:
        args += ["--set", item]
    return cluster.pod("coordinator", *args, **more)


def s_summary(pod):
    equal(pod.wait(), 0, f"exit code of {pod.name}")
    lines = pod.out().splitlines()
    equal(len(lines), 1, "lines on the coordinator's stdout")
    return json.loads(lines[0])


def s_same(summary, still, what):
    for key in SAME:
        equal(summary[key], still[key], f"{key} {what}")


# Without an end at 475; and with a constant learning rate: annealed, the weights would stand still from 150k steps on.
LONG = ["stop.return_mean=null", "algorithm.anneal=none"]


def s_long(world, count):
    """A run of so many steps, and how it ends when nothing happens."""
    sets = [*LONG, f"stop.env_steps={steps(count)}"]
    return sets, world.train(CONFIG, *sets, seed=1)


def s_stop(world, coordinator):
    """End the run at the version it has come to: as `kubectl exec ... tutti stop` does. Its summary."""
    run_dir = os.path.join(coordinator.dir, "run")
    check((world.status(run_dir) or {}).get("phase") == "running", "tutti status of a run without a controller")
    done = world.tutti("stop", run_dir)
    equal(done.returncode, 0, f"tutti stop: {done.stderr}")
    return s_summary(coordinator)


def solved_by(still, env_steps):
    """When an undisturbed run was solved, in so many steps. It had another batch played than one that was stopped in its update."""
    return still["solved_at_steps"] if (still["solved_at_steps"] or 0) <= env_steps else None


def s_same_weights(world, summary, what):
    """The weights of a run that comes to the same version undisturbed."""
    batch = 16 * 64
    still = world.train(CONFIG, *LONG, f"stop.env_steps={(summary['updates'] + 1) * batch}", seed=1)
    for key in ("weights_sha256", "updates"):
        equal(summary[key], still[key], f"{key} {what}")
    equal(summary["solved_at_steps"], solved_by(still, summary["env_steps"]), f"solved_at_steps {what}")


def s_late(coordinator, members):
    """Names of those that the machine held up for a lease."""
    silent = [line for line in coordinator.log().splitlines() if "not a word for" in line]
    return [member.name for member in members if any(f" on {member.name}," in line for line in silent)]


def s_end(world, coordinator, members, what, rolled_back=0):
    """End the run: the weights are those of a run left alone, nothing was lost but by so many roll-backs, and everybody
    ends well, who was there all along. Its summary."""
    for member in members:  # one that has not found the coordinator when the run is stopped waits for the next one
        wait_for(lambda m=member: f" on {m.name}" in coordinator.log(), f"{member.name} to find the coordinator")
    summary = s_stop(world, coordinator)
    s_same_weights(world, summary, what)
    late = s_late(coordinator, members)
    check(summary["rolled_back"] == rolled_back or late, f"roll-backs: {summary['rolled_back']}, wanted {rolled_back}")
    for member in members:
        code = member.wait()
        check(code == 0 or member.name in late, f"exit code of {member.name}: {code}")
    return summary


def s_updates(coordinator):
    """The newest update that the coordinator's log speaks of."""
    seen = [line.split("update ", 1)[1].split(",")[0] for line in coordinator.log().splitlines() if " run: update " in line]
    return int(seen[-1]) if seen else 0


def s_steps(coordinator):
    """The env steps that its log last spoke of."""
    return int(re.findall(r" run: update \d+, (\d+) env steps", coordinator.log())[-1])


def s_roster(coordinator):
    """"2 collectors, 1 learners, 0 aggregators" of the newest roster."""
    lines = [line for line in coordinator.log().splitlines() if "coordinator: roster " in line]
    return lines[-1] if lines else ""


def s_await_updates(coordinator, more=1):
    """So many updates more than its log speaks of now."""
    before = s_updates(coordinator)
    wait_for(lambda: s_updates(coordinator) >= before + more, f"{more} updates more than {before}")


def s_await_roster(coordinator, words):
    wait_for(lambda: words in s_roster(coordinator), lambda: f"a roster of {words}: {s_roster(coordinator)}")
    check(coordinator.process.poll() is None, "the run ended too early: more steps are needed")


def s_parts(world, coordinator):
    """What takes part now, as the coordinator knows it: [collectors, learners that hold the weights, aggregators]; None
    while one of the learners has no weights yet."""
    status = world.status(os.path.join(coordinator.dir, "run")) or {}
    active = [member for member in status.get("members", []) if member["phase"] == "active"]
    if not all(member.get("holds", True) for member in active):
        return None
    return [sum(member["role"] == role for member in active) for role in ("collector", "learner", "aggregator")]


def s_await_parts(world, coordinator, *wanted):
    """So many take part, and every learner holds the weights: from here on any one of them may die."""
    wait_for(lambda: s_parts(world, coordinator) == list(wanted),
             lambda: f"{wanted} to take part: {world.status(os.path.join(coordinator.dir, 'run'))}")


IN = {"coordinator": "coordinator: roster", "learner": "learner: roster", "collector": "collector: in as",
      "aggregator": "aggregator: in as"}


def s_restart(pod):
    """kill -9 of its container; till the coordinator knows the new one, and its predecessor no more."""
    pod.kill().restart()
    wait_for(lambda: IN[pod.role] in pod.log(), f"{pod.name} to be in again")


def s_await_names(members):
    for member in members:
        wait_for(lambda m=member: "waiting for the coordinator's service" in m.log(), f"{member.name} to wait for a name")


def test_solved(world):
    """A run ends by its rule. It has the two members without whom there is none: others could come too late for it."""
    sets, still = s_long(world, 600_000)
    cluster = Cluster(world)
    members = [cluster.pod("learner"), cluster.pod("collector")]
    s_await_names(members)
    summary = s_summary(s_coordinator(cluster, sets))
    s_same(summary, still, "in pods")
    equal(summary["status"], "succeeded", "status")
    equal(summary["solved_at_steps"], still["solved_at_steps"], "steps to the solution")
    check(SANITIZED or summary["solved_at_steps"], "CartPole is not solved")
    for member in members:
        equal(member.wait(), 0, f"exit code of {member.name}")


def test_in_any_order(world):
    """The members are there before the coordinator's service has a name."""
    cluster = Cluster(world)
    members = [cluster.pod(role) for role in ("learner", "collector", "aggregator", "learner", "collector")]
    s_await_names(members)
    coordinator = s_coordinator(cluster, [*LONG, "stop.env_steps=1G"])
    s_await_parts(world, coordinator, 2, 2, 1)
    s_await_updates(coordinator, 10)
    s_end(world, coordinator, members, "of members that were there first")


def test_scaled(world):
    """1 -> 4 -> 2 collectors and 1 -> 2 -> 1 learners by pods that come and get SIGTERM; learners of rank 0 too."""
    cluster = Cluster(world)
    coordinator = s_coordinator(cluster, [*LONG, "stop.env_steps=1G"])
    collectors, learners = [cluster.pod("collector")], [cluster.pod("learner")]
    aggregator = cluster.pod("aggregator")
    s_await_roster(coordinator, "1 collectors, 1 learners, 1 aggregators")
    collectors += [cluster.pod("collector") for _ in range(3)]
    s_await_roster(coordinator, "4 collectors, 1 learners")
    learners.append(cluster.pod("learner"))
    s_await_parts(world, coordinator, 4, 2, 1)
    equal(learners[0].stop(), 0, "exit code of the learner of rank 0 that drained")
    s_await_roster(coordinator, "4 collectors, 1 learners")
    equal([collectors.pop().stop(), collectors.pop().stop()], [0, 0], "exit codes of collectors that drained")
    s_await_roster(coordinator, "2 collectors, 1 learners")
    s_end(world, coordinator, [*collectors, learners[1], aggregator], "of a run that was scaled")


def test_weights_over_http(world):
    """From another host, with a token that is a Secret's: as the guide has it."""
    cluster = Cluster(world)
    token, fetched = os.path.join(cluster.secret, "token"), os.path.join(world.path, "fetched.safetensors")
    with open(token, "w", encoding="utf-8") as file:
        file.write("0123456789abcdef0123456789abcdef")
    os.chown(token, 0, podrig.USER)
    os.chmod(token, 0o440)
    sets = [*LONG, "stop.env_steps=1G", "checkpoint.every_s=0.1", "coordinator.http=0.0.0.0:8080"]
    coordinator = cluster.pod("coordinator", "--config", "cartpole-ppo", "--seed", "1", "--token", "/etc/tutti/curve/token",
                              *(word for item in sets for word in ("--set", item)))
    members = [cluster.pod(role) for role in ("collector", "learner", "aggregator")]
    s_await_parts(world, coordinator, 1, 1, 1)

    def fetch():
        done = world.tutti("fetch", f"http://{coordinator.address}:8080", "--token", token, "-o", fetched)
        check(done.returncode == 0 or "no weights yet" in done.stderr, f"fetch: {done.stderr}")
        return done.returncode == 0
    wait_for(fetch, "weights")
    equal(world.tutti("eval", fetched, "--episodes", "1").returncode, 0, "eval of what was fetched")
    check(not os.path.exists(os.path.join(coordinator.dir, "run", "token")), "a token beside the one that was given")
    s_end(world, coordinator, members, "of a run whose weights were fetched")


def test_coordinator_killed_in_place(world):
    """kill -9 of the container: the kubelet starts it again in the same pod, with its volume."""
    cluster = Cluster(world)
    coordinator = s_coordinator(cluster, [*LONG, "stop.env_steps=1G"])
    members = [cluster.pod(role) for role in ("collector", "learner", "aggregator", "learner", "collector")]
    s_await_parts(world, coordinator, 2, 2, 1)
    s_restart(coordinator)
    s_await_parts(world, coordinator, 2, 2, 1)
    s_await_updates(coordinator, 10)
    s_end(world, coordinator, members, "after the coordinator's crash")


def test_containers_that_crash(world):
    """The coordinator's, then each learner's, an aggregator's and a collector's, started again in their pods."""
    cluster = Cluster(world)
    coordinator = s_coordinator(cluster, [*LONG, "stop.env_steps=1G"])
    members = [cluster.pod(role) for role in ("collector", "learner", "aggregator", "learner", "collector")]
    s_await_parts(world, coordinator, 2, 2, 1)
    s_await_updates(coordinator)
    for pod in (coordinator, members[1], members[3], members[2], members[0]):
        s_restart(pod)
        s_await_parts(world, coordinator, 2, 2, 1)
        s_await_updates(coordinator)
    s_end(world, coordinator, members, "after crashes")


def test_coordinator_on_another_node(world):
    """Its pod is lost with its volume and made anew: same name, another address, no journal. The members take it over."""
    cluster = Cluster(world)
    coordinator = s_coordinator(cluster, [*LONG, "stop.env_steps=1G"])
    members = [cluster.pod(role) for role in ("collector", "learner", "aggregator", "learner", "collector")]
    s_await_parts(world, coordinator, 2, 2, 1)
    s_await_updates(coordinator, 10)
    done = s_steps(coordinator)
    coordinator.lose()
    members.append(cluster.pod("learner"))  # one that knows nothing is there before those that hold the weights
    coordinator = s_coordinator(cluster, [*LONG, "stop.env_steps=1G"], env={"KUBERNETES_COORDINATOR_RESTARTS": "1"})
    wait_for(lambda: "taking over a run that is under way" in coordinator.log(), "the new coordinator to take over")
    s_await_parts(world, coordinator, 2, 2, 1)
    s_await_updates(coordinator, 10)
    summary = s_end(world, coordinator, members, "under another coordinator")
    counted = summary["sps"] * (summary["wall_s"] - summary["first_step_s"])
    check(0 < counted <= summary["env_steps"] - done, f"{counted} steps in this life, {done} before it: {summary}")


def s_checkpoint(coordinator, name="final.safetensors"):
    """Metadata of a snapshot on the coordinator's volume."""
    with open(os.path.join(coordinator.dir, "run", "checkpoints", name), "rb") as file:
        size = struct.unpack("<Q", file.read(8))[0]
        return json.loads(file.read(size))["__metadata__"]


def test_snapshots_are_on_the_coordinators_volume(world):
    """Every member is lost: others begin from the newest snapshot, which they get from the coordinator."""
    cluster = Cluster(world)
    coordinator = s_coordinator(cluster, [*LONG, "stop.env_steps=1G", "checkpoint.every_s=0.2"])
    members = [cluster.pod("collector"), cluster.pod("learner")]
    world.await_snapshot(os.path.join(coordinator.dir, "run"), coordinator)
    for member in members:
        member.lose()
    members = [cluster.pod("learner"), cluster.pod("collector")]
    wait_for(lambda: "from /var/lib/tutti/checkpoints/" in members[0].log(), "the learner to begin from a snapshot")
    s_await_updates(coordinator, 10)
    summary = s_end(world, coordinator, members, "after all members were lost", rolled_back=1)
    equal(s_checkpoint(coordinator)["weights_sha256"], summary["weights_sha256"], "weights of final.safetensors")


def test_the_only_learner_is_replaced(world):
    """Its node is drained: it stays until its replacement has the weights, so nothing is rolled back."""
    cluster = Cluster(world)
    coordinator = s_coordinator(cluster, [*LONG, "stop.env_steps=1G"])
    members = [cluster.pod("aggregator"), cluster.pod("collector")]
    learner = cluster.pod("learner")
    s_await_roster(coordinator, "1 collectors, 1 learners, 1 aggregators")
    wait_for(lambda: s_updates(coordinator) > 0, "the first updates")
    learner.send_signal(signal.SIGTERM)
    wait_for(lambda: "asks to be let go" in coordinator.log(), "the learner to ask")
    members.append(cluster.pod("learner"))
    equal(learner.wait(), 0, "exit code of the learner that drained")
    s_await_updates(coordinator, 10)
    s_end(world, coordinator, members, "with another learner")


def test_a_job_that_is_deleted_goes_quickly(world):
    """All pods get SIGTERM at once: none waits for another until it is killed, which would be after half a minute."""
    cluster = Cluster(world)
    coordinator = s_coordinator(cluster, [*LONG, "stop.env_steps=100M"])
    members = [cluster.pod(role) for role in ("aggregator", "collector", "learner", "learner", "collector")]
    s_await_roster(coordinator, "2 collectors, 2 learners, 1 aggregators")
    for pod in [coordinator, *members]:
        pod.send_signal(signal.SIGTERM)
    equal(coordinator.wait(25), 143, "exit code of the coordinator")
    for member in members:
        equal(member.wait(25), 0, f"exit code of {member.name}")


if __name__ == "__main__":
    podrig.enter()
    main(test_solved, test_in_any_order, test_scaled, test_weights_over_http, test_coordinator_killed_in_place, test_containers_that_crash,
         test_coordinator_on_another_node, test_snapshots_are_on_the_coordinators_volume,
         test_the_only_learner_is_replaced, test_a_job_that_is_deleted_goes_quickly)
