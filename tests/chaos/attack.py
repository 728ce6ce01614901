#!/usr/bin/env python3
"""Seeded malformed input to the processes of a run: whatever comes to their sockets, over ipc and tcp, with the key and
without it, from strangers and from members, the run goes on, ends well when it is told to, and no process dies of it, with the counters
and the bits of one left alone.

ATTACK_SEED=n repeats a sequence (when it hits depends on the machine), ATTACK_RUNS=n makes that many runs of each lag,
ATTACK_STEPS=n makes them longer; names on the command line choose tests."""

import json
import os
import random
import re
import resource
import struct
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "e2e"))
import peers  # noqa: E402
from disturbed import at_lags  # noqa: E402
from rig import BATCH, ENDLESS, Failed, check, equal, main, steps, wait_for  # noqa: E402

SEED = int(os.environ.get("ATTACK_SEED") or time.time_ns() % 1_000_000)
RUNS = int(os.environ.get("ATTACK_RUNS") or 1)
# So many attempts at least, and until so many steps have been trained meanwhile.
HITS, STEPS = 3000, int(os.environ.get("ATTACK_STEPS") or max(steps(60_000), 30_000))
SOCKETS, OPEN = 600, 60  # of a run; in use at a time
COLLECTOR, AGGREGATOR, CONTROLLER, CLIENT = 2, 4, 5, 6
# What is said most. Nothing here ends a run by right: EVENT failed of a member, REQUEST stop of a client.
COMMON = ("SEGMENT", "FETCH", "GRAD", "ATTACH", "HEARTBEAT", "REQUEST", "STORE", "LOAD", "STATS", "EVENT", "REPLICA")
EDGES = (0, 1, 2, 2**15, 2**16, 2**31 - 1, 2**31, 2**32 - 1, 2**32, 2**53, 2**63 - 1, 2**63, 2**64 - 1, -1, -2**31, -2**63)
FLOATS = (0.0, -0.0, 1.5, float("nan"), float("inf"), -float("inf"), 1e308, 5e-324)
ODD = (None, True, -7, 1.5, "x", b"\0\xff", [], {}, [[[[[[[[[[[]]]]]]]]]]])
WORDS = ("", "a", "%s%n%s", "../../x", "\n", "é" * 40, "\udcff\udcfe", "warning", "solved", "first_step", "snapshot",
         "status", "watch", "scale", "{", '{"collector":1e99}', "[" * 300, "ipc:///nowhere", "tcp://127.0.0.1:1", "tcp://[::1]:0")
DIED = re.compile(r".*(?:killed by SIG(?!KILL|TERM)|exit code (?:1|70)\b).*")


def whole(T, E, D):
    """Bytes of a segment without finals (common/wire/segment.h), of an environment with one vector and one choice: the columns,
    ages, what is kept after the last step. Each array begins on a cache line."""
    total = 0
    for size in (4 * T * E * D, 4 * T * E, 4 * T * E, T * E, T * E, 4 * T * E, 4 * T * E, 4 * E, 4 * E * D, 4 * E):
        total = (total + 63) // 64 * 64 + size
    return (total + 63) // 64 * 64


WHOLE = whole(32, 8, 4)  # of all envs of rig.JOB, without their states
SIZES, LARGE = (0, 4, 64, 1024, 8192, WHOLE), (1, 3, 1000, 65536, 1 << 20, 9 << 20)
NAMES = (b"#0001020304", b"#", b" ", b"a b", b"%s%n", b"x" * 255, b"/" * 63, b"learner/0/", b"collector/0/0")


# As in rig.JOB: a message that is wrong in one thing only gets further than one that is wrong in all.
JOB_NUMBERS = {"steps": 32, "env_lo": 0, "env_count": 8, "finals": 0, "shards": 4, "chunk": 0, "chunks": 1, "node": 4,
               "wire": peers.WIRE}


