#!/usr/bin/env python3
"""Several segments a range: the same bits whatever the envs of a segment, for any number of collectors and learners, through kills and scaling,
at every lag, on policy and from a replay, with stacks; and a batch that is too large for one segment is trained on."""

import json
import os
import signal
import sys

sys.dont_write_bytecode = True
from rig import ENDLESS, check, equal, main, steps, wait_for

PPO = "{name: ppo, learning_rate: 1e-3, epochs: 2, minibatch_size: 64}"
DQN = ("{name: dqn, batch_size: 32, learning_starts: 700, train_every: 32, gradient_steps: 1, epsilon_steps: 5000, target_every: 640, "
       "n_step: 3, double: true}")
REPLAY = "replay: {capacity: 4000, prioritized: true, beta_steps: 8000}\n"
ENVS = (1, 3)  # of a segment


def s_config(world, env, algorithm, count=6000):
    text = (f"env: {env}\nnum_envs: 8\nnum_steps: 32\nalgorithm: {algorithm}\nlearner: {{shards: 4}}\n"
            f"{REPLAY if 'dqn' in algorithm else ''}stop: {{env_steps: {max(steps(count), 1024)}}}\n")
    return world.config(text, name="dqn.yaml" if "dqn" in algorithm else "ppo.yaml")


def s_check_same_bits(world, config, *sets):
    whole = world.train(config, *sets, seed=3)
    for envs in ENVS:
        for collectors, learners in ((1, 1), (2, 2)):
            cut = world.train(config, *sets, f"collector.replicas={collectors}", f"learner.replicas={learners}", seed=3,
                              env={"TT_SEGMENT_ENVS": str(envs)})
            for key in ("weights_sha256", "episodes", "return_mean"):
                equal(cut[key], whole[key], f"{key} by segments of {envs} envs, {collectors} collectors, {learners} learners")
            equal([cut["transitions"][key] for key in ("duplicated", "lost")], [0, 0], "duplicated, lost")


def test_same_bits_ppo(world):
    for env, lag in (("{id: CartPole-v1, stack: 3}", 0), ("{id: Pendulum-v1, stack: 4, stack_pad: zero}", 1)):
        s_check_same_bits(world, s_config(world, env, PPO), f"lag={lag}", "normalize.obs=true", "normalize.reward=true")


def test_same_bits_dqn(world):
    for lag in (0, 1):
        s_check_same_bits(world, s_config(world, "{id: CartPole-v1, stack: 3}", DQN), f"lag={lag}")


def test_disturbed(world):
    """Against runs whose ranges are one segment each."""
    for algorithm in (PPO, DQN):
        config = s_config(world, "{id: CartPole-v1, stack: 3}", algorithm)
        world.check_disturbed(config, env={"TT_SEGMENT_ENVS": "2"}, name=f"run-{os.path.basename(config)}")


def test_resumed(world):
    """By segments of other sizes than before, and with a second learner, who begins from what the first one holds."""
    for algorithm in (PPO, DQN):
        config = s_config(world, "{id: CartPole-v1, stack: 3}", algorithm)
        longer = f"stop.env_steps={2 * max(steps(6000), 1024)}"
        first = world.train(config, "checkpoint.every_s=0.05", seed=3, env={"TT_SEGMENT_ENVS": "3"})
        resumed = world.resume(first["run_dir"], longer, "learner.replicas=2", env={"TT_SEGMENT_ENVS": "2"})
        whole = world.train(config, longer, seed=3)
        for key in ("weights_sha256", "env_steps", "updates"):
            equal(resumed[key], whole[key], f"{key} after a resume by other segments")


def test_lag_4(world):
    """Copies differ, and rank 0 says of which segments a batch is made: whoever dies, no transition is trained on twice and none is missing."""
    config = s_config(world, "CartPole-v1", PPO)
    process, run_dir = world.start_run(config, "lag=4", "collector.replicas=2", "learner.replicas=2", ENDLESS, seed=5,
                                       env={"TT_SEGMENT_ENVS": "2"})
    status = world.await_steps(run_dir, steps(1000), process)
    for role, index in (("collector", 1), ("learner", 0)):
        pid = world.replica(role, index)
        os.kill(pid, signal.SIGKILL)
        wait_for(lambda: world.replica(role, index) != pid, f"another process of {role}/{index}")
        status = world.await_steps(run_dir, status["env_steps"] + steps(2000), process)
    equal(world.tutti("scale", run_dir, "collector=3").returncode, 0, "scale")
    world.await_steps(run_dir, status["env_steps"] + steps(2000), process)
    done = world.stop(process, run_dir)
    equal([done["transitions"][key] for key in ("duplicated", "lost")], [0, 0], "duplicated, lost")
    check(done["lag_max"] <= 4, f"lag_max: {done['lag_max']}")


def test_check_large(world):
    """Batches that are no longer too large, and what still is."""
    config = s_config(world, "Pendulum-v1", PPO)
    sizes = ["--set", "num_envs=16384", "--set", "num_steps=2048", "--set", "algorithm.minibatch_size=4096"]
    said = world.tutti("check", config, *sizes, "--output", "json")
    equal(said.returncode, 0, said.stderr)
    comes_to = json.loads(said.stdout)["comes_to"]
    equal(comes_to["batch_segments"], 2, "segments")
    check(comes_to["batch_bytes"] > 512 << 20, f"bytes: {comes_to['batch_bytes']}")
    check("in 2 segments" in world.tutti("check", config, *sizes).stdout, "not a word of the segments")
    config = s_config(world, "CartPole-v1", DQN)
    refused = world.tutti("check", config, "--set", "num_envs=16384", "--set", "num_steps=2048", "--set", "replay.capacity=64M")
    equal(refused.returncode, 78, refused.stdout + refused.stderr)
    check("num_steps: a batch of 16384 envs x 2048 steps has 33554432 transitions" in refused.stderr, refused.stderr)


main(test_same_bits_ppo, test_same_bits_dqn, test_disturbed, test_resumed, test_lag_4, test_check_large)
