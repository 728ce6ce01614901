#!/usr/bin/env python3
"""Environments that are looked at (tests/collector/catch.c) through whole runs, with an encoder: every algorithm learns to catch, and
the bits are the same for any number of collectors, learners and threads, through scaling, kills, a resume, and on a device that
computes late."""

import json
import os
import sys

sys.dont_write_bytecode = True
from rig import check, equal, main, steps

PLUGINS = os.path.join(os.environ["TT_BUILD_DIR"], "tests", "collector", "plugins")
SMALL = "[conv 4 3x3 relu, dense 32 relu]"
PPO = "{name: ppo, learning_rate: 3e-3, epochs: 4, minibatch_size: 128}"
A2C = "{name: a2c, learning_rate: 3e-3}"
DQN = ("{name: dqn, learning_rate: 2e-3, batch_size: 32, learning_starts: 512, train_every: 64, gradient_steps: 8, epsilon_steps: 6000, "
       "target_every: 512, n_step: 3, double: true, dueling: true}")
SHIFTED = DQN.replace("n_step: 3", "n_step: 3, random_shift: 2")
SAC = "{name: sac, learning_rate: 2e-3, batch_size: 64, learning_starts: 512, train_every: 32, n_step: 3, gamma: 0.95}"
TD3 = "{name: td3, learning_rate: 2e-3, batch_size: 32, learning_starts: 512, train_every: 32, random_shift: 1}"


def s_config(world, algorithm, env="catch", encoder=SMALL, shared=True, more="", count=4096):
    replay = {"dqn": "replay: {capacity: 20000, prioritized: true, beta_steps: 8000}\n", "sac": "replay: {capacity: 20000}\n",
              "td3": "replay: {capacity: 20000}\n"}.get(algorithm[7:10], "")
    num_steps = 8 if "a2c" in algorithm else 32
    return world.config(f"env: {PLUGINS}/{env}.so\nnum_envs: 8\nnum_steps: {num_steps}\nalgorithm: {algorithm}\n{replay}"
                        f"network: {{encoder: {encoder}, shared: {str(shared).lower()}}}\nlearner: {{shards: 4}}\n"
                        f"stop: {{env_steps: {max(steps(count), 1024)}}}\n{more}", name=f"{env}-{abs(hash((algorithm, encoder, more, count)))}.yaml")


def s_learns(world, config, at_least, *sets):
    """By its own last episodes, and by the best actions of what is left in the end."""
    done = world.train(config, *sets, seed=3)
    if steps(10) == 10:  # a slow build plays too few
        check(done["return_mean"] > at_least - 0.3, f"mean return {done['return_mean']}")
        said = world.tutti("eval", done["run_dir"], "--episodes", "50", "--output", "json")
        equal(said.returncode, 0, said.stderr)
        check(json.loads(said.stdout)["return_mean"] >= at_least, said.stdout)


def test_by_default(world):
    """A picture that is large enough is looked at, by one encoder, unless somebody says otherwise."""
    def resolved(env, *sets):
        said = world.tutti("check", f"{PLUGINS}/{env}.so", *(word for one in sets for word in ("--set", one)))
        equal(said.returncode, 0, said.stderr)
        lines = dict(line.split("#")[0].strip().split(": ", 1) for line in said.stdout.splitlines() if line.startswith("  ") and ": " in line)
        return [lines[key] for key in ("encoder", "shared", "hidden")]

    equal(resolved("catch_frames"), ["nature", "true", "[]"], "frames")
    equal(resolved("catch_frames", "network.encoder=none"), ["none", "false", "[64, 64]"], "frames, by dense layers")
    equal(resolved("catch_frames", "network.shared=false", "network.hidden=[32]"), ["nature", "false", "[32]"], "frames, with an encoder each")
    equal(resolved("catch_frames", "algorithm.name=dqn", "stop.env_steps=1k", "replay.capacity=2k")[0], "nature", "frames by DQN")
    equal(resolved("catch"), ["none", "false", "[64, 64]"], "too small")


def test_ppo_learns(world):
    s_learns(world, s_config(world, PPO, count=80_000), 0.8)


def test_a2c_learns(world):
    s_learns(world, s_config(world, A2C, count=200_000), 0.8)


def test_dqn_learns(world):
    s_learns(world, s_config(world, DQN, count=16_000), 0.8)


def s_slide(world, algorithm, encoder=SMALL, count=2048):
    """Where the action is a number, actor and critics have an encoder each, and layers behind it."""
    return s_config(world, algorithm, "catch_slide", encoder, shared=False, count=count, more="normalize: {obs: false}\n")


def test_sac_learns(world):
    config = s_slide(world, SAC.replace("train_every: 32", "train_every: 2"), count=12_000)
    s_learns(world, config, 0.8, "num_steps=8", "network.hidden=[32]", "network.activation=relu", "network.init=uniform")


def test_a_vector_behind_the_picture(world):
    """The paddle is no part of the picture: who does not read it catches one ball of four."""
    s_learns(world, s_config(world, PPO, env="catch_parts", count=120_000), 0.8, "network.hidden=[32]", "network.activation=relu")


def test_same_bits_ppo(world):
    world.check_same_bits(s_config(world, PPO), "lag=1")


def test_same_bits_one_encoder_each(world):
    config = s_config(world, PPO, env="catch_parts", shared=False,
                      encoder="[conv 4 3x3 /2 pad 1, max_pool 2x2, residual 2 (relu, conv 4 3x3 pad 1), layer_norm relu, dense 16 tanh]")
    world.check_same_bits(config, "lag=0", "normalize.obs=true", "network.hidden=[16]")


def test_same_bits_a2c(world):
    world.check_same_bits(s_config(world, A2C))


