#!/usr/bin/env python3
"""A network of two groups, with optimisers of different kinds that take turns (pair.c, in tutti_pair): the same weights for any number
of processes, whatever is killed and scaled, and a stopped run goes on as if nothing had been."""

import os
import sys

sys.dont_write_bytecode = True
os.environ["TUTTI"] = os.path.join(os.environ["TT_BUILD_DIR"], "tests", "learner", "tutti_pair")
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "e2e"))
from rig import BATCH, ENDLESS, JOB, SANITIZED, check, equal, main, steps  # noqa: E402

PAIR = JOB.replace("name: ppo", "name: pair")


def test_same_bits(world):
    length = (f"stop.env_steps={16 * BATCH}",) if SANITIZED else ()  # a wrong bit is wrong ever after
    world.check_same_bits(world.config(PAIR), *length)


def test_disturbed(world):
    world.check_disturbed(world.config(PAIR))


def test_resumed(world):
    config = world.config(PAIR)
    process, run_dir = world.start_run(config, ENDLESS, seed=11)
    world.await_steps(run_dir, steps(10_000), process)
    end = world.stop(process, run_dir)["env_steps"] + steps(20_000)
    resumed = world.resume(run_dir, f"stop.env_steps={end}")
    still = world.train(config, f"stop.env_steps={end}", seed=11)
    for key in ("weights_sha256", "env_steps", "episodes"):
        equal(resumed[key], still[key], f"{key} after resume")


def test_it_is_told(world):
    """`check` names the groups; they are the algorithm's to say; and another algorithm's weights lie otherwise."""
    config = world.config(PAIR)
    check("policy, baseline: an optimiser each" in world.tutti("check", config).stdout, "check says nothing of groups")
    done = world.tutti("check", config, "--set", "actor.groups=one")
    check(done.returncode == 78 and "actor.groups is filled in from the algorithm" in done.stderr, done.stderr)
    check("groups" not in world.tutti("check", world.config(JOB, "one.yaml")).stdout, "groups where there is one")
    done = world.tutti("check", config, "--set", "network.shared=true", "--set", "network.hidden=[]")
    equal(done.returncode, 78, "nothing to share")


if __name__ == "__main__":
    main(test_same_bits, test_disturbed, test_resumed, test_it_is_told)
