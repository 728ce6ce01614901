#!/usr/bin/env python3
"""env.frames against Gymnasium's own AtariPreprocessing: the same weights, bit by bit, for any number of collectors; and what is said of
what cannot be. Needs build/venv-gym."""

import os
import sys

sys.dont_write_bytecode = True
from rig import SOURCE, check, equal, main

VENV = os.path.join(SOURCE, "build", "venv-gym")
if not os.path.exists(os.path.join(VENV, ".complete")):
    print("skipped: tools/test-venv makes build/venv-gym, which this needs")
    sys.exit(77)
os.environ.update({"TT_PYTHON": os.path.join(VENV, "bin", "python3"), "PYTHONDONTWRITEBYTECODE": "1"})

THEIRS = ("args: {frameskip: 1}, wrappers: ['AtariPreprocessing(screen_size=42, terminal_on_life_loss=True)', "
          "'ClipReward(min_reward=-1, max_reward=1)']")
OURS = "frames: {screen_size: 42, terminal_on_life_loss: true, clip_reward: true}"


def s_config(world, env):
    return world.config(f"env: {{id: 'gym:ALE/Breakout-v5', {env}, stack: 2, workers: 1}}\nnum_envs: 2\nnum_steps: 32\n"
                        "algorithm: {name: ppo, epochs: 1, minibatch_size: 32}\nnetwork: {encoder: [conv 4 8x8 /8 relu], hidden: [8]}\n"
                        "stop: {env_steps: 512}\n")


def test_same_weights(world):
    theirs, ours, two = [world.train(s_config(world, env), *more, seed=3)["weights_sha256"]
                         for env, more in ((THEIRS, ()), (OURS, ()), (OURS, ("collector.replicas=2",)))]
    equal(ours, theirs, "weights by env.frames and by AtariPreprocessing")
    equal(two, ours, "weights of two collectors")


def test_refused(world):
    wide = "env.frames.screen_size is 161, but its screen has only 160 x 210: take at most 160"
    for env, words in (
            ("id: gym:CartPole-v1, frames: {screen_size: 8}", "env.frames is for the games of the Arcade Learning Environment"),
            ("id: CartPole-v1, frames: {screen_size: 8}", "only environments of Gymnasium's have it"),
            ("id: 'gym:ALE/Pong-v5', frames: {screen_size: 161}", wide),
            ("id: 'gym:ALE/Pong-v5', args: {frameskip: 4}, frames: {screen_size: 84}", "env.args.frameskip is 4, but"),
            ("id: 'gym:ALE/Pong-v5', args: {obs_type: ram}, frames: {screen_size: 84}", "env.args.obs_type says nothing"),
            ("id: 'gym:ALE/Pong-v5', wrappers: [FlattenObservation], frames: {screen_size: 84}", "no grey screen any more")):
        done = world.tutti("check", world.config(f"env: {{{env}}}\n"))
        check(done.returncode == 78 and words in done.stderr, f"{env}: {done.returncode} {done.stderr!r}, wanted {words!r}")


main(test_same_weights, test_refused)
