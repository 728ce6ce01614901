#!/usr/bin/env python3
"""The API client (k8s/api) on a real API server, over HTTP/2: one connection for all, its ways of saying who it is, and
what becomes of it when the server stands still, or goes and comes back."""

import json
import os
import queue
import signal
import subprocess
import sys
import threading
import time

sys.dont_write_bytecode = True
import cluster
from cluster import check, wait_for

cluster.require()
TRY = os.path.join(os.environ["TT_BUILD_DIR"], "tests/k8s/api/kube_try")


def s_try(k8s, *args, kubeconfig=None):
    done = k8s.run_in([TRY, *map(str, args)], check=False, env={"KUBECONFIG": kubeconfig or k8s.kubeconfig})
    return done.returncode, done.stdout, done.stderr


def s_good(k8s, *args, **more):
    code, out, err = s_try(k8s, *args, **more)
    check(code == 0, f"kube_try {args}: {code}: {err}")
    return json.loads(out)


def test_one_connection_for_all(k8s):
    got = s_good(k8s, "create", 300, 32)
    print(got)
    check(got["good"] == got["seen"] == 300, got)
    check(got["connections"] == 1, f"32 requests and a watch at a time take {got['connections']} connections")


def test_watches_share_it_and_more_than_it_holds_get_others(k8s):
    check(s_good(k8s, "watch", 60)["connections"] == 1, "60 watches")
    check(s_good(k8s, "watch", 130)["seen"] >= 130, "130 watches, the server takes 100 over a connection")


def test_long_answers_do_not_hold_up_short_ones(k8s):
    check(s_good(k8s, "big", 20)["good"] == 42, "20 long and 20 short answers at a time")


def test_a_token_a_plug_in_and_nobody(k8s):
    k8s.api("POST", "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", {
        "metadata": {"name": "client"}, "subjects": [{"kind": "ServiceAccount", "name": "client", "namespace": "default"}],
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"}})
    path = k8s.account_kubeconfig("client", "default")
    may = lambda: k8s.kubectl("auth", "can-i", "*", "*", "--kubeconfig", path, check=False).returncode == 0
    wait_for(may, "the API server to know of its rights")
    check(s_good(k8s, "create", 5, kubeconfig=path)["good"] == 5, "with a token")
    show = json.loads(k8s.kubectl("config", "view", "--raw", "-o", "json", "--kubeconfig", path).stdout)
    user = show["users"][0]["user"]
    token = user.pop("token")
    user["exec"] = {"apiVersion": "client.authentication.k8s.io/v1", "command": "sh", "interactiveMode": "Never", "args": [
        "-c", 'echo "{\\"apiVersion\\":\\"client.authentication.k8s.io/v1\\",\\"kind\\":\\"ExecCredential\\",'
              '\\"status\\":{\\"token\\":\\"$TOKEN\\"}}"'], "env": [{"name": "TOKEN", "value": token}]}
    plugin = path + ".exec"
    with open(plugin, "w", encoding="utf-8") as file:
        json.dump(show, file)
    check(s_good(k8s, "create", 5, kubeconfig=plugin)["good"] == 5, "with a plug-in")
    # A plug-in's first answer is refused, its second is good: an API server ends the connection after a 401.
    user["exec"]["args"][1] = f'test -e {plugin}.ran || TOKEN=old; : > {plugin}.ran; ' + user["exec"]["args"][1]
    with open(plugin, "w", encoding="utf-8") as file:
        json.dump(show, file)
    for _ in range(10):
        check(s_good(k8s, "create", 20, kubeconfig=plugin)["good"] == 20, "with a plug-in whose first token was old")
        os.unlink(plugin + ".ran")
    user["exec"]["env"][0]["value"] = "nonsense"
    with open(plugin, "w", encoding="utf-8") as file:
        json.dump(show, file)
    code, _, err = s_try(k8s, "create", 1, kubeconfig=plugin)
    check(code != 0 and "401" in err, f"with a wrong token: {code} {err}")


class Pinger:
    """kube_try ping, and what it says, with times."""

    def __init__(self, k8s):
        self.child = k8s.exec_in([TRY, "ping", "50"], env={"KUBECONFIG": k8s.kubeconfig}, stdin=subprocess.PIPE,
                                 stdout=subprocess.PIPE, text=True)
        self.said = queue.Queue()
        threading.Thread(target=self.read, daemon=True).start()

    def read(self):
        for line in self.child.stdout:
            self.said.put((time.monotonic(), line.strip()))

    def await_line(self, good, timeout=cluster.DEADLINE):
        """The next line that is good (or is not); its time."""
        until = time.monotonic() + timeout
        while True:
            when, line = self.said.get(timeout=max(0.1, until - time.monotonic()))
            if (line == "ok") == good:
                return when, line

    def drain(self):
        while not self.said.empty():
            self.said.get()

    def end(self):
        self.child.stdin.close()
        check(self.child.wait(timeout=60) == 0, "kube_try ping ends well")


def test_a_server_that_stands_still(k8s):
    pinger = Pinger(k8s)
    pinger.await_line(True)
    k8s.signal_part("kube-apiserver", signal.SIGSTOP)
    try:
        _, line = pinger.await_line(False)
        check("no answer within 2.5 s" in line or "ended" in line or "failed" in line.lower(), line)
    finally:
        k8s.signal_part("kube-apiserver", signal.SIGCONT)
    pinger.drain()
    pinger.await_line(True)
    pinger.end()


def test_a_server_that_goes_and_comes_back(k8s):
    pinger = Pinger(k8s)
    pinger.await_line(True)
    k8s.stop_part("kube-apiserver")
    pinger.drain()
    pinger.await_line(False)
    k8s.start_part("kube-apiserver")
    pinger.await_line(True)
    pinger.end()


cluster.main(test_one_connection_for_all, test_watches_share_it_and_more_than_it_holds_get_others,
             test_long_answers_do_not_hold_up_short_ones, test_a_token_a_plug_in_and_nobody,
             test_a_server_that_stands_still, test_a_server_that_goes_and_comes_back)
