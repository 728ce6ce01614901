#!/usr/bin/env python3
"""Seeded chaos: kill -9, SIGSTOP for a while (shorter and longer than a lease) and scaling, of any role at any moment.
Whatever happens, a run ends well, with the counters of an undisturbed one, and at lag 0 and 1 with its bits.

CHAOS_SEED=n repeats a sequence (which process is hit at which moment still depends on the machine), CHAOS_RUNS=n makes
that many runs of each lag, CHAOS_STEPS=n makes them longer, CHAOS_RNN=gru has them of a policy that remembers; names on the command
line choose tests."""

import os
import random
import re
import signal
import sys
import threading
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "e2e"))
from disturbed import check_like, tests_of_lags  # noqa: E402
from rig import ENDLESS, Failed, check, equal, main, steps, wait_for  # noqa: E402

SEED = int(os.environ.get("CHAOS_SEED") or time.time_ns() % 1_000_000)
RUNS = int(os.environ.get("CHAOS_RUNS") or 1)
LEASE_MS = int(os.environ.get("CHAOS_LEASE_MS") or 2000)
STEPS = int(os.environ.get("CHAOS_STEPS") or steps(300_000))
ACTIONS = int(os.environ.get("CHAOS_ACTIONS") or 8)
MEMORY = [f"network.rnn={os.environ.get('CHAOS_RNN') or 'none'}", "network.rnn_size=16"]
HITS = 3  # a replica is hit at most so often: one that dies six times in a row ends the job, as it should
REPLICA = re.compile(r"tutti (coordinator|aggregator|learner|collector) .*?(?:--index (\d+))?$")


class Disturber:
    """One run's disturbances; what was done is kept for the message."""

    def __init__(self, world, run_dir, process, rng):
        self.world, self.run_dir, self.process, self.rng = world, run_dir, process, rng
        self.hits, self.said, self.stopped, self.timers = {}, [], set(), []

    def say(self, text):
        self.said.append(text)

    def victim(self):
        """A random living replica that was not hit too often: (pid, name)."""
        found = []
        for pid, line in self.world.processes().items():
            match = REPLICA.search(line)
            if match and pid not in self.stopped:
                name = f"{match[1]}/{match[2] or 0}"
                if self.hits.get(name, 0) < HITS:
                    found.append((name, pid))
        if not found:
            return None
        # roles first: there are more collectors than coordinators, but each role has its own ways to fail
        role = self.rng.choice(sorted({name.split("/")[0] for name, _ in found}))
        name, pid = self.rng.choice(sorted(pair for pair in found if pair[0].startswith(role)))
        self.hits[name] = self.hits.get(name, 0) + 1
        return pid, name

    def signal(self, pid, number):
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            pass

    def kill(self):
        victim = self.victim()
        if victim:
            self.say(f"kill {victim[1]}")
            self.signal(victim[0], signal.SIGKILL)

    def pause(self, seconds):
        victim = self.victim()
        if not victim:
            return
        pid, name = victim
        self.say(f"stop {name} for {seconds:.2f} s")
        self.stopped.add(pid)
        self.signal(pid, signal.SIGSTOP)
        timer = threading.Timer(seconds, self.go_on, [pid])
        self.timers.append(timer)
        timer.start()

    def go_on(self, pid):
        self.signal(pid, signal.SIGCONT)
        self.stopped.discard(pid)

    def scale(self):
        role, most = self.rng.choice((("collector", 4), ("learner", 3)))
        count = self.rng.randint(1, most)
        self.say(f"scale {role}={count}")
        self.world.tutti("scale", self.run_dir, f"{role}={count}")  # refused while the coordinator is away

    def act(self):
        kind = self.rng.choices(("kill", "two", "pause", "long pause", "scale"), (4, 2, 2, 1, 3))[0]
        if kind == "kill":
            self.kill()
        elif kind == "two":  # within the same few milliseconds, as when a host goes
            self.kill()
            self.kill()
        elif kind == "pause":
            self.pause(self.rng.uniform(0.01, 0.5))
        elif kind == "long pause":
            self.pause(self.rng.uniform(1.1, 1.5) * LEASE_MS / 1000)
        else:
            self.scale()

    def run(self):
        """All actions, with random time between them (that is what is tested), until the run is over."""
        for _ in range(ACTIONS):
            pause = self.rng.choice((0, 0.01, 0.05, 0.2, 0.5)) * self.rng.random()
            time.sleep(pause)
            if self.process.poll() is not None:
                self.say("(over)")
                break
            self.act()

    def close(self):
        for timer in self.timers:
            timer.join()


def s_sets(lag, *more):
    return [f"lag={lag}", f"stop.env_steps={STEPS}", "net.beat_ms=100", f"net.lease_ms={LEASE_MS}",
            "checkpoint.every_s=0.3", *MEMORY, *more]


def s_chaos(world, seed, lag, still):
    rng = random.Random(f"{seed}/{lag}")
    collectors, learners = rng.randint(1, 4), rng.randint(1, 3)
    process, run_dir = world.start_run(
        world.config(), *s_sets(lag, f"collector.replicas={collectors}", f"learner.replicas={learners}"), seed=7,
        name=f"run-{seed}-{lag}")
    disturber = Disturber(world, run_dir, process, rng)
    story = f"CHAOS_SEED={seed} lag {lag}, {collectors} collectors, {learners} learners: "
    begun = time.monotonic()
    try:
        try:
            if rng.random() < 0.7:  # else it begins while the run does
                world.await_steps(run_dir, 1)
            disturber.run()
        finally:
            disturber.close()
        summary = world.summary(process)
        check_like(summary, still, lag)
        world.await_empty()
    except Failed as error:
        raise Failed(f"{story}{', '.join(disturber.said)}: {error}") from error
    print(f"        {story}{', '.join(disturber.said)}; rolled back {summary['rolled_back']}, "
          f"{time.monotonic() - begun:.1f} s", flush=True)


def s_holders(world, run_dir):
    """Processes of the learners that hold the weights."""
    return [member["pid"] for member in (world.status(run_dir) or {}).get("members", []) if member.get("holds")]


def s_only_learner(world, lag):
    """Nobody else holds the weights: back to the newest snapshot, and the same bits again."""
    config = world.config()
    sets = s_sets(lag, "collector.replicas=2", "checkpoint.every_s=0.05", ENDLESS)
    process, run_dir = world.start_run(config, *sets, seed=7)
    world.await_snapshot(run_dir, process)
    for _ in range(2):
        pid = world.replica("learner", 0)
        os.kill(pid, signal.SIGKILL)
        wait_for(lambda: s_holders(world, run_dir) not in ([], [pid]), "another learner with weights")
        status = world.await_steps(run_dir, 1, process)
        world.await_steps(run_dir, status["env_steps"] + steps(20_000), process)
    summary = world.stop(process, run_dir)
    world.check_same(summary, config, *sets, seed=7, what=f"after rolling back, lag {lag}")
    check(summary["rolled_back"] >= 1, f"rolled_back: {summary['rolled_back']}")
    equal(summary["transitions"]["duplicated"], 0, "duplicated")


def test_only_learner_lag_0(world):
    s_only_learner(world, 0)


def test_only_learner_lag_1(world):
    s_only_learner(world, 1)


print(f"CHAOS_SEED={SEED}", flush=True)
main(*tests_of_lags(s_chaos, s_sets, SEED, RUNS), test_only_learner_lag_0, test_only_learner_lag_1)
