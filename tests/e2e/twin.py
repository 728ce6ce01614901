#!/usr/bin/env python3
"""Algorithms with an actor and two critics, SAC and TD3, keep every promise: the same bits for any number of collectors, learners and threads and
for any processor, through scaling, kills and a resume; they learn; and what they cannot do is said before it starts."""

import json
import os
import signal
import sys

sys.dont_write_bytecode = True
from rig import ENDLESS, SANITIZED, check, equal, main, steps, supported, wait_for

JOB = """\
env: Pendulum-v1
num_envs: 8
num_steps: 32
algorithm:
  name: %s
  batch_size: 32
  learning_starts: 700
  train_every: 32
  n_step: 2
replay: {capacity: 4000}
network: {hidden: [32, 16], activation: relu}
learner: {shards: 4}
"""
NAMES = ("sac", "td3")

KEYS = ("weights_sha256", "env_steps", "updates", "episodes", "return_mean")
MANY = ["collector.replicas=2", "learner.replicas=2"]


def s_config(world, name, count=8_000):
    return world.config(JOB % name + f"stop: {{env_steps: {max(steps(count), 1536)}}}\n", name=f"{name}-{count}.yaml")


def s_same(world, first, config, *sets, **options):
    other = world.train(config, *sets, seed=7, **options)
    for key in KEYS:
        equal(other[key], first[key], f"{key} of {config} with {sets} {options}")


# What changes what is learned, each by itself.
MATTERS = {"sac": (["algorithm.tune_entropy=false", "algorithm.entropy_coef=0.2"],),
           "td3": (["algorithm.exploration_noise=0.2"], ["algorithm.target_noise=0"], ["algorithm.target_noise_clip=0.1"],
                   ["algorithm.policy_delay=1"])}


def s_test_same_bits(world, name, lags):
    """The critics' steps and the actor's, whose numbers are drawn anew in each of them."""
    config = s_config(world, name)
    for lag in lags:
        first = world.train(config, f"lag={lag}", seed=7)
        s_same(world, first, config, f"lag={lag}", *MANY)
        s_same(world, first, config, f"lag={lag}", "collector.replicas=3", "learner.replicas=4")
        s_same(world, first, config, f"lag={lag}", "learner.threads=2")
    for cpu, flag in (("portable", None), ("avx2", "avx2"), ("avx512", "avx512f")):
        if flag and not supported(flag) or SANITIZED and not flag:
            print(f"        no {cpu} here, or too slow: left out", flush=True)
            continue
        s_same(world, first, config, "lag=1", env={"TT_CPU": cpu})
    s_same(world, first, config, "lag=1", *MANY, env={"TT_DEVICE": "cpu-strict"})
    check(world.train(config, "lag=1", seed=8)["weights_sha256"] != first["weights_sha256"], "two seeds gave the same weights")
    for sets in MATTERS[name]:
        check(world.train(config, "lag=1", *sets, seed=7)["weights_sha256"] != first["weights_sha256"], f"{sets} changes nothing")


def test_same_bits_with_sac(world):
    s_test_same_bits(world, "sac", (0, 1))


def test_same_bits_with_td3(world):
    s_test_same_bits(world, "td3", (1,))


def s_test_killed(world, name, victims):
    """Learners die between the critics' step and the actor's as well as anywhere."""
    config = s_config(world, name)
    process, run_dir = world.start_run(config, *MANY, "lag=1", ENDLESS, seed=5)
    wanted = 1
    for role, index in victims:
        status = world.await_steps(run_dir, wanted, process)
        pid = world.replica(role, index)
        os.kill(pid, signal.SIGKILL)
        wait_for(lambda: world.replica(role, index) != pid, f"another process of {role}/{index}")
        wanted = status["env_steps"] + steps(3_000)
    world.await_steps(run_dir, wanted + steps(3_000), process)
    world.await_ready(run_dir)
    summary = world.stop(process, run_dir)
    world.check_same(summary, config, *MANY, "lag=1", seed=5, what="after kills")
    equal([summary["transitions"][key] for key in ("duplicated", "lost")], [0, 0], "duplicated, lost")


def test_killed_with_sac(world):
    s_test_killed(world, "sac", (("learner", 0), ("collector", 1), ("learner", 1), ("aggregator", 0), ("coordinator", 0)))


def test_killed_with_td3(world):
    s_test_killed(world, "td3", (("collector", 1), ("learner", 0), ("coordinator", 0)))


def s_test_scaled(world, name):
    config = s_config(world, name)
    process, run_dir = world.start_run(config, "lag=1", ENDLESS, seed=3)
    wanted = steps(2_000)
    for collectors, learners in ((2, 3), (1, 1), (3, 4)):
        status = world.await_steps(run_dir, wanted, process)
        equal(world.tutti("scale", run_dir, f"collector={collectors}", f"learner={learners}").returncode, 0, "scale")
        world.await_ready(run_dir, collectors, learners)
        wanted = status["env_steps"] + steps(3_000)
    world.await_steps(run_dir, wanted, process)
    summary = world.stop(process, run_dir)
    world.check_same(summary, config, "lag=1", seed=3, what="after scaling")


def test_scaled_with_sac(world):
    s_test_scaled(world, "sac")


def test_scaled_with_td3(world):
    s_test_scaled(world, "td3")


# What a resumed run may be given anew, and what it may not.
GIVEN = {"sac": ["algorithm.learning_rate=1e-4", "algorithm.tau=0.01"],
         "td3": ["algorithm.exploration_noise=0.3", "algorithm.target_noise=0.1", "algorithm.target_noise_clip=0.2"]}
