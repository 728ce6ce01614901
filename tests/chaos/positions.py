#!/usr/bin/env python3
"""kill -9 at every (update, step): before a GRAD is sent, when it has arrived, while its SUM is on the way, when that has come,
and between the last step and WEIGHTS, CREDIT and ACK; of each learner, of the aggregator, of each collector, while somebody joins,
and while sockets are full. Each is a run of its own, and ends with the bits and the counters of one left alone.

The moments are exact: kill_at.c, preloaded, acts at the very message. A run whose rules did not all act has tested nothing, and fails.

POSITIONS_SEED=n draws the positions of the short form, POSITIONS_RUNS=n makes it n times as long, POSITIONS_ALL=1 takes them all;
names on the command line choose tests."""

import os
import random
import shutil
import subprocess
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "e2e"))
import peers  # noqa: E402
from disturbed import check_like, silent  # noqa: E402
from rig import DEADLINE, Failed, check, equal, main  # noqa: E402

SEED = int(os.environ.get("POSITIONS_SEED") or time.time_ns() % 1_000_000)
RUNS = int(os.environ.get("POSITIONS_RUNS") or 1)
ALL = bool(os.environ.get("POSITIONS_ALL"))

PPO = """\
name: ppo
env: CartPole-v1
num_envs: 4
num_steps: 16
network: {hidden: [16]}
algorithm: {name: ppo, epochs: 2, minibatch_size: 32}
learner: {shards: 8}
stop: {env_steps: 320}
"""
# No step is owed before `learning_starts`, then two in some updates and none in others. Its frames are in a device's memory, too.
DQN = """\
name: dqn
env: CartPole-v1
num_envs: 4
num_steps: 16
network: {hidden: [16]}
algorithm: {name: dqn, batch_size: 16, learning_starts: 192, train_every: 96, gradient_steps: 2, target_every: 64, epsilon_steps: 512}
replay: {capacity: 400, prioritized: true, beta_steps: 512, memory: both}
learner: {shards: 4}
stop: {env_steps: 576}
"""


# A step draws sequences over two batches, and what policies carried into these goes where they go.
SEQUENCES = DQN.replace("name: dqn\nenv", "name: dqn-lstm\nenv").replace("hidden: [16]", "hidden: [8], rnn: lstm, rnn_size: 8").replace(
    "batch_size: 16", "batch_size: 8, sequence_length: 12, burn_in: 8")

# A gradient step is two steps by turns.
SAC = """\
name: sac
env: Pendulum-v1
num_envs: 4
num_steps: 16
network: {hidden: [16]}
algorithm: {name: sac, batch_size: 16, learning_starts: 192, train_every: 96}
replay: {capacity: 400}
learner: {shards: 4}
stop: {env_steps: 576}
"""


# Two steps of the critics and one of the actor for twice train_every.
TD3 = SAC.replace("name: sac", "name: td3").replace("train_every: 96", "train_every: 48")