def test_same_bits_dqn(world):
    world.check_same_bits(s_config(world, DQN))


def test_same_bits_shifted(world):
    """The picture of each row goes by a shift of its own, whoever computes it; the paddle beside it stays."""
    config = s_config(world, SHIFTED, env="catch_parts", count=1024)
    sets = ("env.stack=2", "env.stack_pad=zero", "normalize.obs=true", "algorithm.learning_starts=256")
    shifted = world.check_same_bits(config, *sets)
    plain = world.train(config, *sets, "algorithm.random_shift=0", seed=3)
    check(plain["weights_sha256"] != shifted["weights_sha256"], "nothing was shifted")


def test_same_bits_sac(world):
    """Stacked frames of bytes, an encoder with a bit of everything; of the target critics, too."""
    encoder = "[conv 4 3x3 /2 pad 1, max_pool 2x2, residual 2 (relu, conv 4 3x3 pad 1), layer_norm relu, dense 16 tanh]"
    world.check_same_bits(s_slide(world, SAC, encoder), "algorithm.batch_size=32", "env.stack=2", "lag=1")


def test_same_bits_td3(world):
    world.check_same_bits(s_slide(world, TD3))


def test_frames(world):
    """As large as Atari's: a batch of bytes, trained where it lies."""
    config = s_config(world, PPO, env="catch_frames", encoder="[conv 4 8x8 /8 relu, dense 16 relu]", count=2048)
    world.check_same_bits(config)


def test_disturbed_ppo(world):
    world.check_disturbed(s_config(world, PPO))


def test_disturbed_dqn(world):
    world.check_disturbed(s_config(world, SHIFTED))


def test_disturbed_sac(world):
    world.check_disturbed(s_slide(world, SAC))


def test_resumed(world):
    config = s_config(world, PPO)
    first = world.train(config, "stop.env_steps=2048", seed=7)
    second = world.resume(first["run_dir"], "stop.env_steps=4096")
    whole = world.train(config, "stop.env_steps=4096", seed=7)
    equal(second["weights_sha256"], whole["weights_sha256"], "weights")


def s_refused(world, config, text, *sets):
    done = world.tutti("check", config, *[word for one in sets for word in ("--set", one)])
    equal(done.returncode, 78, done.stdout + done.stderr)
    check(text in done.stderr, f"{text!r} is not in {done.stderr!r}")


def test_what_check_says(world):
    config = s_config(world, PPO, env="catch_parts", encoder="minatar")
    text = world.tutti("check", config).stdout
    for line in ("hidden: [] ", "default with network.encoder", "encoder: minatar",
                 "# encoder 10 x 10 x 1, obs.picture",
                 "# conv 16 3x3 relu 8 x 8 x 16 160 parameters 18 kFLOP",
                 "# dense 128 relu 128 131,200 parameters 262 kFLOP", "# concat paddle 138",
                 "# actor encoder -> 3: 417 parameters"):
        check(" ".join(line.split()) in " ".join(text.split()), f"{line!r} is not in {text}")
    said = json.loads(world.tutti("check", config, "--output", "json").stdout)
    equal(said["comes_to"]["encoder"][0],
          {"layer": "conv 16 3x3 relu", "shape": [8, 8, 16], "parameters": 160, "flop": 2 * 64 * 16 * 9}, "a layer")
    frames = world.tutti("check", s_config(world, PPO, env="catch_frames", encoder="nature")).stdout
    check("84 x 84 x 1, obs, divided by 255" in frames and "7 x 7 x 64" in frames, frames)
    slide = world.tutti("check", s_slide(world, SAC), "--set", "network.activation=relu").stdout
    for line in ("actor_encoder 10 x 10 x 2", "critics_encoder 10 x 10 x 2", "# actor actor_encoder -> 64 relu -> 64 relu -> 2 (1 means, as many",
                 "# q1 critics_encoder + 1 of an action -> 64 relu -> 64 relu -> 1", "hidden: [64, 64] "):
        check(" ".join(line.split()) in " ".join(slide.split()), f"{line!r} is not in {slide}")
    said = json.loads(world.tutti("check", s_slide(world, SAC), "--output", "json").stdout)
    equal(said["comes_to"]["flop_act"], 2 * (64 * 4 * 18 + 256 * 32 + 32 * 64 + 64 * 64 + 64 * 2), "of the actor and its encoder alone")
    s_refused(world, s_slide(world, SAC, "minatar"), "network.hidden: sac's critics need a layer at least", "network.hidden=[]")
    s_refused(world, s_slide(world, SAC), "network.encoder: ", "network.encoder=[conv 8 3x3, conv 8 12x12]")
    s_refused(world, config, "layer 1: 'natur' is no layer; did you mean 'nature'?", "network.encoder=natur")
    s_refused(world, config, "network.picture: 'paddle' is no picture", "network.picture=paddle")
    s_refused(world, config, "network.encoder: ", "network.encoder=[conv 8 3x3, conv 8 12x12]")
    s_refused(world, world.config("env: CartPole-v1\nnetwork:\n  encoder: nature\n", name="flat.yaml"),
              "flat.yaml:3:3: network.encoder: no picture of bytes")


main(test_by_default, test_ppo_learns, test_a2c_learns, test_dqn_learns, test_sac_learns, test_a_vector_behind_the_picture, test_same_bits_ppo,
     test_same_bits_one_encoder_each, test_same_bits_a2c, test_same_bits_dqn, test_same_bits_shifted, test_same_bits_sac, test_same_bits_td3, test_frames,
     test_disturbed_ppo, test_disturbed_dqn, test_disturbed_sac,
     test_resumed, test_what_check_says)
