#!/usr/bin/env python3
"""Reflector, store and lease (kube_watch) against a real API server that is restarted, stopped, frozen and compacted while
objects come and go: what the store holds ends as what kubectl shows; no stall; one holder of a lease.

TT_WATCH_SECONDS: how long objects change (20, and until each trouble was had once); ./dev soak has it longer. TT_WATCH_SEED: another course of events."""

import http.client
import json
import os
import random
import signal
import subprocess
import sys
import threading
import time

sys.dont_write_bytecode = True
import cluster
from cluster import check, wait_for

cluster.require()

DRIVER = os.path.join(os.environ["TT_BUILD_DIR"], "tests", "k8s", "api", "kube_watch")
SECONDS = float(os.environ.get("TT_WATCH_SECONDS", "20"))
SEED = int(os.environ.get("TT_WATCH_SEED", "1"))
MAPS = "/api/v1/namespaces/default/configmaps"
MORE_BYTES = 256 << 10  # may live at the end than after the first trouble: other objects, the buffers of a connection; a sanitizer counts none
SOON = 20.0  # seconds within which a change must be seen while nothing is broken
LATE = 120.0  # ... after something was: a back-off of at most 30 s and what the server itself needs


class Driver:
    def __init__(self, k8s, *args):
        self.process = k8s.exec_in([DRIVER, *args], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def look(self):
        self.process.stdin.write("look\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def end(self):
        """Its input is closed: it must end well (a sanitizer would say so in its exit code)."""
        self.process.stdin.close()
        check(self.process.wait(timeout=60) == 0, f"kube_watch ended with {self.process.returncode}")


def listed(k8s, labels=None):
    """{"namespace/name": "uid version"} as kubectl shows them."""
    args = ["-l", labels] if labels else []
    items = json.loads(k8s.kubectl("get", "configmaps", "-n", "default", "-o", "json", *args).stdout)["items"]
    return {f"{m['namespace']}/{m['name']}": f"{m['uid']} {m['resourceVersion']}" for m in (i["metadata"] for i in items)}


class Changes(threading.Thread):
    """Objects made, changed, relabelled and removed at random over one connection, until told to end."""

    def __init__(self, k8s):
        super().__init__(daemon=True)
        self.k8s, self.rng, self.over, self.count = k8s, random.Random(SEED), threading.Event(), 0
        self.connection, self.failed = None, None

    def ask(self, method, path, body=None):
        if not self.connection:
            self.connection = cluster.s_Connection(self.k8s.world["init"], 6443, self.k8s.context, 30)
        kind = "application/merge-patch+json" if method == "PATCH" else "application/json"
        try:
            self.connection.request(method, path, json.dumps(body) if body else None, {**self.k8s.who, "Content-Type": kind})
            answer = self.connection.getresponse()
            text = answer.read()
        except (OSError, http.client.HTTPException):
            self.connection.close()
            self.connection = None
            self.over.wait(0.1)  # it is down
            return
        self.count += answer.status < 300
        # 403 is what a server says that has begun and does not know the namespaces yet
        if answer.status >= 300 and answer.status not in (403, 404, 409, 429) and answer.status < 500:
            self.failed = f"{method} {path}: {answer.status} {text[:300]}"

    def run(self):
        while not self.over.is_set():
            name = f"map-{self.rng.randrange(80)}"
            labels = {"on": self.rng.choice(["yes", "no"])}
            thing = {"metadata": {"name": name, "labels": labels}, "data": {"value": str(self.rng.random())}}
            what = self.rng.random()
            if what < 0.35:
                self.ask("POST", MAPS, thing)
            elif what < 0.8:
                self.ask("PATCH", f"{MAPS}/{name}", thing)
            else:
                self.ask("DELETE", f"{MAPS}/{name}")
            self.over.wait(0.01)

    def end(self):
        self.over.set()
        self.join(timeout=60)
        check(not self.failed, self.failed)


def compact(k8s):
    """etcd forgets everything but the newest state."""
    version = int(k8s.get(MAPS)["metadata"]["resourceVersion"])
    code, text = k8s.http(2379, "/v3/kv/compaction", "POST", json.dumps({"revision": str(version), "physical": True}),
                          {"Content-Type": "application/json"}, host="127.0.0.1")
    check(code == 200, f"compaction: {code} {text}")


TROUBLES = ["compact", "freeze", "etcd", "kill"] + (["restart"] if SECONDS >= 120 else [])


def trouble(k8s, rng, what, drivers):
    """One thing goes wrong and is mended."""
    if what == "kill":
        k8s.restart_part("kube-apiserver", signal.SIGKILL)
    elif what == "restart":  # it waits for its watches for a minute, and takes no new connections meanwhile
        k8s.stop_part("kube-apiserver")
        k8s.start_part("kube-apiserver")
    elif what == "etcd":
        k8s.stop_part("etcd")
        time.sleep(rng.uniform(1, 4))  # so long it is down
        k8s.start_part("etcd")
    elif what == "freeze":
        k8s.signal_part("kube-apiserver", signal.SIGSTOP)
        time.sleep(rng.uniform(1, 6))
        k8s.signal_part("kube-apiserver", signal.SIGCONT)
    else:  # the drivers miss something that is forgotten when they come back
        for driver in drivers.values():
            driver.process.send_signal(signal.SIGSTOP)
        k8s.restart_part("kube-apiserver", signal.SIGKILL)
        for _ in range(3):
            wait_for(lambda: k8s.patch(f"{MAPS}/marker", {"data": {"at": str(time.monotonic())}}), "a write")
            compact(k8s)
        k8s.restart_part("kube-apiserver", signal.SIGKILL)
        for driver in drivers.values():
            driver.process.send_signal(signal.SIGCONT)
    k8s.await_api()


def sees(k8s, drivers, name, deadline, what):
    """A change made now is seen by all of them."""
    made = wait_for(lambda: k8s.patch(f"{MAPS}/{name}", {"data": {"at": str(time.monotonic())}}), "a write")
    version = int(made["metadata"]["resourceVersion"])
    begun = time.monotonic()
    for number, driver in drivers.items():
        wait_for(lambda driver=driver: int(driver.look()["objects"].get(f"default/{name}", "x 0").split()[1]) >= version,
                 f"{number} to see a change after {what}", deadline)
    return time.monotonic() - begun


def test_objects_at_random(k8s):
    k8s.api("POST", MAPS, {"metadata": {"name": "marker", "labels": {"on": "yes"}}})
    for number in range(40):
        k8s.api("POST", MAPS, {"metadata": {"name": f"first-{number}"}})
    drivers = {"all": Driver(k8s, "watch", MAPS, "7"), "some": Driver(k8s, "watch", MAPS, "500", "on=yes")}
    changes, rng = Changes(k8s), random.Random(SEED + 1)
    for driver in drivers.values():
        wait_for(lambda driver=driver: driver.look()["synced"], "the first list", LATE)
    changes.start()
    end, slowest, living, troubles = time.monotonic() + SECONDS, 0.0, None, []
    while time.monotonic() < end or len(troubles) < len(TROUBLES):
        slowest = max(slowest, sees(k8s, drivers, "marker", SOON, "nothing"))
        troubles.append(TROUBLES[len(troubles)] if len(troubles) < len(TROUBLES) else rng.choice(TROUBLES))
        trouble(k8s, rng, troubles[-1], drivers)
        sees(k8s, drivers, "marker", LATE, troubles[-1])
        living = living or [driver.look()["living"] for driver in drivers.values()]
        quiet = min(end, time.monotonic() + (2 if SECONDS < 120 else rng.uniform(2, 40)))
        while time.monotonic() < quiet:
            slowest = max(slowest, sees(k8s, drivers, "marker", SOON, "nothing"))
    changes.end()
    for number, labels in (("all", None), ("some", "on=yes")):
        wait_for(lambda: drivers[number].look()["objects"] == listed(k8s, labels), f"{number}: the same as kubectl", LATE)
    looks = {number: driver.look() for number, driver in drivers.items()}
    for (number, look), before in zip(looks.items(), living):
        print(f"  {number}: {len(look.pop('objects'))} objects, {look}; after the first trouble {before} bytes lived")
        check(look["twice"] == 0, "a change was told that was none")
        check(look["lists"] > troubles.count("compact"), "what was forgotten was not listed anew")
        check(look["living"] < before + MORE_BYTES, f"memory grew from {before} bytes to {look['living']}")
    print(f"  {changes.count} changes, slowest {slowest:.2f} s, troubles: {' '.join(troubles)}")
    for driver in drivers.values():
        driver.end()


def test_pages_that_are_forgotten(k8s):
    """A compaction in the middle of a list: 410 for the next page, and the list begins anew."""
    space = "/api/v1/namespaces/pages/configmaps"
    k8s.api("POST", "/api/v1/namespaces", {"metadata": {"name": "pages"}})
    for number in range(30):
        k8s.api("POST", space, {"metadata": {"name": f"map-{number}"}})
    driver = Driver(k8s, "watch", space, "1")
    for _ in range(3):
        k8s.patch(f"{space}/map-1", {"data": {"at": str(time.monotonic())}})
        compact(k8s)
    wait_for(lambda: driver.look()["synced"], "the list", LATE)
    look = driver.look()
    check(len(look["objects"]) == 30, f"{look}")
    driver.end()


def test_own_writes(k8s):
    """Answers and watch race; at the end the store has what is there, and nothing came back."""
    driver = Driver(k8s, "mine", MAPS, "300")
    time.sleep(0.5)  # in the middle of it
    k8s.restart_part("kube-apiserver", signal.SIGKILL)
    wait_for(lambda: driver.look()["todo"] == 0, "its writes", LATE)
    wait_for(lambda: driver.look()["objects"] == listed(k8s), "the same as kubectl", LATE)
    mine = [name for name in driver.look()["objects"] if "mine-" in name]
    check(len(mine) == 150, f"{len(mine)} are left")
    driver.end()


def lines(driver, count, deadline=cluster.DEADLINE):
    """So many lines of what a lease driver says: [("held", ms), ...]."""
    said = []
    reader = threading.Thread(target=lambda: said.extend(
        (line.split()[0], int(line.split()[1])) for line in (driver.process.stdout.readline() for _ in range(count)) if line),
        daemon=True)
    reader.start()
    reader.join(timeout=deadline)
    check(len(said) == count, f"waited {deadline} s for {count} lines of a lease, got {said}")
    return said


LEASE_S, RENEW_S = 6, 4  # for how long others respect a renewal, and for how long its holder believes in it


def test_lease(k8s):
    """By the times that stand in the lease: they tell what must be however slow the machine is."""
    path = "/apis/coordination.k8s.io/v1/namespaces/default/leases/operator"
    lease = lambda: k8s.get(path)["spec"]
    when = lambda spec, what: cluster.unix_time(spec[f"{what}Time"])
    args = ("lease", "default", "operator")
    first = Driver(k8s, *args, "first")
    check(lines(first, 1)[0][0] == "held", "the first takes it")
    drivers = {"first": first, "second": Driver(k8s, *args, "second")}
    time.sleep(2)  # the second has seen it; has it, if the first was held up for so long
    before = lease()
    holder = drivers.pop(before["holderIdentity"])
    holder.process.kill()
    holder.process.wait()
    ((name, heir),) = drivers.items()
    wait_for(lambda: lease()["holderIdentity"] == name, f"the {name} to take it")
    check(heir is not first or lines(heir, 1)[0][0] == "lost", "the first had lost it")
    check(lines(heir, 1)[0][0] == "held", f"the {name} takes it")
    waited = when(lease(), "acquire") - when(before, "renew")
    check(LEASE_S <= waited < LEASE_S + 20, f"taken {waited:.1f} s after a renewal")
    print(f"  taken {waited:.1f} s after a renewal of one that was killed", end="")
    third = Driver(k8s, *args, "third")
    time.sleep(1.5)
    ended = time.time()
    heir.end()
    wait_for(lambda: lease()["holderIdentity"] != name, "the lease to be freed, or taken")  # which a server that does not answer decides
    check(lines(third, 1)[0][0] == "held", "the third takes it")
    taken = lease()
    print(f", {when(taken, 'acquire') - ended:.1f} s after the end of one that freed it")
    check(taken["leaseTransitions"] == before.get("leaseTransitions", 0) + 2, "transitions")
    k8s.signal_part("kube-apiserver", signal.SIGSTOP)  # no renewal comes through
    lost = lines(third, 1)[0]
    k8s.signal_part("kube-apiserver", signal.SIGCONT)
    believed = lost[1] / 1000 + time.time() - time.monotonic() - when(taken, "renew")
    check(lost[0] == "lost" and believed >= RENEW_S - 0.1, f"{lost[0]} {believed:.1f} s after a renewal")
    check(lines(third, 1)[0][0] == "held", "and held again")
    third.end()


cluster.main(test_objects_at_random, test_pages_that_are_forgotten, test_own_writes, test_lease)
