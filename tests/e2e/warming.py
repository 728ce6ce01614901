#!/usr/bin/env python3
"""Learners that join a run with a replay of many pieces warm up first: scaled in the middle, and killed while they do or while they lend, whoever
it is, the weights are the same to the bit and nothing is trained twice or lost."""

import os
import signal
import sys

sys.dont_write_bytecode = True
from rig import ENDLESS, SANITIZED, Failed, check, equal, main, silent, wait_for

PLUGINS = os.path.join(os.environ["TT_BUILD_DIR"], "tests", "collector", "plugins")
# Frames of 7 KB, so that a replay of some thousand rows has many pieces; little is trained on them.
JOB = f"""\
env: {PLUGINS}/catch_frames.so
num_envs: 8
num_steps: 32
algorithm:
  name: dqn
  batch_size: 64
  learning_starts: 1024
  train_every: 128
  gradient_steps: 1
  epsilon_steps: 5000
  target_every: 640
  n_step: 3
replay: {{capacity: CAPACITY, prioritized: true, beta_steps: 8000}}
network: {{encoder: none, hidden: [32]}}
learner: {{shards: 4}}
checkpoint: {{every_s: 3}}
"""


FULL = 4_096 if SANITIZED else 8_000  # env steps after which a replay is: seven pieces, or thirteen


CUT = {"TT_SEGMENT_ENVS": "3"}  # a batch has three segments, and so have the pieces


def s_start(world, *sets, capacity=FULL, env=None):
    """Once its replay is full it plays slowly: while processes start, warm up and are looked at it would train on ten times as much, and so
    would the runs that it is then compared with."""
    config = world.config(JOB.replace("CAPACITY", str(capacity)), name=f"warming-{capacity}.yaml")
    slowly = dict(env or {}, CATCH_QUICK=str(capacity))
    process, run_dir = world.start_run(config, "lag=1", *sets, ENDLESS, seed=3, env=slowly)
    return config, process, run_dir


def s_learners(world, run_dir):
    return [member for member in (world.status(run_dir) or {}).get("members", []) if member["role"] == "learner"]


def s_warming(world, run_dir):
    """Numbers of the learners that warm up now."""
    return [member["index"] for member in s_learners(world, run_dir) if member["phase"] == "warming"]


def s_are_ready(world, run_dir, learners):
    counts = (world.status(run_dir) or {}).get("replicas", {})
    return counts and counts["learner"]["ready"] == learners


def s_ready(world, run_dir, learners):
    wait_for(lambda: s_are_ready(world, run_dir, learners), f"{learners} learners in the roster")


def s_scale(world, run_dir, learners):
    done = world.tutti("scale", run_dir, f"learner={learners}")
    equal(done.returncode, 0, f"tutti scale: {done.stderr}")


def s_see_warming(world, run_dir, learners):
    """One more than `learners`, that warms up now: its number. Should it be warm before anyone looks it is sent away, and comes again."""
    for _ in range(20):
        s_scale(world, run_dir, learners + 1)
        wait_for(lambda: s_warming(world, run_dir) or s_are_ready(world, run_dir, learners + 1), "a learner that warms up")
        seen = s_warming(world, run_dir)
        if seen:
            return seen[0]
        s_scale(world, run_dir, learners)
        s_ready(world, run_dir, learners)
    raise Failed("nobody was seen warming up")


def s_finish(world, config, process, run_dir, *sets, what):
    status = world.look(run_dir, process)
    world.await_steps(run_dir, status["env_steps"] + 1024, process)
    summary = world.stop(process, run_dir)
    world.check_same(summary, config, "lag=1", *sets, seed=3, what=what)
    equal(summary["transitions"]["duplicated"], 0, "duplicated")
    equal(summary["transitions"]["lost"], 0, "lost")
    return summary


def test_scaled(world):
    """1, 2, 1, 3: alone, one joins, leaves, and two join at once. Against a run whose ranges are one segment each."""
    config, process, run_dir = s_start(world, env=CUT)
    world.await_steps(run_dir, FULL, process)
    for learners in (2, 1, 3):
        s_scale(world, run_dir, learners)
        s_ready(world, run_dir, learners)
        status = world.look(run_dir, process)
        world.await_steps(run_dir, status["env_steps"] + 1024, process)
    s_finish(world, config, process, run_dir, what="after scaling 1, 2, 1, 3")


def s_killed(world, victim, learners, env=None):
    """victim(warming): the learner that is killed as soon as somebody warms up."""
    sets = [f"learner.replicas={learners}"]
    config, process, run_dir = s_start(world, *sets, env=env)
    world.await_steps(run_dir, FULL, process)
    wait_for(lambda: len([member for member in s_learners(world, run_dir) if member.get("holds")]) == learners, "learners with weights")
    warming = s_see_warming(world, run_dir, learners)
    index = victim(warming)
    pid = world.replica("learner", index)
    os.kill(pid, signal.SIGKILL)
    wait_for(lambda: world.replica("learner", index) != pid, f"another process of learner/{index}")
    s_ready(world, run_dir, learners + 1)
    return s_finish(world, config, process, run_dir, *sets, what=f"after learner/{index} was killed while learner/{warming} warmed up")


def s_check_kept(summary):
    """Another one holds the weights: the run goes on. Unless the machine held up that one for a lease."""
    late = silent(summary["run_dir"])
    check(summary["rolled_back"] == 0 or late, f"rolled back {summary['rolled_back']} times, and nobody was late")


def test_the_joiner_dies(world):
    s_check_kept(s_killed(world, lambda warming: warming, 1))


def test_the_leader_dies(world):
    """Another leads, and gives the rest."""
    s_check_kept(s_killed(world, lambda warming: 0, 2))


def test_a_lender_dies(world):
    s_check_kept(s_killed(world, lambda warming: 1, 2, env=CUT))


def test_all_that_hold_it_die(world):
    """One that warms up holds nothing: the run goes back to its newest snapshot, with it."""
    s_killed(world, lambda warming: 0, 1)


def s_scale_away(world, run_dir):
    """Generations that came of it: none, unless the joiner was warm before it could be told to go."""
    s_see_warming(world, run_dir, 1)
    generation = world.look(run_dir)["generation"]
    s_scale(world, run_dir, 1)
    wait_for(lambda: len(s_learners(world, run_dir)) == 1, "the end of learner/1")
    return world.look(run_dir)["generation"] - generation


def test_the_joiner_is_scaled_away(world):
    config, process, run_dir = s_start(world)
    world.await_steps(run_dir, FULL, process)
    check(any(s_scale_away(world, run_dir) == 0 for _ in range(20)), "each joiner that was scaled away made a new generation")
    s_finish(world, config, process, run_dir, what="after a joiner was scaled away")


main(test_scaled, test_the_joiner_dies, test_the_leader_dies, test_a_lender_dies, test_all_that_hold_it_die, test_the_joiner_is_scaled_away)
