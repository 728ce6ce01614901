#!/usr/bin/env python3
"""Every kind of layer, as a config says it, through whole runs: all its arrays are in the checkpoint, each is moved by what is learned,
and the bits do not depend on who plays, who learns and on which device."""

import json
import os
import re
import struct
import sys

sys.dont_write_bytecode = True
from rig import check, equal, main

PLUGINS = os.path.join(os.environ["TT_BUILD_DIR"], "tests", "collector", "plugins")
BATCH = 8 * 32  # env steps
PPO = "{name: ppo, learning_rate: 3e-3, epochs: 2, minibatch_size: 64, head_gain: 1}"
DQN = "{{name: dqn, learning_rate: 3e-3, batch_size: 32, learning_starts: 128, train_every: 64, gradient_steps: 4, {}}}\nreplay: {{capacity: 4k}}"


def s_config(world, env, algorithm, network):
    env = env if "-v" in env else f"{PLUGINS}/{env}.so"
    text = (f"env: {env}\nnum_envs: 8\nnum_steps: 32\nalgorithm: {algorithm}\nnetwork: {network}\nlearner: {{shards: 4}}\n"
            f"stop: {{env_steps: {4 * BATCH}}}\n")
    return world.config(text, name=f"{abs(hash(text))}.yaml")


def s_arrays(run_dir):
    """Bytes of the networks' arrays in the last checkpoint, by name."""
    with open(os.path.join(run_dir, "checkpoints", "final.safetensors"), "rb") as file:
        size, = struct.unpack("<Q", file.read(8))
        header, data = json.loads(file.read(size)), file.read()
    return {name: data[slice(*array["data_offsets"])] for name, array in header.items()
            if re.search(r"\.(weight|bias)(_sigma)?$", name)}


def s_layers(world, env, algorithm, network, *wanted):
    """wanted: what the first arrays are called, in the order of the layers."""
    config = s_config(world, env, algorithm, network)
    early, late = (s_arrays(world.train(config, f"stop.env_steps={batches * BATCH}", seed=3)["run_dir"]) for batches in (2, 4))
    equal(sorted(early), sorted(late), "arrays")
    check(set(wanted) <= set(late), f"no {sorted(set(wanted) - set(late))} among {sorted(late)}")
    still = [name for name in late if early[name] == late[name]]
    equal(still, [], "arrays that two batches have not moved")
    world.check_same_bits(config)


def s_both(name, *whats):
    return [f"{name}.{what}" for what in whats or ("weight", "bias")]


def test_residual(world):
    """Over pictures, and of dense layers that a vector comes to."""
    s_layers(world, "catch", PPO, "{encoder: [conv 4 3x3 pad 1, residual 2 (relu, conv 4 3x3 pad 1), dense 8 relu]}",
             *s_both("encoder.0"), *s_both("encoder.1.1"), *s_both("encoder.2.1"), *s_both("encoder.4"))
    s_layers(world, "CartPole-v1", PPO, "{encoder: [dense 16 tanh, residual (dense 8 tanh, residual (dense 8 tanh), dense 16)]}",
             *s_both("encoder.0"), *s_both("encoder.2.0"), *s_both("encoder.2.2.0"), *s_both("encoder.2.3"))


def test_concat(world):
    s_layers(world, "catch_parts", PPO, "{encoder: [conv 2 3x3 relu, concat paddle, dense 8 relu, concat paddle], hidden: [8]}",
             *s_both("encoder.0"), *s_both("encoder.4"), *s_both("trunk.0"))


def test_layer_norm(world):
    """Over a picture, over a vector, and as a part of a residual."""
    s_layers(world, "catch", PPO, "{encoder: [conv 2 3x3, layer_norm relu, dense 8, layer_norm tanh, residual (layer_norm)]}",
             *s_both("encoder.0"), *s_both("encoder.1"), *s_both("encoder.4"), *s_both("encoder.5"), *s_both("encoder.7.0"))


def test_pooling(world):
    s_layers(world, "catch", PPO, "{encoder: [avg_pool 2x2 pad 1, conv 3 3x3 tanh, max_pool 3x2 /2, avg_pool 2x2, dense 8]}",
             *s_both("encoder.1"), *s_both("encoder.6"))


def test_embed(world):
    """Of several elements, and of one; one encoder, and one for each."""
    network = "{encoder: [embed pair.0 3, embed choice 4, layer_norm, dense 8 tanh, concat near]}"
    s_layers(world, "zoo", PPO, network, "encoder.0.weight", "encoder.1.weight", *s_both("encoder.2"), *s_both("encoder.3"))
    separate = "{encoder: [concat near, embed choice 2, dense 6 tanh], shared: false}"
    s_layers(world, "zoo", "{name: a2c, learning_rate: 1e-3, head_gain: 1}", separate,
             *(f"{tower}_encoder.1.weight" for tower in ("actor", "critic")))


def test_shared_trunk(world):
    s_layers(world, "CartPole-v1", PPO, "{hidden: [16, 8], shared: true}", *s_both("trunk.0"), *s_both("trunk.2"), *s_both("actor.0"))
    s_layers(world, "catch", PPO, "{encoder: [conv 2 3x3 relu], hidden: [8], shared: true}",
             *s_both("encoder.0"), *s_both("trunk.0"), *s_both("critic.0"))


def test_dueling(world):
    streams = [*s_both("value.0"), *s_both("advantage.0")]
    s_layers(world, "CartPole-v1", DQN.format("dueling: true"), "{hidden: [16, 8]}", *s_both("trunk.0"), *streams)
    s_layers(world, "catch", DQN.format("dueling: true"), "{encoder: [conv 2 3x3 relu, dense 8 relu]}", *s_both("encoder.0"), *streams)


def test_noisy(world):
    both = ("weight", "bias", "weight_sigma", "bias_sigma")
    s_layers(world, "CartPole-v1", DQN.format("noisy: true"), "{hidden: [16], init: uniform}", *s_both("q.0", *both), *s_both("q.2", *both))
    s_layers(world, "catch", DQN.format("dueling: true, noisy: true"), "{encoder: [conv 2 3x3 relu], hidden: [8], init: uniform}",
             *s_both("encoder.0"), *s_both("value.0", *both), *s_both("advantage.2", *both))


main(test_residual, test_concat, test_layer_norm, test_pooling, test_embed, test_shared_trunk, test_dueling, test_noisy)
