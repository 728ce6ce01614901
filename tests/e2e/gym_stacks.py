#!/usr/bin/env python3
"""env.stack against Gymnasium's own FrameStackObservation: the same weights, bit by bit, whether the environment stacks its
observations or we do, so every stack that was acted on, trained on or bootstrapped from was the same. Needs build/venv-gym."""

import json
import os
import sys

sys.dont_write_bytecode = True
from rig import SANITIZED, SOURCE, check, equal, main, steps

VENV = os.path.join(SOURCE, "build", "venv-gym")
if not os.path.exists(os.path.join(VENV, ".complete")):
    print("skipped: tools/test-venv makes build/venv-gym, which this needs")
    sys.exit(77)
os.environ.update({"TT_PYTHON": os.path.join(VENV, "bin", "python3"), "PYTHONDONTWRITEBYTECODE": "1",
                   "PYTHONPATH": os.path.join(SOURCE, "tests", "collector", "gym_envs")})

PPO = "{name: ppo, epochs: 2, minibatch_size: 64}"
DQN = "{name: dqn, batch_size: 32, learning_starts: 500, train_every: 32, gradient_steps: 1, epsilon_steps: 2000, n_step: 2}"
# (the environment, frames, padding, algorithm, more): CartPole is cut after 11 steps, before most of its poles fall
CASES = [
    ("id: 'gym:CartPole-v1', args: {max_episode_steps: 11}", 3, "reset", PPO, "normalize: {reward: true}\n"),
    ("id: 'gym:CartPole-v1', args: {max_episode_steps: 11}", 4, "zero", PPO, ""),
    ("id: 'gym:CartPole-v1', args: {max_episode_steps: 11}", 3, "zero", DQN, ""),
    ("id: 'gym:tt_gym_envs:TTStacked-v0'", 3, "reset", PPO, ""),
    ("id: 'gym:tt_gym_envs:TTStacked-v0'", 2, "zero", DQN, ""),
    ("id: 'gym:tt_gym_envs:TTStackedParts-v0'", 3, "zero", PPO, ""),
    ("id: 'gym:tt_gym_envs:TTStackedParts-v0'", 2, "reset", DQN, ""),
]
if SANITIZED:  # normalised, from a replay, of several columns
    CASES = [CASES[k] for k in (0, 4, 5)]


def s_train(world, env, algorithm, more):
    text = (f"env: {{{env}}}\nnum_envs: 4\nnum_steps: 32\nalgorithm: {algorithm}\nlearner: {{shards: 4}}\n"
            f"network: {{hidden: [16]}}\n{more}stop: {{env_steps: {max(steps(4096), 1024)}}}\n")
    return world.train(world.config(text), seed=3)


def s_run(world, env, algorithm, more):
    """Its weights, and how well they play."""
    done = s_train(world, env, algorithm, more)
    played = world.tutti("eval", done["run_dir"], "--episodes", "6", "--output", "json")
    equal(played.returncode, 0, played.stderr)
    return done["weights_sha256"], json.loads(played.stdout)["return_mean"]


def s_compare(world, env, frames, pad, algorithm, more):
    wrapper = f'FrameStackObservation(stack_size={frames}, padding_type="{pad}")'
    theirs = s_run(world, f"{env}, wrappers: ['{wrapper}']", algorithm, more)
    ours = f"{env}, stack: {frames}, stack_pad: {pad}"
    equal(s_run(world, ours, algorithm, more), theirs, f"weights and returns of {env}, {frames} frames, {pad}")
    other = "zero" if pad == "reset" else "reset"
    check(s_train(world, ours.replace(pad, other), algorithm, more)["weights_sha256"] != theirs[0], f"{env}: {other} is no other padding")


def test_on_policy(world):
    for case in CASES:
        if case[3] == PPO:
            s_compare(world, *case)


def test_replay(world):
    for case in CASES:
        if case[3] == DQN:
            s_compare(world, *case)


def test_zeros_must_be_allowed(world):
    """Gymnasium would stack the nearest bound; what an environment never shows is not made up here."""
    env = "id: 'gym:MountainCar-v0', wrappers: ['RescaleObservation(min_obs=1, max_obs=2)'], stack: 2"
    for pad, code in (("reset", 0), ("zero", 78)):
        done = world.tutti("check", world.config(f"env: {{{env}, stack_pad: {pad}}}\n"))
        equal(done.returncode, code, f"exit code with {pad}: {done.stderr}")
    check("env.stack_pad: zeros are outside of what gym:MountainCar-v0 observes, within [1, 2]: take 'reset'" in done.stderr,
          done.stderr)


main(test_on_policy, test_replay, test_zeros_must_be_allowed)