FIXED = {"sac": "algorithm.gamma=0.9", "td3": "algorithm.policy_delay=3"}


def s_test_resumed(world, name):
    """Both optimisers, the targets and SAC's weight of the entropy come back; another rate is a feature, other turns or returns are not."""
    config = s_config(world, name)
    process, run_dir = world.start_run(config, ENDLESS, seed=4)
    world.await_steps(run_dir, steps(3_000), process)
    stopped = world.stop(process, run_dir)
    more = stopped["env_steps"] + 256 * 12
    resumed = world.resume(run_dir, f"stop.env_steps={more}")
    whole = world.train(config, f"stop.env_steps={more}", seed=4)
    for key in KEYS:
        equal(resumed[key], whole[key], f"{key} after a resume")
    world.resume(run_dir, f"stop.env_steps={more + 1024}", *GIVEN[name])
    refused = world.tutti("resume", run_dir, "--set", f"stop.env_steps={more + 4096}", "--set", FIXED[name])
    check(refused.returncode == 78 and FIXED[name].split("=")[0] in refused.stderr, refused.stderr)


def test_resumed_with_sac(world):
    s_test_resumed(world, "sac")


def test_resumed_with_td3(world):
    s_test_resumed(world, "td3")


LEARNS = """\
env: Pendulum-v1
num_envs: 1
num_steps: 8
network: {hidden: [64, 64], activation: relu, init: uniform}
algorithm: {name: %s, learning_rate: 1e-3, batch_size: 64, learning_starts: %d, gamma: %g}
stop: {env_steps: %s}
"""


def test_learns(world):
    """From nothing to a pendulum that stands; the same bits everywhere, so no luck is in it."""
    if SANITIZED:
        print("        too slow here: left out", flush=True)
        return
    for name, starts, gamma, count in (("sac", 100, 0.99, "8k"), ("td3", 1000, 0.95, "10k")):
        run = world.train(world.config(LEARNS % (name, starts, gamma, count), name=f"learns-{name}.yaml"), seed=1)
        done = world.tutti("eval", run["run_dir"], "--episodes", 50, "--output", "json")
        equal(done.returncode, 0, f"tutti eval: {done.stderr}")
        mean = json.loads(done.stdout)["return_mean"]
        check(mean >= -200, f"greedy return {mean} by {name}")


def s_refused(world, name, *words, sets=()):
    done = world.tutti("check", s_config(world, name), *(word for key in sets for word in ("--set", key)))
    equal(done.returncode, 78, f"exit code of a check with {sets}: {done.stderr}")
    for word in words:
        check(word in done.stderr, f"{name}, {sets}: the message does not say {word!r}: {done.stderr}")


def test_refused(world):
    zoo = os.path.join(os.environ["TT_BUILD_DIR"], "tests", "collector", "plugins", "zoo.so")
    for name in NAMES:
        s_refused(world, name, f"algorithm.name: {name}", "there is no box in CartPole-v1's action that could be squashed", sets=["env=CartPole-v1"])
        s_refused(world, name, f"algorithm.name: {name}", "has no bounds that it could be squashed onto", sets=[f"env={zoo}"])
        s_refused(world, name, "network.shared", "trained apart", sets=["network.shared=true"])
        s_refused(world, name, "network.hidden", "a layer at least", sets=["network.hidden=[]"])
        s_refused(world, name, "network.hidden", "a layer at least", sets=["network.encoder=[dense 8 relu]", "network.hidden=[]"])
        s_refused(world, name, "network.shared", "trained apart", sets=["network.encoder=[dense 8 relu]", "network.shared=true"])
        s_refused(world, name, "network.rnn", f"{name} trains networks that remember nothing", sets=["network.rnn=lstm"])
        s_refused(world, name, "normalize.reward", sets=["normalize.reward=true"])
        s_refused(world, name, "algorithm.batch_size", "no multiple of learner.shards", sets=["algorithm.batch_size=33"])
    s_refused(world, "sac", "algorithm.target_entropy", "leave it away", sets=["algorithm.tune_entropy=false", "algorithm.target_entropy=-1"])
    s_refused(world, "td3", "algorithm.train_every", "more than can be counted", sets=["algorithm.train_every=1G", "algorithm.policy_delay=9"])


def test_what_check_says(world):
    q = "3 + 1 of an action -> 32 relu -> 16 relu -> 1"
    for name, actor in (("sac", "3 -> 32 relu -> 16 relu -> 2 (1 means, as many deviations)"), ("td3", "3 -> 32 relu -> 16 relu -> 1 means")):
        text = world.tutti("check", s_config(world, name)).stdout
        for line in (actor, q, "actor, critics: an optimiser each"):
            check(line in text, f"check of {name} does not say {line!r}: {text}")
        check(("with log_alpha" in text) == (name == "sac"), f"log_alpha, with {name}: {text}")
    said = json.loads(world.tutti("check", s_config(world, "td3"), "--set", "algorithm.exploration_noise=0.25", "--output", "json").stdout)["config"]
    equal([said[f"actor.{key}"]["value"] for key in ("kind", "sigma", "squash", "state_std", "random_rows")], ["mean", 0.25, True, False, 700],
          "how collectors of td3 act")


main(test_learns, test_same_bits_with_sac, test_same_bits_with_td3, test_killed_with_sac, test_killed_with_td3, test_scaled_with_sac,
     test_scaled_with_td3, test_resumed_with_sac, test_resumed_with_td3, test_refused, test_what_check_says)
