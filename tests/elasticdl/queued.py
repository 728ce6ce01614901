#!/usr/bin/env python3
"""Tasks that wait in a queue of Kueue's, on the API server of pods.py: Kueue is this test, which writes what a Workload's status says. A real API
server is in k8s.test_elasticdl."""
import re
import signal
import subprocess

from pods import await_state, begun, create, master, on_cluster
from rig import DEADLINE, TUTTI, main, wait


def conditions(workload):
    return {one["type"]: one["status"] for one in workload.get("status", {}).get("conditions", [])}


def condition(kind, status="True", reason="Test", message=""):
    return {"type": kind, "status": status, "reason": reason, "message": message, "lastTransitionTime": "2026-01-01T00:00:00Z"}


def admit(cluster, name, *sets, flavor="fast"):
    """As Kueue does when there is room for all of it."""
    with cluster.lock:
        cluster.flavors[flavor] = {"metadata": {"name": flavor}, "spec": {"nodeLabels": {"card": flavor}, "tolerations": [{"key": "card", "operator": "Exists"}]}}
        cluster.change(cluster.workloads[name], status={
            "conditions": [condition("QuotaReserved"), condition("Admitted")],
            "admissionChecks": [{"name": "nodes", "podSetUpdates": [{"name": sets[-1], "labels": {f"of-{flavor}": "yes"}}]}],
            "admission": {"podSetAssignments": [{"name": one, "flavors": {"cpu": flavor}} for one in sets]}})


def evict(cluster, name, reason="Preempted"):
    with cluster.lock:
        status = cluster.workloads[name]["status"]
        cluster.change(cluster.workloads[name], status={**status, "conditions": [*status["conditions"], condition("Evicted", reason=reason, message="to make room")]})


def set_active(cluster, name, active):
    with cluster.lock:
        cluster.change(cluster.workloads[name], spec={**cluster.workloads[name]["spec"], "active": active})


def the_workload(cluster):
    wait("the Workload", lambda: cluster.workloads)
    (name,) = cluster.workloads
    return name


def s_cards(template):
    return template["spec"]["containers"][0]["resources"]["limits"]["example.com/card"]


def await_given_back(cluster, name):
    wait("the quota to be given back", lambda: conditions(cluster.workloads[name]).get("QuotaReserved") == "False")
    assert not cluster.pods, cluster.pods


def await_reason(server, reason):
    wait(f"'{reason}'", lambda: server.json("/status?name=job")["reason"] == reason)


@on_cluster
def waits_and_runs(folder, cluster):
    """No pod before its Workload is admitted, and then where that says; evicted it gives all back, waits, and begins anew; its end is told."""
    server = master(folder, cluster)
    create(server, "job", 2, "&queue=team")
    name = the_workload(cluster)
    workload, a_set = cluster.workloads[name], cluster.sets["job-worker-0"]
    assert workload["spec"]["queueName"] == "team" and [(one["name"], one["count"]) for one in workload["spec"]["podSets"]] == [("worker", 2)], workload
    owner = workload["metadata"]["ownerReferences"]
    assert [(one["kind"], one["name"], one["uid"]) for one in owner] == [("StatefulSet", "job-worker-0", a_set["metadata"]["uid"])], owner
    assert server.json("/status?name=job")["state"] == "queued" and not cluster.pods and a_set["spec"]["replicas"] == 0, cluster.sets
    with cluster.lock:
        cluster.change(workload, status={"conditions": [condition("QuotaReserved", "False", "Pending", "no room for it")]})
    await_reason(server, "no room for it")
    for life in (1, 2):
        admit(cluster, name, "worker", flavor=f"kind-{life}")
        told = await_state(server, "job", "running")
        template = a_set["spec"]["template"]
        assert told["reason"] is None and template["spec"]["nodeSelector"] == {"card": f"kind-{life}"} and len(template["spec"]["tolerations"]) == 1, template
        labels = template["metadata"]["labels"]
        assert [label for label in labels if label.startswith("of-")] == [f"of-kind-{life}"] and labels["kueue.x-k8s.io/podset"] == "worker", labels
        wait("both programs", lambda life=life: len(begun(folder)) == 2 * life)
        if life == 1:
            evict(cluster, name)
            await_state(server, "job", "queued")
            await_given_back(cluster, name)
            assert conditions(workload)["Requeued"] == "True" and "admission" not in workload["status"], workload
    (folder / "go").touch()
    await_state(server, "job", "succeeded")
    wait("Kueue to know", lambda: conditions(workload).get("Finished") == "True")
    assert not cluster.pods
    assert 'tutti_master_tasks_finished_total{outcome="succeeded"} 1' in server.get("/metrics")[1], server.get("/metrics")
    assert server.end() == 0


