#!/usr/bin/env python3
"""The main job: CartPole-v1 solved by one coordinator, two collectors, two learners and one aggregator."""

import os
import sys

sys.dont_write_bytecode = True
from rig import SOURCE, check, equal, main

SUMMARY_KEYS = ["run", "status", "rolled_back", "reason", "env_steps", "updates", "episodes", "return_mean",
                "solved_at_steps", "solved_at_s", "wall_s", "first_step_s", "sps", "weights_sha256", "transitions",
                "lag_max", "eval", "weights_only", "restored_from", "life", "changed", "run_dir"]


def test_solves_cartpole(world):
    config = os.path.join(SOURCE, "configs", "cartpole-ppo.yaml")
    summary = world.train(config, "collector.replicas=2", "learner.replicas=2", seed=1)
    equal(sorted(summary), sorted(SUMMARY_KEYS), "keys of the summary")
    equal(summary["status"], "succeeded", "status")
    equal(summary["reason"], "return_mean", "reason")
    check(summary["return_mean"] >= 475, f"return {summary['return_mean']}")
    transitions = summary["transitions"]
    equal(transitions["trained"], summary["updates"] * 16 * 64, "transitions trained")
    equal(summary["env_steps"], transitions["trained"] + 16 * 64, "steps: the stop rule saw one batch more")
    equal(transitions["duplicated"], 0, "duplicated")
    equal(transitions["lost"], 0, "lost")
    check(transitions["collected"] >= transitions["trained"], "collected at least what was trained")
    equal(len(summary["weights_sha256"]), 64, "digits of the hash")
    check(0 < summary["first_step_s"] <= summary["solved_at_s"] <= summary["wall_s"], f"times: {summary}")
    for name in ["config.yaml", "metrics.jsonl", "checkpoints", "logs", "journal.db", "summary.json",
                 "logs/coordinator-0.log", "logs/collector-1.log", "logs/learner-1.log", "logs/aggregator-0.log"]:
        check(os.path.exists(os.path.join(summary["run_dir"], name)), f"{name} is missing")
    check(not os.path.exists(os.path.join(summary["run_dir"], "sock")), "sock/ stayed behind")
    world.await_empty()


def test_plain_output(world):
    """Not a terminal: plain lines, no escape codes, exit 0."""
    done = world.tutti("run", world.config(), "--set", "collector.replicas=2")
    equal(done.returncode, 0, f"exit code; {done.stderr}")
    check("\033" not in done.stdout, "escape codes in plain output")
    check("succeeded" in done.stdout, f"the end is missing: {done.stdout}")


main(test_solves_cartpole, test_plain_output)