class Attacker:
    """Speaks to all sockets of a run."""

    def __init__(self, world, run_dir, rng):
        self.world, self.run_dir, self.rng = world, run_dir, rng
        self.sent = self.opened = self.hits = 0
        job = json.loads(world.tutti("check", os.path.join(run_dir, "config.yaml"), "--output", "json").stdout)
        state = job["config"]["space.env_state"]["value"]
        self.true = {**JOB_NUMBERS, "columns": int(job["comes_to"]["columns_hash"], 16), "state_bytes": state}
        self.whole = WHOLE + JOB_NUMBERS["env_count"] * state
        self.context, self.sockets = peers.Context(), []
        folder = os.path.join(run_dir, "sock")
        self.ipc = {name: f"ipc://{os.path.realpath(os.path.join(folder, name))}" for name in os.listdir(folder)}
        self.numbers, self.members = {}, []
        wait_for(lambda: self.visit(COLLECTOR) or self.members, "a roster")
        listen = wait_for(lambda: (world.status(run_dir) or {}).get("listen"), "the endpoint that the run listens on")
        self.tcp = [listen, *(member["data_tcp"] for member in self.members if member.get("data_tcp"))]
        self.look()

    def look(self):
        """Numbers that are true just now."""
        status = self.world.status(self.run_dir) or {}
        self.numbers = {key: value for key, value in status.items() if isinstance(value, int)}
        update = self.numbers.get("updates", 0)
        self.numbers.update(self.true, batch=update, version=update, update=update, below=update, step=8 * update)

    def visit(self, role):
        """A member for a moment, that says what no member says."""
        instance = self.rng.getrandbits(64)
        name = f"{peers.ROLES[role]}/-1/{instance:016x}".encode()
        it = peers.Socket(self.context, self.ipc["control"], name, wait_ms=500)
        it.send(peers.message("HELLO", wire=peers.WIRE, role=role, index=-1, instance=instance, pid=1, host="elsewhere"))
        while frames := it.receive():
            said = peers.unpack(frames[0])
            if said["m"] == peers.MESSAGES["WELCOME"][0] and role in (CONTROLLER, CLIENT):
                break
            if said["m"] == peers.MESSAGES["ROSTER"][0]:
                self.members = said["members"]
                break
        for _ in range(self.rng.randrange(20)):
            self.sent += it.send(self.header(self.rng.choice(("HEARTBEAT", "EVENT", "STATS", "REQUEST", "WELCOME", "ROSTER"))))
        it.send(peers.message("DRAINED", reason="seen enough"))

    def press(self):
        """Experience for the batches that a learner waits for just now, wrong in one thing: its CREDIT says which they are."""
        name = self.rng.choice([name for name in self.ipc if name.startswith("learner") and name.endswith("data")])
        it = peers.Socket(self.context, self.ipc[name], self.identity(), wait_ms=200)
        true = {key: self.numbers.get(key, 1) for key in ("era", "epoch")}
        it.send(peers.message("ATTACH", role=COLLECTOR, index=0, instance=self.rng.choice(self.members)["instance"], **true))
        frames = it.receive()
        if not frames:
            return
        credit = peers.unpack(frames[0])
        base, upto = credit.get("base", 0), credit.get("upto", 0)
        for _ in range(20):
            self.numbers["batch"] = self.numbers["version"] = self.rng.randint(base, upto)
            header = peers.pack({"m": peers.MESSAGES["SEGMENT"][0], **self.nearly(peers.MESSAGES["SEGMENT"][1])})
            self.sent += it.send(header, b"\xff" * self.rng.choice((self.whole, self.whole, *SIZES)))

    def number(self, name, limit):
        rng, kind = self.rng, self.rng.random()
        if kind < 0.4 and name in self.numbers:
            return max(0, self.numbers[name] + rng.choice((-1, 0, 0, 0, 1, 2)))
        if kind < 0.5 and name == "instance" and self.members:
            return rng.choice(self.members)["instance"]
        if kind < 0.7 and limit:
            return rng.choice((limit - 1, limit, limit + 1, limit // 2))
        if kind < 0.9:
            return rng.choice(EDGES)
        return rng.getrandbits(rng.choice((3, 8, 16, 32, 64)))

    def value(self, name, kind, limit, deep=False):
        rng = self.rng
        if rng.random() < 0.02:
            return rng.choice(ODD)
        if kind in ("u32", "u64", "i64"):
            return self.number(name, limit)
        if kind == "f64":
            return rng.choice(FLOATS)
        if kind == "flag":
            return rng.random() < 0.5
        if kind == "str":
            return "x" * rng.choice((limit, limit + 1)) if limit and rng.random() < 0.1 else rng.choice(WORDS)
        count = rng.choice((limit, limit + 1)) if not deep and rng.random() < 0.05 else rng.randrange(3)
        return [self.fields(peers.RECORDS[kind], True) for _ in range(count)]

    def fields(self, table, deep=False):
        return {name: self.value(name, kind, limit, deep) for name, kind, limit in table if self.rng.random() < 0.8}

    def nearly(self, table):
        """All as it should be, as far as we know it, but for at most one field."""
        out = {name: self.numbers[name] for name, _, _ in table if name in self.numbers}
        if "version" in out and "batch" in out:
            out["version"] = max(0, out["batch"] - self.rng.randrange(2))
        name, kind, limit = self.rng.choice(table)
        if self.rng.random() < 0.7:
            out[name] = self.value(name, kind, limit)
        return out

    def header(self, name):
        number, table = peers.MESSAGES[name]
        out = {"m": number, **(self.nearly(table) if self.rng.random() < 0.5 else self.fields(table))}
        if self.rng.random() < 0.1:
            out["unknown"] = self.rng.choice(({}, [1, {"a": []}], "x", 2**64 - 1))
        return peers.pack(out)

    def damaged(self, data):
        """As bytes might come from a broken peer."""
        rng, data, kind = self.rng, bytearray(data), self.rng.randrange(5)
        if kind == 0:
            return bytes(data[:rng.randrange(len(data) + 1)])
        if kind == 1:
            return bytes(data) + rng.randbytes(rng.choice((1, 7, 1000)))
        if kind == 2:
            return rng.randbytes(rng.choice((0, 1, 5, 100, 5000)))
        if kind == 3:
            return bytes(data[:1] + data[1:] * 2)
        for _ in range(rng.choice((1, 1, 3, 20))):
            data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
        return bytes(data)

    def body(self, name):
        """Of a SEGMENT none that could be one: whose it is does not count, and what is sound would be trained."""
        size = self.rng.choice(LARGE if self.rng.random() < 0.1 else SIZES)
        fill = b"\xff" if name == "SEGMENT" else self.rng.choice((b"\0", b"\xff", struct.pack("<f", 1.0), self.rng.randbytes(64)))
        return (fill * (size // len(fill) + 1))[:size]

    def frames(self):
        rng = self.rng
        name = rng.choice(COMMON if rng.random() < 0.7 else [name for name in peers.MESSAGES if name != "HELLO"])
        header = self.header(name)
        header = self.damaged(header) if rng.random() < 0.3 else header
        return [header, *(self.body(name) for _ in range(rng.choice((0, 0, 1, 1, 1, 2, 3, 40))))]

    def identity(self):
        """Who we say that we are; never a living member itself."""
        rng, kind = self.rng, self.rng.randrange(8)
        if kind < 3:
            return None
        if kind == 3:
            return rng.randbytes(rng.choice((1, 5, 63, 64, 255))).replace(b"\0", b"\1")
        if kind == 4:
            return rng.choice(NAMES)
        instance = rng.choice(self.members)["instance"] if rng.random() < 0.5 else rng.getrandbits(64)
        return f"{rng.choice(tuple(peers.ROLES.values()))}/{rng.choice((0, 1, 7, -1, 10000))}/{instance:016x}x".encode()

    def socket(self):
        rng = self.rng
        if self.sockets and (rng.random() < 0.97 or self.opened == SOCKETS):
            return rng.choice(self.sockets)
        endpoint, key = self.ipc[rng.choice(sorted(self.ipc))], None
        if rng.random() < 0.3:
            endpoint = rng.choice(self.tcp)
            key = peers.keys(os.path.join(self.run_dir, "key")) if rng.random() < 0.8 else None
        self.opened += 1
        self.sockets = [*self.sockets[1 - OPEN:], peers.Socket(self.context, endpoint, self.identity(), key)]
        return self.sockets[-1]

    def say(self):
        """One message; who was cut off, or is not heard, makes room for another."""
        it = self.socket()
        sent = it.send(*self.frames())
        self.sent += sent
        if not sent and self.opened < SOCKETS:
            self.sockets.remove(it)

    def hit(self):
        self.hits += 1
        kind = self.rng.random()
        if kind < 0.001:
            self.look()
        elif kind < 0.01:
            self.press()
        elif kind < 0.012:
            self.visit(self.rng.choice((COLLECTOR, AGGREGATOR, CONTROLLER, CLIENT)))
        else:
            self.say()

    def hit_often(self):
        for _ in range(100):
            self.hit()
        self.look()


def s_check(world, config, summary, lag):
    equal(summary["status"], "stopped", "status")
    if lag <= 1:
        world.check_same(summary, config, f"lag={lag}", seed=7, what="under attack")
    check(summary["lag_max"] <= lag, f"lag_max {summary['lag_max']}")
    numbers = [summary["transitions"][key] for key in ("trained", "duplicated", "lost")]
    equal(numbers, [summary["updates"] * BATCH, 0, 0], "trained, duplicated, lost")


def s_attack(world, seed, lag):
    config = world.config()
    sets = [f"lag={lag}", "collector.replicas=2", "learner.replicas=2", "coordinator.listen=tcp://127.0.0.1:0"]
    process, run_dir = world.start_run(config, *sets, ENDLESS, seed=7, name=f"attacked-{seed}-{lag}")
    begun = time.monotonic()
    try:
        end = world.await_steps(run_dir, 1, process)["env_steps"] + STEPS
        attacker = Attacker(world, run_dir, random.Random(f"{seed}/{lag}"))
        while process.poll() is None and (attacker.hits < HITS or attacker.numbers.get("env_steps", 0) < end):
            attacker.hit_often()
        stop = world.start("stop", run_dir)
        while process.poll() is None:
            attacker.hit_often()
        summary = world.summary(process, code=143)
        equal(world.finish(stop)[0], 0, "tutti stop")
        s_check(world, config, summary, lag)
        died = DIED.findall(world.finish(process)[2])
        check(not died, f"a process died: {died}")
        world.await_empty()
    except Failed as error:
        raise Failed(f"ATTACK_SEED={seed} lag {lag}: {error}") from error
    print(f"        ATTACK_SEED={seed} lag {lag}: {attacker.sent} messages, {time.monotonic() - begun:.1f} s", flush=True)


def s_attacks(world, lag):
    for run in range(RUNS):
        s_attack(world, SEED + run, lag)


resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
print(f"ATTACK_SEED={SEED}", flush=True)
main(*at_lags(s_attacks))
