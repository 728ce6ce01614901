#!/usr/bin/env python3
"""`tutti task run --claim` where the API server refuses, is busy or loses what it was asked: one of ours, that does so when a test wants it.
A real one is k8s.test_task's."""

import contextlib
import http.server
import json
import os
import re
import signal
import sys
import threading

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from taskrig import check, create, equal, jobs, name, ok, rig, sets, tasks  # noqa: E402

JOBS = "/apis/batch/v1/namespaces/default/jobs"
COMMAND = ": %IN %DATA %OUT"
GOOD = 0


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def log_message(self, *args):
        pass

    def answer(self):
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if self.path.startswith(JOBS) and not self.server.cluster.speaks.is_set():
            self.server.cluster.unanswered.append(self.command)
            self.server.cluster.speaks.wait()
        code, value = self.server.cluster.ask(self.command, self.path.split("?")[0], json.loads(body) if body else None)
        data = json.dumps(value).encode()
        with contextlib.suppress(BrokenPipeError):  # who asked has gone
            self.send_response(code)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

    do_GET = do_POST = do_DELETE = answer


class Cluster:
    """Jobs, and nothing that runs them. codes: what a request of a method is answered with, and is for nothing; GOOD: it is done.
    late: a POST is done all the same. A test may give a function of a task's name in place of POST's code."""

    def __init__(self, world):
        self.lock, self.jobs, self.asked = threading.Lock(), {}, []
        self.codes, self.late, self.ends = {"GET": GOOD, "POST": GOOD, "DELETE": GOOD}, False, False
        self.speaks, self.unanswered = threading.Event(), []  # not set: about Jobs it says nothing at all
        self.speaks.set()
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads, self.server.cluster = True, self
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.config = world.file("kubeconfig", json.dumps({
            "apiVersion": "v1", "kind": "Config", "current-context": "c", "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
            "clusters": [{"name": "c", "cluster": {"server": f"http://127.0.0.1:{self.server.server_address[1]}"}}],
            "users": [{"name": "u", "user": {"token": "x"}}]}))

    def ask(self, method, path, body):
        with self.lock:
            task = body["metadata"]["annotations"]["tutti-task"].split(".", 2)[2] if body else ""
            self.asked.append((method, path, task))
            code = self.codes[method] if path.startswith(JOBS) else GOOD
            code = code(task) if callable(code) else code
            if method == "POST" and (code == GOOD or self.late):
                self.jobs.setdefault(body["metadata"]["name"], dict(body, status={"succeeded": 1} if self.ends else {}))
            if code != GOOD:
                return code, {"kind": "Status", "status": "Failure", "code": code, "message": f"no, {code}"}
            if method == "DELETE":
                known = self.jobs.pop(path.rsplit("/", 1)[1], None)
                return (200 if known else 404), {}
            if method == "GET":
                return 200, {"items": list(self.jobs.values()) if path == JOBS else []}
            return 201, body

    def count(self, method, task=""):
        with self.lock:
            return len([1 for each in self.asked if each[0] == method and each[1].startswith(JOBS) and each[2] == task])

    def looks(self, count, method="GET", task=""):
        """Until it was asked so often more."""
        before = self.count(method, task)
        rig.wait_for(lambda: self.count(method, task) >= before + count, f"{count} times {method}")

    def engine(self, world, *options):
        return world.start("task", "run", "--claim", "volume", "--kubeconfig", self.config, *options)


def image(world, task="task"):
    create(world, COMMAND, "--bypass", "--containerImage", "me/image", "--retries", "0", task=task)


def states(world, task="task"):
    return [job["status"] for job in jobs(world, task)]


def stop(world, engine):
    engine.send_signal(signal.SIGTERM)
    code, _, said = world.finish(engine)
    equal(code, 143, f"the engine's end: {said}")
    return said


def refused_for_now(world):
    """Too many requests, credentials that have expired, a quota: no job is broken for it, and it is said once."""
    sets(world, 3)
    for code in (429, 408, 401, 403):
        cluster = Cluster(world)
        cluster.ends, cluster.codes["POST"] = True, code
        image(world, task=f"c{code}")
        engine = cluster.engine(world, "--cpu", "2")
        cluster.looks(6, "POST", f"c{code}")
        equal(sorted(states(world, f"c{code}")), ["assigned", "running", "running"], f"while it is refused, {code}")
        cluster.codes["POST"] = GOOD
        end, _, said = world.finish(engine)
        equal((end, states(world, f"c{code}"), {job["attempt"] for job in jobs(world, f"c{code}")}), (0, ["done"] * 3, {1}), f"{code}: {said}")
        equal(len(re.findall(f"POST.*no, {code}.*trying on", said)), 1, f"what is said of {code}: {said}")


def refused_after_silence(world):
    """A server that did not answer, and then refuses: the latter is said, too."""
    sets(world, 2)
    cluster = Cluster(world)
    cluster.codes["GET"] = cluster.codes["POST"] = 503
    image(world)
    engine = cluster.engine(world, "--cpu", "2")
    cluster.looks(4, "POST", "task")
    cluster.codes.update(GET=GOOD, POST=403)
    cluster.looks(6, "POST", "task")
    said = stop(world, engine)
    equal(len(re.findall("no, 403; trying on", said)), 1, f"what is said: {said}")