@on_cluster
def lost_answers(folder, cluster):
    """Answers that are lost make nothing twice, and what is said of a Workload that has changed meanwhile is said again."""
    server = master(folder, cluster)
    cluster.fails = {"POST statefulsets": ["lost"], "POST workloads": [503, "lost"], "GET workloads": [500], "GET statefulsets": [503], "GET resourceflavors": [503],
                     "PATCH statefulsets": [409, "lost", 503], "PUT workloads": [409, "lost"]}
    create(server, "job", 2, "&queue=team")
    name = the_workload(cluster)
    admit(cluster, name, "worker")
    await_state(server, "job", "running")
    wait("both programs", lambda: len(begun(folder)) == 2)
    evict(cluster, name)
    await_given_back(cluster, name)
    admit(cluster, name, "worker")
    await_state(server, "job", "running")
    wait("both lives", lambda: len(begun(folder)) == 4)
    (folder / "go").touch()
    await_state(server, "job", "succeeded")
    wait("Kueue to know", lambda: conditions(cluster.workloads[name]).get("Finished") == "True")
    assert not any(cluster.fails.values()) and list(cluster.workloads) == [name], cluster.fails
    assert server.end() == 0


@on_cluster
def deaf(folder, cluster):
    """Who answers, and does nothing of what is said, is not told again without a pause: the Workload is looked at first."""
    server = master(folder, cluster)
    create(server, "job", 1, "&queue=team")
    name = the_workload(cluster)
    admit(cluster, name, "worker")
    await_state(server, "job", "running")
    cluster.fails = {"PUT workloads": ["deaf"] * 2}
    evict(cluster, name)
    await_given_back(cluster, name)
    admit(cluster, name, "worker")
    await_state(server, "job", "running")
    cluster.fails = {"PUT workloads": ["deaf"] * 2}
    (folder / "go").touch()
    await_state(server, "job", "succeeded")
    wait("Kueue to know", lambda: conditions(cluster.workloads[name]).get("Finished") == "True")
    told = [asked for asked in cluster.asked if asked.endswith(" workloads")]
    assert told.count("PUT workloads") == 6 and ("PUT workloads", "PUT workloads") not in zip(told, told[1:]), told
    assert server.end() == 0


def s_killed(folder, cluster, server, state="queued", fails=None):
    """The next master, by the state that it has found its task in."""
    assert server.end(signal.SIGKILL) != 0
    cluster.fails = fails or {}
    server = master(folder, cluster)
    await_state(server, "job", state)
    return server


@on_cluster
def killed_in_every_state(folder, cluster):
    """Before its Workload is made, while it waits, admitted without pods, while it runs, gives back, begins anew and ends: the next master goes on."""
    cluster.fails = {"POST workloads": [503] * 1000}
    server = master(folder, cluster)
    create(server, "job", 2, "&queue=team")
    wait("a first try", lambda: "POST workloads" in cluster.asked)
    server = s_killed(folder, cluster, server)
    name = the_workload(cluster)
    server = s_killed(folder, cluster, server, fails={"PATCH statefulsets": [503] * 1000})
    admit(cluster, name, "worker")
    await_state(server, "job", "starting")
    assert not cluster.pods
    server = s_killed(folder, cluster, server, "running")
    wait("both programs", lambda: len(begun(folder)) == 2)
    server = s_killed(folder, cluster, server, "running", {"PATCH statefulsets": [503] * 1000})
    assert begun(folder) == ["begun"] * 2, "the same programs"
    evict(cluster, name)
    await_state(server, "job", "queued")
    server = s_killed(folder, cluster, server, "queued", {"PUT workloads": [503] * 1000})
    wait("its pods to go", lambda: not cluster.pods)
    server = s_killed(folder, cluster, server)
    await_given_back(cluster, name)
    admit(cluster, name, "worker")
    await_state(server, "job", "running")
    wait("both lives", lambda: len(begun(folder)) == 4)
    cluster.fails = {"PUT workloads": [503] * 1000}
    (folder / "go").touch()
    await_state(server, "job", "succeeded")
    server = s_killed(folder, cluster, server, "succeeded")
    wait("Kueue to know", lambda: conditions(cluster.workloads[name]).get("Finished") == "True")
    assert list(cluster.workloads) == [name] and server.get("/delete?name=job") == (200, "OK")
    wait("its set to go", lambda: not cluster.sets)
    assert server.end() == 0