def s_replay_steps(updates, times=2):
    """Steps of each update of DQN, SAC and TD3; where none is owed there is an empty one."""
    owed = [max(0, 64 * n - 192) // 96 * times for n in range(updates + 1)]
    return [max(1, after - before) for before, after in zip(owed, owed[1:])]

# Frames of 7 KB, two batches a piece: who joins has several pieces to fetch before it may take part.
PLUGINS = os.path.join(os.environ["TT_BUILD_DIR"], "tests", "collector", "plugins")
WARM = f"""\
name: warm
env: {PLUGINS}/catch_frames.so
num_envs: 8
num_steps: 32
network: {{encoder: none, hidden: [16]}}
algorithm: {{name: dqn, batch_size: 16, learning_starts: 1024, train_every: 128, gradient_steps: 1, target_every: 640, epsilon_steps: 4000, n_step: 3}}
replay: {{capacity: 8192, prioritized: true, beta_steps: 6000}}
learner: {{shards: 4}}
stop: {{env_steps: 5120}}
"""
WARM_UPDATES, WARM_FROM, WARM_HELD = 19, 11, 14  # somebody dies in update 11 or 12, and batch 14 waits for it to be as far as the rules want


def s_warm_steps():
    owed = [max(0, 256 * n - 1024) // 128 for n in range(WARM_UPDATES + 1)]
    return [max(1, after - before) for before, after in zip(owed, owed[1:])]

# For full sockets. A gradient of two chunks of a MiB and a bit; segments larger than what the kernel takes for somebody who does not read.
SLOW = "net: {lease_ms: 2000, beat_ms: 100}\n"
WIDE = SLOW + """\
name: wide
env: CartPole-v1
num_envs: 4
num_steps: 16
network: {hidden: [768, 384]}
algorithm: {name: ppo, epochs: 2, minibatch_size: 64}
learner: {shards: 4}
stop: {env_steps: 256}
"""
CHUNKS = 3
LONG = SLOW + """\
env: CartPole-v1
num_envs: 16
num_steps: 128
network: {hidden: [16]}
learner: {shards: 4}
stop: {env_steps: 8192}
"""
LONG_PPO = LONG + """\
name: long-ppo
algorithm: {name: ppo, epochs: 1, minibatch_size: 2048}
"""
LONG_DQN = LONG + """\
name: long-dqn
algorithm: {name: dqn, batch_size: 16, learning_starts: 6144, train_every: 2048}
replay: {capacity: 8192}
"""


class Job:
    """A small job and its positions: (update, step within it, step of the run)."""

    def __init__(self, text, lag, learners, shards, steps, held=False):
        """steps: of each update; one of nothing counts. held: partial sums lie in memory that learners share, and are not sent."""
        self.text, self.lag, self.learners, self.shards = text, lag, learners, shards
        self.name = f"{text.split('name: ')[1].split()[0]} lag {lag}, {learners} learners"
        self.warms = "replay:" in text
        self.sets = [f"lag={lag}", f"learner.replicas={learners}", "collector.replicas=2",
                     f"net.shared_memory={'true' if held else 'false'}"]
        self.updates = len(steps)
        self.positions = [(update, step, sum(steps[:update]) + step) for update, count in enumerate(steps) for step in range(count)]

    def nodes_of(self, rank):
        """A learner's run of shards is cut into aligned subtrees (common/nn/tree.h)."""
        count = 0
        lo, hi = (self.shards * r // self.learners for r in (rank, rank + 1))
        while lo < hi:
            size = lo & -lo if lo else self.shards
            while size > hi - lo:
                size //= 2
            lo, count = lo + size, count + 1
        return count

    def nodes(self):
        """GRADs of one step."""
        return sum(map(self.nodes_of, range(self.learners)))


def s_jobs(held):
    kinds = ((PPO, 3, 8, [4] * 4, (0, 1)), (DQN, 2, 4, s_replay_steps(8), (0, 1)), (SEQUENCES, 2, 4, s_replay_steps(8), (1,)),
             (SAC, 2, 4, s_replay_steps(8), (1,)), (TD3, 2, 4, s_replay_steps(8, 3), (0,)))
    return [Job(text, lag, learners, shards, steps, held) for text, learners, shards, steps, lags in kinds for lag in lags]


JOBS, HELD_JOBS = s_jobs(False), s_jobs(True)


# ---- rules: see kill_at.c; one whose name begins with may_ need not act ----------------------------------------------


def s_rule(name, who, event, message, where="-", peer="-", nth=1, when="-", hold="-", do="kill", whom="self"):
    number = peers.MESSAGES[message][0] if message else 0
    return f"{name} {who} {event} {number} {peer} {where} {nth} {when} {hold} {do} {whom}"


FETCH_STATE, FETCH_REPLAY = "what=2", "what=5"  # tt_fetch_t


def s_all_in(job):
    """A roster comes a second after the first member, at the latest. Nothing begins before everybody is in one."""
    first = [("collector/0", "ATTACH"), ("collector/1", "ATTACH"), *((f"learner/{index}", "CREDIT") for index in range(job.learners))]
    for who, message in first:
        name, other = who.replace("/", "_"), "collector/1" if who == "collector/0" else "collector/0"
        yield s_rule(f"in_{name}", who, "send", message, do="mark")
        yield s_rule(f"may_wait_{name}", other, "send", "SEGMENT", hold=f"in_{name}", do="mark")


def s_learner_points(job, update, step, at):
    """A learner dies in step `at`: (what, rules)."""
    where = f"step={at}"
    for index in range(job.learners):
        victim = f"learner/{index}"
        yield f"{victim} before GRAD", [s_rule("die", victim, "send", "GRAD", where)]
        yield f"{victim}, its GRAD has arrived", [
            s_rule("die", "aggregator/0", "recv", "GRAD", where, peer=victim, whom=victim)]
        yield f"{victim} before it is sent SUM", [
            s_rule("die", "aggregator/0", "send", "SUM", where, peer=victim, whom=victim)]
        yield f"{victim}, and one has SUM", [
            s_rule("got", "learner/*", "recv", "SUM", where, do="mark"),
            s_rule("die", "aggregator/0", "send", "SUM", where, nth=2, hold="got", whom=victim)]
        yield f"{victim}, SUM has come", [s_rule("die", victim, "recv", "SUM", where)]


def s_held_points(job, update, step, at):
    """A learner dies in step `at`, of which nothing is sent. The first step of a generation is, and tells that all reach all."""
    if at == 0:
        return

    def put(name, who, step_of_run, **words):  # the first node of a step, by who is about to put it into its memory
        return s_rule(name, f"learner/{who}", "put", None, nth=(step_of_run - 1) * job.nodes_of(who) + 1, **words)
    for index in range(job.learners):
        victim, others = f"learner/{index}", [other for other in range(job.learners) if other != index]
        one = others[(at + index) % len(others)]
        yield f"{victim} before its nodes are in memory", [put("die", index, at)]
        yield f"{victim}, its nodes are in memory, and those of no other", [
            put("said", index, at, do="mark"), s_rule("die", victim, "yield", None, when="said"),
            *(put(f"wait_{other}", other, at, hold="die", do="mark") for other in others)]
        yield f"{victim}, one waits for its nodes", [
            put("said", one, at, do="mark"), s_rule("waits", f"learner/{one}", "yield", None, when="said", do="mark"),
            put("die", index, at, hold="waits")]
        if (update, step + 1, at + 1) in job.positions:  # the next update would want the batch that the one is to ask for
            yield f"{victim}, one is a step behind it", [
                put("said", one, at, do="mark"), s_rule("behind", f"learner/{one}", "yield", None, when="said", hold="die", do="mark"),
                put("may_wait", index, at, hold="taken.behind", do="mark"), put("die", index, at + 1)]


def s_end_points(job, update, step, _):
    """Somebody dies between an update's last step and the next one."""
    if step:
        return
    version, below = f"version={update + 1}", f"below={update + 1}"
    yield "leader before WEIGHTS", [s_rule("die", "learner/*", "send", "WEIGHTS", version)]
    yield "leader after WEIGHTS", [s_rule("got", "collector/*", "recv", "WEIGHTS", version, do="mark"),
                                   s_rule("die", "learner/*", "sent", "WEIGHTS", version, hold="got")]
    for index in range(job.learners):
        yield f"learner/{index} before CREDIT", [
            s_rule("die", f"learner/{index}", "send", "CREDIT", f"upto={update + job.lag + 2}")]
    yield "leader before ACK", [s_rule("die", "learner/*", "send", "ACK", below)]
    yield "leader between ACKs", [s_rule("got", "collector/*", "recv", "ACK", below, do="mark"),
                                  s_rule("die", "learner/*", "send", "ACK", below, nth=2, hold="got")]


def s_collector_points(job, batch, step, _):
    if step:
        return
    where = f"batch={batch}"
    for index in range(2):
        victim = f"collector/{index}"
        came = {"peer": victim, "where": where}
        yield f"{victim} before SEGMENT", [s_rule("die", victim, "send", "SEGMENT", where)]
        yield f"{victim}, one has its SEGMENT", [
            s_rule("got", "learner/*", "recv", "SEGMENT", **came, do="mark"),
            s_rule("die", victim, "send", "SEGMENT", where, nth=2, hold="got")]
        yield f"{victim}, all have its SEGMENT", [
            s_rule("said", victim, "sent", "SEGMENT", where, nth=job.learners, do="mark"),
            s_rule("die", "learner/1", "recv", "SEGMENT", **came, hold="said", whom=victim)]
        if batch:
            yield f"{victim}, WEIGHTS have come", [s_rule("die", victim, "recv", "WEIGHTS", f"version={batch}")]
            yield f"{victim}, ACK has come", [s_rule("die", victim, "recv", "ACK", f"below={batch}")]


def s_aggregator_points(job, update, step, at):
    where = f"step={at}"
    got = s_rule("got", "learner/*", "recv", "SUM", where, do="mark")
    for nth in (1, job.nodes()):
        yield f"aggregator at GRAD {nth} of {job.nodes()}", [s_rule("die", "aggregator/0", "recv", "GRAD", where, nth=nth)]
    yield "aggregator before SUM", [s_rule("die", "aggregator/0", "send", "SUM", where)]
    yield "aggregator, one has SUM", [got, s_rule("die", "aggregator/0", "send", "SUM", where, nth=2, hold="got")]
    yield "aggregator after all SUMs", [got, s_rule("die", "aggregator/0", "sent", "SUM", where, nth=job.learners, hold="got")]
    yield "aggregator, and who alone has SUM", [
        s_rule("got", "learner/*", "recv", "SUM", where),
        s_rule("die", "aggregator/0", "send", "SUM", where, nth=2, hold="got")]


def s_join_points(job, update, step, at):
    """A learner dies in step `at` and comes back; the others wait for it before they go on, and then somebody dies."""
    if at + 2 > job.positions[-1][2] or (job.learners == 2 and update + 2 >= job.updates):
        return  # the run would end before it is in
    for index in range(job.learners):
        victim = f"learner/{index}"
        asked = FETCH_STATE if job.warms else "-"  # before it, who warms up has asked for the replay
        gone = [s_rule("gone", victim, "send", "GRAD", f"step={at}"),
                s_rule("asks", victim, "send", "FETCH", asked, when="gone", do="mark")]
        if job.learners > 2:  # they wait for this SUM, and let it in meanwhile
            gone += [s_rule("told", "learner/*", "sent", "FETCHED", when="gone", peer=victim, do="mark"),
                     s_rule("may_wait", "aggregator/0", "send", "SUM", f"step={at + 1}", when="gone", hold="told", do="mark")]
        else:  # who is alone needs no SUM, but batches; it has to be free to lend its replay
            gone += [s_rule(f"may_wait_{c}", f"collector/{c}", "send", "SEGMENT", f"batch={update + job.lag + 1}", when="gone",
                            hold="asks", do="mark") for c in (0, 1)]
        back = {"when": "asks", "peer": victim}
        came = s_rule("came", victim, "recv", "FETCHED", when="asks", do="mark")
        yield f"{victim} joins", [*gone, came]
        yield f"{victim} dies before it asks", [*gone, s_rule("die", victim, "send", "FETCH", asked, when="gone", hold="asks")]
        yield f"{victim} dies with the state", [*gone, s_rule("die", victim, "recv", "FETCHED", when="asks")]
        yield f"{victim} dies before its first GRAD", [*gone, came, s_rule("die", victim, "send", "GRAD", when="came")]
        yield f"leader dies before {victim} has the state", [*gone, s_rule("die", "learner/*", "send", "FETCHED", **back)]
        last = s_rule("die", "learner/*", "sent", "FETCHED", **back, hold="came")
        yield f"leader dies when {victim} has the state", [*gone, came, last]
        if job.learners > 2:  # the next aggregator does nothing until the leader is dead: only who joins may have the SUM
            yield f"leader dies when {victim} has the state, and one alone SUM {at}", [
                *gone, came, last,
                s_rule("got", "learner/*", "recv", "SUM", f"step={at}", when="gone", do="mark"),
                s_rule("may_half", "aggregator/0", "send", "SUM", f"step={at}", nth=2, when="gone", hold="got"),
                s_rule("may_still", "aggregator/0", "recv", "GRAD", when="may_half", hold="die", do="mark")]


def s_warm_points(job, update, step, at):
    """A learner dies in step `at`, comes back and warms up: at each state of that it dies, one that lends to it, or the coordinator."""
    if not WARM_FROM <= update < WARM_FROM + 2:
        return
    for index in range(job.learners):
        joiner, coordinator = f"learner/{index}", "coordinator/0"
        gone = s_rule("gone", joiner, "send", "GRAD", f"step={at}")

        def held(until):  # the others do not end the run meanwhile
            return [s_rule(f"may_hold_{c}", f"collector/{c}", "send", "SEGMENT", f"batch={WARM_HELD}", when="gone", hold=until, do="mark")
                    for c in (0, 1)]

        def dies(until, *rule, **words):
            return [gone, *held(until), s_rule("die", *rule, **{"when": "gone", **words})]
        lent = {"where": FETCH_REPLAY, "peer": joiner}
        for who, whom in (("it", "self"), ("the coordinator", coordinator)):
            yield f"{joiner} warms up: {who} dies before it asks", dies("die", joiner, "send", "FETCH", FETCH_REPLAY, whom=whom)
            for piece in (1, 3):
                yield f"{joiner} warms up: {who} dies with piece {piece}", dies("die", joiner, "recv", "FETCHED", FETCH_REPLAY, nth=piece, whom=whom)
            yield f"{joiner} is warm: {who} dies before it says so", dies("die", joiner, "send", "HEARTBEAT", "warm=1", whom=whom)
            yield f"{joiner} is in: {who} dies before the state is asked for", dies("die", joiner, "send", "FETCH", FETCH_STATE, whom=whom)
            came = s_rule("came", joiner, "recv", "FETCHED", FETCH_STATE, when="gone", do="mark")
            yield f"{joiner} holds: {who} dies before its first GRAD", [*dies("came", joiner, "send", "GRAD", when="came", whom=whom), came]
        yield f"{joiner} is in: it dies with the state", dies("die", joiner, "recv", "FETCHED", FETCH_STATE)
        yield f"{joiner} is in: the leader dies before it sends the state", dies("die", "learner/*", "recv", "FETCH", FETCH_STATE, peer=joiner)
        for who, whom in (("it", joiner), ("the coordinator", "self")):
            yield f"{joiner} is warm: {who} dies when that is heard", dies("die", coordinator, "recv", "HEARTBEAT", "warm=1", peer=joiner, whom=whom)
        for piece in (1, 2):
            yield f"{joiner} warms up: who lends dies before piece {piece}", dies("die", "learner/*", "send", "FETCHED", nth=piece, **lent)
            yield f"{joiner} warms up: who lends dies with piece {piece} sent", dies("die", "learner/*", "sent", "FETCHED", nth=piece, **lent)


# A beat of somebody's link comes whatever its role waits for: then is when the others have had their time.


def s_full_sum_points(job, update, step, at):
    """A learner that has sent all of its GRADs stands still, so that the aggregator's queue for it is full; then somebody dies."""
    where = f"step={at}"
    for index in range(job.learners):
        still, other = f"learner/{index}", f"learner/{(index + 1) % job.learners}"
        rules = [s_rule("said", "aggregator/0", "recv", "GRAD", where, peer=still, nth=CHUNKS, do="mark"),
                 s_rule("wait", other, "send", "GRAD", where, hold="said", do="mark"),
                 s_rule("stop", "aggregator/0", "recv", "GRAD", where, peer=other, do="stop", whom=still)]
        go = s_rule("go", "collector/0", "send", "HEARTBEAT", when="full", do="cont", whom=still)
        for victim in (still, other, "aggregator/0"):
            full = s_rule("full", "aggregator/0", "full", None, peer=still, when="stop", whom=victim)
            yield f"SUM for {still} refused, {victim} dies", [*rules, full] if victim == still else [*rules, full, go]


def s_full_grad_points(job, update, step, at):
    """The aggregator stands still, a learner dies, and what the others begin the new generation with is refused."""
    if at == 0:
        return  # no sum is kept yet: it all fits
    for index in range(job.learners):
        victim = f"learner/{index}"
        for then in ("cont", "kill"):
            yield f"{victim} dies, GRADs of the others refused, aggregator: {then}", [
                s_rule("stop", "aggregator/0", "recv", "GRAD", f"step={at}", do="stop"),
                s_rule("die", victim, "send", "HEARTBEAT", when="stop"),
                s_rule("full", "learner/*", "full", "GRAD", when="die", do="mark"),
                s_rule("go", "collector/0", "send", "HEARTBEAT", when="full", do=then, whom="aggregator/0")]


def s_full_segment_points(job, batch, step, _):
    """A learner stands still, a collector dies, and what the other says to that learner is refused."""
    if step:
        return
    for index in range(job.learners):
        still = f"learner/{index}"
        for then in ("cont", "kill"):
            yield f"collector/1 dies, what collector/0 says to {still} is refused: {then}", [
                s_rule("stop", "collector/0", "send", "SEGMENT", f"batch={batch}", do="stop", whom=still),
                s_rule("die", "collector/1", "send", "HEARTBEAT", when="stop"),
                s_rule("full", "collector/0", "full", None, when="die", do="mark"),
                s_rule("go", "collector/0", "send", "HEARTBEAT", when="full", do=then, whom=still)]
        other = f"learner/{(index + 1) % job.learners}"
        yield f"collector/0 dies with a part of its SEGMENT for {still}", [
            s_rule("stop", "collector/0", "send", "SEGMENT", f"batch={batch}", do="stop", whom=still),
            s_rule("said", "collector/0", "sent", "SEGMENT", f"batch={batch}", nth=job.learners, do="mark"),
            s_rule("die", other, "recv", "SEGMENT", f"batch={batch}", peer="collector/0", hold="said", whom="collector/0"),
            s_rule("go", "collector/1", "send", "HEARTBEAT", when="die", do="cont", whom=still)]


# ---- runs --------------------------------------------------------------------------------------------------------------


def s_play_once(world, config, sets, rules, **env):
    """A run with rules: its summary, and those that have not acted."""
    world.count += 1
    folder = os.path.join(world.path, f"at-{world.count}")
    os.mkdir(folder)
    with open(os.path.join(folder, "rules"), "w", encoding="utf-8") as file:
        file.write("".join(f"{rule}\n" for rule in rules))
    env.update(LD_PRELOAD=os.environ["KILL_AT"], TT_KILL_AT=folder)
    summary = world.train(config, *sets, seed=5, deadline=DEADLINE / 2, env=env)
    return summary, {rule.split()[0] for rule in rules if not rule.startswith("may_")} - set(os.listdir(folder))


def s_play(world, config, sets, rules, **env):
    """A run with rules: its summary, all of them having acted. Who is stopped by one goes on by another within the lease; it was longer if the
    machine stood still meanwhile, and then it is played once more."""
    summary, idle = s_play_once(world, config, sets, rules, **env)
    if idle and any(" stop " in rule for rule in rules) and silent(summary["run_dir"]):
        summary, idle = s_play_once(world, config, sets, rules, **env)
    check(not idle, f"never came to: {', '.join(sorted(idle))}")
    shutil.rmtree(summary["run_dir"])  # the logs of one that failed are told, and of no other
    return summary


STILL = {}  # the summary of each job when it is left alone


def s_sweep(world, job, points, wanted, **env):
    """Runs of one job: at all its positions, or at as many as wanted."""
    cases = [(update, step, what, rules) for update, step, at in job.positions for what, rules in points(job, update, step, at)]
    draw = random.Random(f"{SEED}/{job.name}/{points.__name__}")
    chosen = cases if ALL else draw.sample(cases, min(wanted * RUNS, len(cases)))
    begun = time.monotonic()
    config = world.config(job.text)
    if job.name not in STILL:
        STILL[job.name] = world.train(config, *job.sets, seed=5)
        equal(STILL[job.name]["updates"], job.updates, f"{job.name}: updates")
    for update, step, what, rules in chosen:
        try:
            summary = s_play(world, config, job.sets, [*s_all_in(job), *rules], **env)
            check_like(summary, STILL[job.name], job.lag)
        except (Failed, subprocess.TimeoutExpired) as error:
            raise Failed(f"POSITIONS_SEED={SEED} {job.name}: update {update}, step {step}: {what}: {error}") from error
    print(f"        {job.name}: {len(chosen)} of {len(cases)} kills, {time.monotonic() - begun:.0f} s", flush=True)


def s_test(world, points, wanted):
    for job in JOBS:
        s_sweep(world, job, points, wanted)


def test_learner(world):
    s_test(world, s_learner_points, 2)


def test_held(world):
    for job in HELD_JOBS:
        s_sweep(world, job, s_held_points, 2)


def test_between_updates(world):
    s_test(world, s_end_points, 2)


def test_collector(world):
    s_test(world, s_collector_points, 2)


def test_aggregator(world):
    s_test(world, s_aggregator_points, 2)


def test_joiner(world):
    s_test(world, s_join_points, 2)


def test_warming(world):
    for learners in (2, 3):  # of two, who lends is all that hold it: the run goes back to its newest snapshot
        for lag in (0, 1) if ALL or RUNS > 1 else [(SEED + learners) % 2]:
            s_sweep(world, Job(WARM, lag, learners, 4, s_warm_steps()), s_warm_points, 3)


def s_test_full(world, points, text, steps, mark):
    for lag in (0, 1) if ALL or RUNS > 1 else [SEED % 2]:
        s_sweep(world, Job(text, lag, 3, 4, [steps] * 3), points, 1, TT_KILL_AT_HWM=mark)


def test_full_sum(world):
    s_test_full(world, s_full_sum_points, WIDE, 2, "aggregator=1")


def test_full_grad(world):
    s_test_full(world, s_full_grad_points, WIDE, 2, f"learner={2 * CHUNKS}")  # the kept sum and the step in hand, once


def test_full_segment(world):
    s_test_full(world, s_full_segment_points, LONG_PPO, 1, "collector=1")
    s_test_full(world, s_full_segment_points, LONG_DQN, 1, "collector=1")


print(f"POSITIONS_SEED={SEED}", flush=True)
main(test_learner, test_held, test_between_updates, test_collector, test_aggregator, test_joiner, test_warming, test_full_sum, test_full_grad,
     test_full_segment)