def refused_for_good(world):
    """A Job that is not valid breaks its job; those of its task are not all asked for before another's have their turn."""
    sets(world, 3)
    cluster = Cluster(world)
    cluster.ends, cluster.codes["POST"] = True, lambda task: 422 if task == "bad" else GOOD
    image(world, task="bad")
    image(world, task="good")
    code, said, err = world.finish(cluster.engine(world, "--cpu", "2"))
    equal((code, states(world, "bad"), states(world, "good")), (0, ["broken"] * 3, ["done"] * 3), f"{said}{err}")
    equal([task for method, _, task in cluster.asked if method == "POST"][:3], ["bad", "good", "good"], "what was asked for first")
    check("no, 422" in jobs(world, "bad")[0]["reason"], f"{jobs(world, 'bad')}")


def alone_refused_for_good(world):
    """Where nothing else is to be done all of them are asked for all the same."""
    sets(world, 3)
    cluster = Cluster(world)
    cluster.codes["POST"] = 422
    image(world)
    code, said, err = world.finish(cluster.engine(world, "--cpu", "2"))
    equal((code, states(world), cluster.count("POST", "task")), (0, ["broken"] * 3, 3), f"{said}{err}")


def interrupted_in_silence(world):
    """Nobody waits for one answer after another where there are none: neither who asks for Jobs the first time, nor who does so again."""
    sets(world, 4)
    for again in (False, True):
        cluster = Cluster(world)
        cluster.codes["POST"] = 503
        image(world, task=f"again{again}")
        if not again:
            cluster.speaks.clear()
        engine = cluster.engine(world, "--cpu", "4")
        if again:
            cluster.looks(8, "POST", f"again{again}")
            cluster.speaks.clear()
        rig.wait_for(lambda: cluster.unanswered, "a request without an answer")
        engine.send_signal(signal.SIGINT)
        code, _, said = world.finish(engine)
        cluster.speaks.set()
        equal(code, 130, f"the engine's end: {said}")
        # a second one would have been waited for as long again
        equal(len(cluster.unanswered), 1, f"requests without an answer: {cluster.unanswered}")
        ok(world.tutti("task", "kill", "-t", name(f"again{again}")), "kill")


def killed_unheard(world):
    """The order to delete a Job is lost: it is given again."""
    sets(world, 2)
    cluster = Cluster(world)
    image(world)
    engine = cluster.engine(world, "--cpu", "2", "--stay")
    rig.wait_for(lambda: len(cluster.jobs) == 2, "two Jobs")
    cluster.codes["DELETE"] = 500
    ok(world.tutti("task", "kill", "-t", name("task")), "kill")
    rig.wait_for(lambda: cluster.count("DELETE") >= 6, "orders to delete, and again")
    cluster.codes["DELETE"] = GOOD
    rig.wait_for(lambda: tasks(world)["task"]["status"] == "killed", lambda: f"the end of the task: {states(world)}")
    equal((cluster.jobs, states(world)), ({}, ["killed"] * 2), "what is left")
    said = stop(world, engine)
    equal(len(re.findall("DELETE.*no, 500; trying on", said)), 1, f"what is said: {said}")


def killed_unbegun(world):
    """What was not begun when it is killed is not begun then; nor does it count as gone before the API server has said so."""
    sets(world, 2)
    cluster = Cluster(world)
    cluster.codes["POST"] = cluster.codes["GET"] = 503
    image(world)
    engine = cluster.engine(world, "--cpu", "2", "--stay")
    cluster.looks(2, "POST", "task")
    ok(world.tutti("task", "kill", "-t", name("task")), "kill")
    rig.wait_for(lambda: cluster.count("DELETE") >= 2, "orders to delete")
    posts = cluster.count("POST", "task")
    cluster.looks(2)
    equal((cluster.count("POST", "task"), states(world)), (posts, ["kill"] * 2), "while nobody answers")
    cluster.codes["POST"] = cluster.codes["GET"] = GOOD
    rig.wait_for(lambda: tasks(world)["task"]["status"] == "killed", lambda: f"the end of the task: {states(world)}")
    equal((cluster.jobs, states(world), cluster.count("POST", "task")), ({}, ["killed"] * 2, posts), "what came of it")
    stop(world, engine)


def killed_begun_unheard(world):
    """A Job that the API server has made, and said that it had not; nor was it deleted. It is when it is seen."""
    sets(world, 2)
    cluster = Cluster(world)
    cluster.codes, cluster.late = {"GET": 503, "POST": 503, "DELETE": 503}, True
    image(world)
    engine = cluster.engine(world, "--cpu", "2", "--stay")
    rig.wait_for(lambda: len(cluster.jobs) == 2, "two Jobs")
    ok(world.tutti("task", "kill", "-t", name("task")), "kill")
    rig.wait_for(lambda: cluster.count("DELETE") >= 2, "orders to delete")
    cluster.codes = {"GET": GOOD, "POST": GOOD, "DELETE": GOOD}
    rig.wait_for(lambda: tasks(world)["task"]["status"] == "killed", lambda: f"the end of the task: {states(world)}")
    equal((cluster.jobs, states(world)), ({}, ["killed"] * 2), "what is left")
    stop(world, engine)


if __name__ == "__main__":
    rig.main(refused_for_now, refused_after_silence, refused_for_good, alone_refused_for_good, interrupted_in_silence, killed_unheard, killed_unbegun, killed_begun_unheard)
