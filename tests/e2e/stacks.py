#!/usr/bin/env python3
"""Stacked observations: the same bits for any number of collectors, learners and threads, through scaling, kills and a resume, on
policy and from a replay, across truncations and with pictures."""

import json
import os
import sys

sys.dont_write_bytecode = True
from rig import check, equal, main, steps

PLUGINS = os.path.join(os.environ["TT_BUILD_DIR"], "tests", "collector", "plugins")
PPO = "{name: ppo, learning_rate: 1e-3, epochs: 2, minibatch_size: 64}"
DQN = ("{name: dqn, batch_size: 32, learning_starts: 700, train_every: 32, gradient_steps: 1, epsilon_steps: 5000, target_every: 640, "
       "n_step: 3, double: true}")
REPLAY = "replay: {capacity: 4000, prioritized: true, beta_steps: 8000}\n"


def s_config(world, env, algorithm, more="", count=8000, num_steps=32):
    text = (f"env: {env}\nnum_envs: 8\nnum_steps: {num_steps}\nalgorithm: {algorithm}\nlearner: {{shards: 4}}\n"
            f"{REPLAY if 'dqn' in algorithm else ''}{more}stop: {{env_steps: {max(steps(count), 1024)}}}\n")
    return world.config(text, name=f"{abs(hash(text))}.yaml")


def test_same_bits_ppo(world):
    """A batch of fewer steps than a stack has frames, too."""
    env = "{id: CartPole-v1, stack: 3}"
    world.check_same_bits(s_config(world, env, PPO), "lag=1", "normalize.obs=true", "normalize.reward=true")
    world.check_same_bits(s_config(world, "{id: CartPole-v1, stack: 7}", PPO, count=3000, num_steps=2),
                          "lag=0", "algorithm.minibatch_size=8")


def test_same_bits_truncated(world):
    """Pendulum's episodes are cut after 200 steps, within a batch and at its end."""
    world.check_same_bits(s_config(world, "{id: Pendulum-v1, stack: 4, stack_pad: zero}", PPO), "normalize.obs=true")


def test_same_bits_dqn(world):
    world.check_same_bits(s_config(world, "{id: CartPole-v1, stack: 3}", DQN), "lag=1")


def test_same_bits_pictures(world):
    """Bits with channels of their own; bytes and floats side by side."""
    small = "network: {encoder: [conv 4 3x3 relu, dense 16 relu], shared: true}\n"
    world.check_same_bits(s_config(world, "{id: MinAtar/Breakout-v1, stack: 3}", DQN, small, 4000))
    world.check_same_bits(s_config(world, f"{{id: {PLUGINS}/catch_parts.so, stack: 2}}", PPO, small, 4000), "normalize.obs=true")


def test_disturbed_ppo(world):
    world.check_disturbed(s_config(world, "{id: CartPole-v1, stack: 3}", PPO))


def test_disturbed_dqn(world):
    world.check_disturbed(s_config(world, "{id: CartPole-v1, stack: 3}", DQN))


def test_resumed(world):
    """With a stack that goes back to before the snapshot."""
    for algorithm in (PPO, DQN):
        config = s_config(world, "{id: CartPole-v1, stack: 4}", algorithm)
        first = world.train(config, "stop.env_steps=2048", seed=7)
        second = world.resume(first["run_dir"], "stop.env_steps=4096")
        whole = world.train(config, "stop.env_steps=4096", seed=7)
        equal(second["weights_sha256"], whole["weights_sha256"], "weights")


def test_evaluated(world):
    """Beside training and by itself, by the same stacks: the weights of an evaluated version play as they did."""
    config = s_config(world, "{id: CartPole-v1, stack: 2}", PPO, "eval: {every: 2048, episodes: 5}\n", 4096)
    done = world.train(config, "stop.env_steps=2304", seed=3)
    said = world.tutti("eval", done["run_dir"], "--episodes", "5", "--seed", "1", "--output", "json")
    equal(said.returncode, 0, said.stderr)
    equal(json.loads(said.stdout)["return_mean"], done["eval"]["mean_reward"], "mean return")


def s_refused(world, config, text, *sets):
    done = world.tutti("check", config, *[word for one in sets for word in ("--set", one)])
    equal(done.returncode, 78, done.stdout + done.stderr)
    check(text in done.stderr, f"{text!r} is not in {done.stderr!r}")


def test_what_check_says(world):
    config = s_config(world, f"{{id: {PLUGINS}/catch_frames.so, stack: 4}}", PPO, "network: {encoder: nature}\n")
    text = " ".join(world.tutti("check", config).stdout.split())
    for line in ("stacked 4 frames, each stored and sent once: uint8[4, 84, 84]", "84 x 84 x 4, obs, channels first, divided by 255",
                 "28224 numbers that the networks read"):
        check(line in text, f"{line!r} is not in {text}")
    said = json.loads(world.tutti("check", config, "--output", "json").stdout)["comes_to"]
    equal((said["stack"], said["flat"]), (4, 28224), "stack, flat")
    once = json.loads(world.tutti("check", config, "--set", "env.stack=1", "--output", "json").stdout)["comes_to"]
    equal(once["row_bytes"], said["row_bytes"], "bytes of a row, by the stack")
    check("stack" not in once, f"without a stack: {once}")
    s_refused(world, config, "env.stack", "env.stack=0")
    s_refused(world, config, "env.stack", "env.stack=65")
    s_refused(world, config, "env.stack_pad", "env.stack_pad=none")


main(test_same_bits_ppo, test_same_bits_truncated, test_same_bits_dqn, test_same_bits_pictures, test_disturbed_ppo,
     test_disturbed_dqn, test_resumed, test_evaluated, test_what_check_says)