@on_cluster
def rests_by_its_workload(folder, cluster):
    """spec.active false and true again before the pods have gone: they go all the same, and the next are others. Deleted while it rests it is gone at
    once, and so is all of it."""
    server = master(folder, cluster)
    assert server.get("/create?strategy=ParameterServer&n_worker=1&n_ps=1&img=i:1&name=job&queue=team") == (200, "OK")
    name = the_workload(cluster)
    assert [(one["name"], one["count"]) for one in cluster.workloads[name]["spec"]["podSets"]] == [("ps", 1), ("worker", 1)], cluster.workloads
    admit(cluster, name, "ps", "worker")
    await_state(server, "job", "running")
    wait("both programs", lambda: len(begun(folder)) == 2)
    before = dict(cluster.pods)
    cluster.fails = {"PATCH statefulsets": [503] * 1000}
    set_active(cluster, name, False)
    await_reason(server, "its Workload has spec.active false")
    assert server.json("/status?name=job")["step"] == "giving its places back"
    set_active(cluster, name, True)
    await_reason(server, "it is admitted, and the pods that it had before are still to go")
    cluster.fails = {}
    await_state(server, "job", "running")
    wait("both lives", lambda: len(begun(folder)) == 4)
    assert sorted(cluster.pods) == sorted(before) and not any(cluster.pods[one] is before[one] for one in before), cluster.pods
    set_active(cluster, name, False)
    evict(cluster, name, "Deactivated")
    await_state(server, "job", "queued")
    await_given_back(cluster, name)
    assert conditions(cluster.workloads[name])["Requeued"] == "False", "not before Kueue lets it"
    assert server.get("/delete?name=job") == (200, "OK")
    await_state(server, "job", "deleted")
    wait("its sets to go", lambda: not cluster.sets and not cluster.services)
    assert server.end() == 0


@on_cluster
def its_workload_goes(folder, cluster):
    """Whoever deletes it takes the members, and another comes; with its set the task is over."""
    server = master(folder, cluster)
    create(server, "job", 1, "&queue=team")
    name = the_workload(cluster)
    admit(cluster, name, "worker")
    await_state(server, "job", "running")
    cluster.fails = {"POST workloads": [503] * 1000}  # until its reason was read
    with cluster.lock:
        del cluster.workloads[name]
    await_reason(server, "its Workload was deleted, and is made again when its pods have gone")
    cluster.fails = {}
    wait("another Workload", lambda: list(cluster.workloads) == [name])
    assert not cluster.pods and "status" not in cluster.workloads[name], cluster.workloads
    with cluster.lock:
        del cluster.workloads[name], cluster.sets["job-worker-0"]
    told = await_state(server, "job", "failed")
    assert told["reason"] == "the API server refuses StatefulSet job-worker-0: job-worker-0 not found", told
    assert server.end() == 0
    assert not cluster.workloads and not cluster.sets, cluster.workloads


@on_cluster
def another_template(folder, cluster):
    """Who waits has that of the master that is there, in its Workload as in its pods; with quota it stays what it was."""
    file = folder / "template.yaml"
    for cards in (1, 2, 3):
        file.write_text(f"apiVersion: v1\nkind: PodTemplate\ntemplate: {{spec: {{containers: [{{name: agent, resources: {{limits: {{example.com/card: {cards}}}}}}}]}}}}\n")
        server = master(folder, cluster, "--template", file)
        if cards == 1:
            create(server, "job", 1, "&queue=team")
        name = the_workload(cluster)
        if cards == 2:
            wait("its cards", lambda: s_cards(cluster.workloads[name]["spec"]["podSets"][0]["template"]) == 2)
            admit(cluster, name, "worker")
        if cards >= 2:
            await_state(server, "job", "running")
        wanted = min(cards, 2)
        assert s_cards(cluster.workloads[name]["spec"]["podSets"][0]["template"]) == wanted, cluster.workloads
        assert cards == 1 or s_cards(cluster.sets["job-worker-0"]["spec"]["template"]) == wanted, cluster.sets
        assert server.end(signal.SIGKILL) != 0


@on_cluster
def with_a_group(folder, cluster):
    """There is a PodGroup only while it may have members: one that waited would keep places from others."""
    server = master(folder, cluster, "--gang", "volcano")
    create(server, "job", 2, "&queue=team")
    name = the_workload(cluster)
    for life in (1, 2):
        assert not cluster.groups and not cluster.pods, cluster.groups
        admit(cluster, name, "worker")
        await_state(server, "job", "running")
        assert list(cluster.groups) == ["job-0"] and len(cluster.pods) == 2, cluster.groups
        template = cluster.sets["job-worker-0"]["spec"]["template"]
        assert template["spec"]["schedulerName"] == "volcano" and template["metadata"]["annotations"]["scheduling.k8s.io/group-name"] == "job-0", template
        if life == 1:
            evict(cluster, name)
            await_given_back(cluster, name)
            wait("the group to go", lambda: not cluster.groups)
    (folder / "go").touch()
    await_state(server, "job", "succeeded")
    wait("the group to go", lambda: not cluster.groups)
    assert server.end() == 0


@on_cluster
def refused(folder, cluster):
    """A cluster without Kueue, an object of its name that is somebody else's, pods that may not be: the task fails with the server's words. A flavour or a
    class that is not there is waited for, and said."""
    for fails, words in (({"POST workloads": [404]}, "Workload elasticdl-job-0-[0-9a-z]+: so says the test"), ({"POST workloads": [409]}, "Workload .*: so says the test"),
                         ({"PATCH statefulsets": [422]}, "StatefulSet job-worker-0: so says the test"), ({"POST services": [403]}, "Service .*: so says the test"),
                         ({"POST statefulsets": [403]}, "StatefulSet .*: so says the test")):
        cluster.fails = fails
        server = master(folder, cluster)
        create(server, "job", 2, "&queue=team")
        if "PATCH statefulsets" in fails:
            admit(cluster, the_workload(cluster), "worker")
        told = await_state(server, "job", "failed")
        assert re.match(f"(worker-0: )?the API server refuses {words}", told["reason"]), told
        assert not cluster.pods
        assert server.get("/delete?name=job") == (200, "OK")
        wait("its set to go", lambda: not cluster.sets)
        assert server.end() == 0
        cluster.expect_master()  # what the last one still had on its way is not done
        cluster.workloads.clear()  # as the garbage collector has it
    server = master(folder, cluster)
    create(server, "job", 2, "&queue=team")
    name = the_workload(cluster)
    cluster.fails = {"GET resourceflavors": [404] * 1000}
    admit(cluster, name, "worker", flavor="slow")
    await_reason(server, "a flavour that its Workload was admitted with: so says the test")
    cluster.fails = {}
    await_state(server, "job", "running")
    assert server.end() == 0


@on_cluster
def a_queue_for_all(folder, cluster):
    """`tutti master --queue`: of tasks that name none. A cluster without Workloads ends it before it takes a task."""
    server = master(folder, cluster, "--queue", "all")
    create(server, "job", 1, "&queue=team")
    create(server, "other")
    wait("two Workloads", lambda: len(cluster.workloads) == 2)
    assert sorted(one["spec"]["queueName"] for one in cluster.workloads.values()) == ["all", "team"], cluster.workloads
    assert [one["queue"] for one in server.json("/list")] == ["team", "all"], server.json("/list")
    assert 'tutti_master_tasks{state="queued"} 2' in server.get("/metrics")[1], server.get("/metrics")
    assert server.end() == 0
    cluster.fails = {"GET workloads": [404]}
    for words, code, options in (("this cluster has no Workloads (kueue.x-k8s.io/v1beta2): --queue wants Kueue and its CRDs", 69, ("--queue", "all")),
                                 ("--queue: queue is 'A'; lower case letters", 64, ("--queue", "A"))):
        ended = subprocess.run([TUTTI, "master", "--listen", "127.0.0.1:0", "--on", "kubernetes", "--kubeconfig", cluster.config, "--run-dir", folder / "none", *options],
                               capture_output=True, text=True, timeout=DEADLINE, check=False)
        assert ended.returncode == code and words in ended.stderr, ended


if __name__ == "__main__":
    main([waits_and_runs, lost_answers, deaf, killed_in_every_state, rests_by_its_workload, its_workload_goes, another_template, with_a_group, refused, a_queue_for_all])
