#!/usr/bin/env python3
"""Whole runs on a simulated card: the weights of the CPU, to the bit, for each algorithm, with an encoder, whoever learns, and whoever fails.
TT_TEST_CARD=cuda: on this machine's, without what is simulated to fail (tests/gpu/run)."""

import glob
import json
import os
import re
import sys

sys.dont_write_bytecode = True
from rig import BATCH, ENDLESS, PATIENT, check, equal, main, wait_for

CARD = os.environ.get("TT_TEST_CARD", "cuda-sim")
PLUGINS = os.path.join(os.environ["TT_BUILD_DIR"], "tests", "collector", "plugins")
PPO = "{name: ppo, epochs: 2, minibatch_size: 64}"
A2C = "{name: a2c}"
DQN = "{name: dqn, double: true, dueling: true, learning_starts: 128, train_every: 32}\nreplay: {capacity: 1k, prioritized: true}"


SAC = "{name: sac, batch_size: 40, learning_starts: 128, train_every: 32}\nreplay: {capacity: 1k}"


TD3 = SAC.replace("sac", "td3")


def s_logs(run_dir, role="learner"):
    return "".join(open(path, encoding="utf-8").read() for path in glob.glob(os.path.join(run_dir, "logs", f"{role}*")))


def s_check(world, env, algorithm, network, *sets):
    text = (f"env: {env}\nnum_envs: 8\nnum_steps: 16\nalgorithm: {algorithm}\nnetwork: {network}\nlearner: {{shards: 4}}\n"
            "stop: {env_steps: 384}\n")
    config = world.config(text)
    cpu, card = (world.train_together(config, *sets, f"learner.device={device}", seed=3) for device in ("cpu", CARD))
    for key in ("weights_sha256", "episodes", "return_mean"):
        equal(card[key], cpu[key], f"{key} of {env}, {algorithm}, {' '.join(sets)}")
    for path in glob.glob(os.path.join(card["run_dir"], "logs", "learner*")):
        log = open(path, encoding="utf-8").read()
        check(f"{CARD}:0" in log, f"{path} does not say that it computes on {CARD}: {log}")


def test_ppo(world):
    s_check(world, "CartPole-v1", PPO, "{hidden: [16, 16]}")


def test_ppo_box(world):
    s_check(world, "Pendulum-v1", PPO, "{hidden: [16], shared: true}")
    s_check(world, "Pendulum-v1", PPO, "{hidden: [16, 16]}", "algorithm.state_std=true")


def test_a2c(world):
    s_check(world, "CartPole-v1", A2C, "{hidden: [16, 16]}")
    s_check(world, "CartPole-v1", "{name: impala}", "{hidden: [16, 16]}")


def test_dqn(world):
    s_check(world, "CartPole-v1", DQN, "{hidden: [16, 16]}")
    s_check(world, "CartPole-v1", DQN.replace("dueling: true", "quantiles: 5"), "{hidden: [16, 16]}")
    s_check(world, "CartPole-v1", DQN.replace("dueling: true", "atoms: 5"), "{hidden: [16, 16]}")
    s_check(world, "CartPole-v1", DQN.replace("dueling: true", "dueling: true, atoms: 6, noisy: true"), "{hidden: [16, 16]}", "collector.device=" + CARD)


def test_dqn_remembers(world):
    """Sequences of a replay whose frames are on the card; what is known of them comes from the host."""
    few = DQN.replace("double: true", "double: true, batch_size: 8, sequence_length: 9, burn_in: 5, n_step: 2, rescale: 0.001")
    s_check(world, "CartPoleNoVel-v1", few, "{rnn: lstm, rnn_size: 9, hidden: [12]}", "normalize.obs=true")
    s_check(world, "CartPoleNoVel-v1", few.replace("dueling: true", "quantiles: 3"), "{rnn: gru, rnn_size: 8, hidden: []}", "learner.replicas=2", "replay.memory=host")


def test_sac(world):
    """Each shard's last block is a short one, and so is the vector of the observation; what is drawn is drawn on the card."""
    s_check(world, "Pendulum-v1", SAC, "{hidden: [16, 24]}")
    s_check(world, "MountainCarContinuous-v0", SAC, "{hidden: [17], activation: relu}", "learner.replicas=2", "normalize.obs=true")


def test_td3(world):
    s_check(world, "Pendulum-v1", TD3, "{hidden: [16, 24]}")
    s_check(world, "MountainCarContinuous-v0", TD3, "{hidden: [17], activation: relu}", "learner.replicas=2", "normalize.obs=true")


def test_encoder(world):
    s_check(world, f"{PLUGINS}/catch.so", PPO, "{encoder: [conv 4 3x3 pad 1, max_pool 2x2, layer_norm, dense 8 relu]}")


def test_pictures_twin(world):
    """Critics read what their encoder gives beside an action; what is drawn goes back through them, and not to what they see by."""
    env = f"{{id: {PLUGINS}/catch_slide.so, stack: 2}}"
    network = "{encoder: [conv 4 3x3 pad 1, max_pool 2x2, layer_norm, dense 11 relu], hidden: [16]}"
    s_check(world, env, SAC.replace("sac,", "sac, random_shift: 2,"), network)
    s_check(world, env, TD3, network, "learner.replicas=2", "replay.memory=host")


def test_stack(world):
    """Frames go to the card once, and rows are made of them there."""
    s_check(world, "{id: CartPole-v1, stack: 3}", PPO, "{hidden: [16]}", "normalize.obs=true")
    s_check(world, "{id: CartPole-v1, stack: 3, stack_pad: zero}", DQN, "{hidden: [16]}")


def s_frames(summary):
    """What its learners say of where a replay's frames are."""
    return [line.split(": ", 1)[1] for line in s_logs(summary["run_dir"]).splitlines() if " replay: frames " in line]


def test_replay_memory(world):
    """Frames that stay on the card, and rows that are made and normalised there: the weights of rows that come from the host."""
    text = ("env: {id: CartPole-v1, stack: 2, stack_pad: zero}\nnum_envs: 8\nnum_steps: 16\nnetwork: {hidden: [16]}\nlearner: {shards: 4}\n"
            "normalize: {obs: true}\nstop: {env_steps: 512}\n"
            f"algorithm: {DQN.replace('1k', '300')}\n")
    config = world.config(text)
    cpu = world.train(config, seed=3)
    check(not s_frames(cpu), s_frames(cpu))
    for memory, there in (("auto", True), ("both", True), ("host", False)):
        card = world.train(config, f"learner.device={CARD}", f"replay.memory={memory}", seed=3)
        equal(card["weights_sha256"], cpu["weights_sha256"], f"weights of {CARD}, replay.memory={memory}")
        said = s_frames(card)
        check(len(said) == there and all(f"frames are in the memory of {CARD}:0" in line for line in said), f"replay.memory={memory}: {said}")


def test_random_shift(world):
    """Pictures that are shifted on the host, and where rows are made: as learners on a CPU have them."""
    text = (f"env: {{id: {PLUGINS}/catch_parts.so, stack: 2, stack_pad: zero}}\nnum_envs: 8\nnum_steps: 16\nlearner: {{shards: 4}}\n"
            "network: {encoder: [conv 3 3x3 /2 relu, dense 8 relu]}\nnormalize: {obs: true}\nstop: {env_steps: 384}\n"
            "algorithm: {name: dqn, learning_starts: 128, train_every: 32, epsilon_steps: 200, random_shift: 3}\nreplay: {capacity: 1k}\n")
    config = world.config(text)
    cpu = world.train(config, seed=3)
    for memory, there in (("both", True), ("host", False)):
        card = world.train(config, f"learner.device={CARD}", f"replay.memory={memory}", seed=3)
        equal(card["weights_sha256"], cpu["weights_sha256"], f"weights of {CARD}, shifted, replay.memory={memory}")
        equal(len(s_frames(card)), int(there), f"replay.memory={memory}")


def test_recurrent(world):
    """Episodes begin in the middle of sequences; some shards have none; what is carried goes from batch to batch."""
    s_check(world, "CartPoleNoVel-v1", PPO, "{rnn: lstm, rnn_size: 9}")
    s_check(world, "PendulumNoVel-v1", PPO, "{rnn: gru, rnn_size: 8, shared: false, encoder: [dense 6 tanh], hidden: [5]}", "num_steps=32", "lag=1")
    s_check(world, "CartPoleNoVel-v1", A2C, "{rnn: gru, rnn_size: 16}", "learner.replicas=2")
    s_check(world, "CartPoleNoVel-v1", A2C, "{rnn: lstm, rnn_size: 9, shared: false, encoder: [dense 16 tanh, dense 6 tanh], hidden: [5]}",
            "num_envs=3", "num_steps=64", "learner.replicas=2")


def test_two_learners(world):
    s_check(world, "CartPole-v1", PPO, "{hidden: [16, 16]}", "learner.replicas=2", "collector.replicas=2")


def test_two_cards(world):
    """Where several cards are, each learner and each collector has its own, in turn; who names one gets that."""
    two = {"TT_SIMT_DEVICES": "2"}
    config = world.config(f"env: CartPole-v1\nnum_envs: 8\nnum_steps: 16\nalgorithm: {PPO}\nnetwork: {{hidden: [8]}}\n"
                          "learner: {shards: 4}\nstop: {env_steps: 384}\n")
    cpu = world.train(config, seed=3)
    for device, learners, collectors in (("cuda-sim", (0, 1, 0), (0, 1)), ("cuda-sim:1", (1, 1, 1), (1, 1))):
        card = world.train_together(config, f"learner.device={device}", f"collector.device={device}", "learner.replicas=3",
                                    "collector.replicas=2", seed=3, env=two)
        equal(card["weights_sha256"], cpu["weights_sha256"], "weights")
        for role, numbers in (("learner", learners), ("collector", collectors)):
            for index, number in enumerate(numbers):
                check(f"cuda-sim:{number} simulated" in s_logs(card["run_dir"], f"{role}-{index}"), f"{role} {index} of {device}")


ACTING = f"collector.device={CARD}"


def s_check_acting(world, env, algorithm, network, *sets):
    """Collectors on the card, and beside one on the CPU: weights and episodes are those of collectors on the CPU."""
    text = (f"env: {env}\nnum_envs: 8\nnum_steps: 16\nalgorithm: {algorithm}\nnetwork: {network}\nlearner: {{shards: 4}}\n"
            "stop: {env_steps: 384}\n")
    config = world.config(text)
    cpu, card = (world.train(config, *sets, *more, seed=3) for more in ((), (ACTING, "collector.replicas=2")))
    for key in ("weights_sha256", "episodes", "return_mean"):
        equal(card[key], cpu[key], f"{key} of {env}, {algorithm}, {' '.join(sets)}, played on {CARD}")
    check(f"parameters, {CARD}:0" in s_logs(card["run_dir"], "collector"), s_logs(card["run_dir"], "collector"))


def test_collectors_ppo(world):
    s_check_acting(world, "CartPole-v1", PPO, "{hidden: [16, 16]}")
    s_check_acting(world, "Pendulum-v1", PPO, "{hidden: [16], shared: true}", "normalize.obs=true", f"learner.device={CARD}")
    s_check_acting(world, f"{PLUGINS}/catch.so", PPO, "{encoder: [conv 4 3x3 pad 1, max_pool 2x2, layer_norm, dense 8 relu]}")
    s_check_acting(world, "{id: CartPole-v1, stack: 3}", PPO, "{hidden: [16]}", "normalize.obs=true")


def test_collectors_recurrent(world):
    s_check_acting(world, "CartPoleNoVel-v1", PPO, "{rnn: lstm, rnn_size: 9}")
    s_check_acting(world, "PendulumNoVel-v1", PPO, "{rnn: gru, rnn_size: 8, shared: false}", f"learner.device={CARD}")


def test_collectors_twin(world):
    """Critics are asked nothing where they play."""
    for twin in (SAC, TD3):
        s_check_acting(world, "Pendulum-v1", twin, "{hidden: [16, 16]}", f"learner.device={CARD}")


def test_collectors_dqn(world):
    s_check_acting(world, "CartPole-v1", DQN, "{hidden: [16, 16]}")
    s_check_acting(world, "{id: CartPole-v1, stack: 3, stack_pad: zero}", DQN.replace("double: true", "noisy: true"), "{hidden: [16]}")


def s_collector_by_hand(world, wish, *sets, **env):
    """A run with a collector on the CPU, and one that joins by hand with a device of its own: (the run's process, its directory, the other's)."""
    process, run_dir = world.start_run(world.config(), "coordinator.listen=tcp://127.0.0.1:0", *sets, ENDLESS, seed=3)
    endpoint = wait_for(lambda: (world.status(run_dir) or {}).get("listen"), "the endpoint that the run listens on")
    world.await_steps(run_dir, 4 * BATCH, process)
    other = world.start("collector", "--coordinator", endpoint, "--key", os.path.join(run_dir, "key"), env={"TT_DEVICE": wish, **env})
    return process, run_dir, other


def test_a_collector_on_a_card_beside_the_cpu(world):
    process, run_dir, other = s_collector_by_hand(world, CARD, PATIENT)  # who is out for being late does not hear of the end
    wait_for(lambda: len([m for m in world.look(run_dir)["members"] if m["role"] == "collector" and m.get("env_count")]) == 2,
             lambda: f"two collectors that play: {world.look(run_dir)['members']}")
    world.await_steps(run_dir, world.look(run_dir)["env_steps"] + 20 * BATCH, process)
    s_check_without(world, process, run_dir, "played on a CPU and a card")
    code, _, log = world.finish(other)
    equal(code, 0, f"its exit code; {log[-2000:]}")
    check(f"parameters, {CARD}:0" in log, f"it says where it acts: {log}")


def test_a_collectors_card_is_lost(world):
    """It ends and says why; the other plays on, from what the learner has."""
    process, run_dir, other = s_collector_by_hand(world, CARD, TT_SIMT_FAIL="lost:2000")
    code, _, log = world.finish(other)
    equal(code, 74, f"its exit code; {log[-2000:]}")
    check("this process ends; look at dmesg and nvidia-smi" in log, f"what to do is said: {log[-2000:]}")
    s_check_without(world, process, run_dir, "after a collector's card was lost")


def test_no_card_where_a_collector_joins(world):
    process, run_dir, other = s_collector_by_hand(world, CARD, TT_SIMT_DEVICES="0")
    code, _, log = world.finish(other)
    equal(code, 69, f"its exit code; {log[-2000:]}")
    check("no card is visible" in log, f"what to do is said: {log[-2000:]}")
    s_check_without(world, process, run_dir, "after a collector came without a card")


def test_the_collectors_card_is_lost(world):
    """Its controller starts another one, which plays on."""
    env = {"TT_SIMT_FAIL": "lost:4000", "TT_SIMT_ONCE": os.path.join(world.path, "lost")}
    process, run_dir = world.start_run(world.config(), "collector.device=cuda-sim", ENDLESS, seed=3, env=env)
    wait_for(lambda: os.path.exists(env["TT_SIMT_ONCE"]), "the card to be lost")
    wait_for(lambda: "this process ends; look at dmesg" in s_logs(run_dir, "collector"), lambda: s_logs(run_dir, "collector"))
    world.await_steps(run_dir, world.look(run_dir)["env_steps"] + 8 * BATCH, process)
    world.check_same(world.stop(process, run_dir), os.path.join(world.path, "job.yaml"), seed=3, what="of two collectors' lives")


def test_no_card_for_collectors(world):
    """As for learners: the run ends at once, with what to do; auto takes the CPU."""
    config = world.config()
    failed = world.tutti("run", config, "--set", "collector.device=cuda-sim:3", env={"TT_SIMT_DEVICES": "2"})
    equal(failed.returncode, 69, f"exit code; {failed.stderr}")
    check("collector/0: cuda:3: there are 2 cards here, from cuda:0; nvidia-smi -L lists them" in failed.stdout, failed.stdout)
    refused = world.tutti("check", config, "--set", "collector.device=gpu")
    equal(refused.returncode, 78, f"exit code; {refused.stderr}")
    check("collector.device: 'gpu' is no device; there is cpu, cuda, cuda:N and auto" in refused.stderr, refused.stderr)
    small = world.tutti("run", config, "--set", "collector.device=cuda-sim", env={"TT_SIMT_MEMORY": "8192"})
    equal(small.returncode, 74, f"exit code; {small.stderr}")
    check("MiB asked for" in small.stdout and "make the batch" in small.stdout, small.stdout)
    auto = world.train(config, "collector.device=auto", env={"CUDA_VISIBLE_DEVICES": ""})
    check("parameters, cpu" in s_logs(auto["run_dir"], "collector"), s_logs(auto["run_dir"], "collector"))


def test_no_driver_for_collectors(world):
    failed = world.tutti("run", world.config(), "--set", "collector.device=cuda", env={"CUDA_VISIBLE_DEVICES": ""})
    equal(failed.returncode, 69, f"exit code; {failed.stderr}")
    check("or say cpu (learner.device, collector.device)" in failed.stdout, failed.stdout)


def test_eval(world):
    """Of a checkpoint, on a card: the CPU's returns; and what is no device, or not there."""
    run_dir = world.train(world.config(), "stop.env_steps=2048", seed=3)["run_dir"]
    cpu, card = (world.tutti("eval", run_dir, "--episodes", "5", "--output", "json", *more) for more in ((), ("--device", CARD)))
    equal((card.returncode, card.stdout), (0, cpu.stdout), f"eval on {CARD}; {card.stderr}")
    refused = world.tutti("eval", run_dir, "--device", "gpu")
    equal(refused.returncode, 78, f"exit code; {refused.stderr}")
    check("--device: 'gpu' is no device; there is cpu, cuda, cuda:N and auto" in refused.stderr, refused.stderr)
    missing = world.tutti("eval", run_dir, "--device", f"{CARD}:97")
    equal(missing.returncode, 69, f"exit code; {missing.stderr}")
    check("cuda:97: there " in missing.stderr, missing.stderr)


def s_beside(world, *sets, **env):
    """A run with a learner on the CPU, and one on a card that joins by hand: (the run's process, its directory, the other's process)."""
    process, run_dir = world.start_run(world.config(), "coordinator.listen=tcp://127.0.0.1:0", "aggregator.replicas=1", *sets, ENDLESS, seed=3)
    endpoint = wait_for(lambda: (world.status(run_dir) or {}).get("listen"), "the endpoint that the run listens on")
    other = world.start("learner", "--coordinator", endpoint, "--key", os.path.join(run_dir, "key"), env={"TT_DEVICE": CARD, **env})
    return process, run_dir, other


def test_beside_the_cpu(world):
    """Whoever computes a shard, its sums are the same: a card that comes while others learn changes nothing."""
    process, run_dir, other = s_beside(world, PATIENT)
    wait_for(lambda: len([m for m in world.look(run_dir)["members"] if m.get("holds")]) == 2, "two learners with weights")
    world.await_steps(run_dir, world.look(run_dir)["env_steps"] + 20 * BATCH, process)
    summary = world.stop(process, run_dir)
    code, _, log = world.finish(other)
    equal(code, 0, f"its exit code; {log[-2000:]}")
    check(f"{CARD}:0" in log, f"it says where it computes: {log}")
    world.check_same(summary, os.path.join(world.path, "job.yaml"), seed=3, what="on a CPU and a card")


def test_a_replay_beside_the_cpu(world):
    """A learner on a card comes to a run with a replay: what it warms up with goes to the card's memory, the other's is on the host."""
    dqn = DQN.replace("double: true", "epsilon_steps: 5000").replace("capacity: 1k", "capacity: 1k, beta_steps: 8000")
    config = world.config(f"env: CartPole-v1\nnum_envs: 8\nnum_steps: 32\nnetwork: {{hidden: [16]}}\nlearner: {{shards: 4}}\nalgorithm: {dqn}\n")
    process, run_dir = world.start_run(config, "coordinator.listen=tcp://127.0.0.1:0", "aggregator.replicas=1", PATIENT, ENDLESS, seed=3)
    endpoint = wait_for(lambda: (world.status(run_dir) or {}).get("listen"), "the endpoint that the run listens on")
    world.await_steps(run_dir, 8 * BATCH, process)
    other = world.start("learner", "--coordinator", endpoint, "--key", os.path.join(run_dir, "key"), env={"TT_DEVICE": CARD})
    wait_for(lambda: len([m for m in world.look(run_dir)["members"] if m.get("holds")]) == 2, "two learners with weights")
    world.await_steps(run_dir, world.look(run_dir)["env_steps"] + 20 * BATCH, process)
    summary = world.stop(process, run_dir)
    code, _, log = world.finish(other)
    equal(code, 0, f"its exit code; {log[-2000:]}")
    check(f"frames are in the memory of {CARD}:0" in log and not s_frames(summary), f"{log} {s_frames(summary)}")
    world.check_same(summary, config, seed=3, what="with a replay on a CPU and a card")


def s_check_without(world, process, run_dir, what):
    """The run goes on, with the weights of one that nothing happened to."""
    world.await_steps(run_dir, world.look(run_dir)["env_steps"] + 20 * BATCH, process)
    world.check_same(world.stop(process, run_dir), os.path.join(world.path, "job.yaml"), seed=3, what=what)


def test_a_card_that_is_lost(world):
    """Its learner ends and says why; the other goes on."""
    process, run_dir, other = s_beside(world, TT_SIMT_FAIL="lost:2000")
    code, _, log = world.finish(other)
    equal(code, 74, f"its exit code; {log[-2000:]}")
    check("this process ends; look at dmesg and nvidia-smi" in log, f"what to do is said: {log[-2000:]}")
    check("this learner's weights" in log, f"it had weights: {log[-2000:]}")
    s_check_without(world, process, run_dir, "after a card was lost")


def test_no_card_where_a_learner_joins(world):
    process, run_dir, other = s_beside(world, TT_SIMT_DEVICES="0")
    code, _, log = world.finish(other)
    equal(code, 69, f"its exit code; {log[-2000:]}")
    check("no card is visible" in log, f"what to do is said: {log[-2000:]}")
    s_check_without(world, process, run_dir, "after one came without a card")


def test_the_only_card_is_lost(world):
    """As if its learner had been killed: it is started again and goes on from the newest snapshot."""
    env = {"TT_SIMT_FAIL": "lost:4000", "TT_SIMT_ONCE": os.path.join(world.path, "lost")}
    process, run_dir = world.start_run(world.config(), "learner.device=cuda-sim", "checkpoint.every_s=0.1", ENDLESS, seed=3, env=env)
    wait_for(lambda: (world.status(run_dir) or {}).get("rolled_back"), "its next life")
    world.await_steps(run_dir, world.look(run_dir)["env_steps"] + 8 * BATCH, process)
    check("this process ends; look at dmesg" in s_logs(run_dir), s_logs(run_dir))
    world.check_same(world.stop(process, run_dir), os.path.join(world.path, "job.yaml"), seed=3, what="of two lives")


def test_from_a_card_to_the_cpu(world):
    """A run that a card began is ended by a CPU, as if it had been there from the start."""
    config = world.config()
    process, run_dir = world.start_run(config, f"learner.device={CARD}", ENDLESS, seed=3)
    world.await_steps(run_dir, 4 * BATCH, process)
    stopped = world.stop(process, run_dir)
    end = f"stop.env_steps={stopped['env_steps'] + 8 * BATCH}"
    resumed = world.resume(run_dir, "learner.device=cpu", end)
    whole = world.train(config, end, seed=3)
    equal(resumed["weights_sha256"], whole["weights_sha256"], "weights")


def test_no_card(world):
    """A card that is asked for and not there ends the run at once, with what to do; where there may be one, the CPU does it."""
    config = world.config()
    failed = world.tutti("run", config, "--set", "learner.device=cuda-sim:3", env={"TT_SIMT_DEVICES": "2"})
    equal(failed.returncode, 69, f"exit code; {failed.stderr}")
    check("there are 2 cards here, from cuda:0; nvidia-smi -L lists them" in failed.stdout, failed.stdout)
    refused = world.tutti("check", config, "--set", "learner.device=gpu")
    equal(refused.returncode, 78, f"exit code; {refused.stderr}")
    check("learner.device: 'gpu' is no device; there is cpu, cuda, cuda:N and auto" in refused.stderr, refused.stderr)
    for sets, words in ((("learner.device=cuda-sim:3",), "learner.device: not on this machine: "),
                        (("collector.device=cuda-sim:3",), "collector.device: not on this machine: "),
                        (("learner.device=auto", "learner.precision=tf32"), "learner.precision: not on this machine: "), (("learner.device=cuda-sim:1",), "")):
        args = ["check", config, *(word for key in sets for word in ("--set", key))]
        for args in (args, [*args, "--output", "json"]):
            done = world.tutti(*args, env={"TT_SIMT_DEVICES": "2", "CUDA_VISIBLE_DEVICES": ""})
            equal(done.returncode, 0, f"{args}: {done.stderr}")
            equal((done.stderr.count("tutti check: note: "), words in done.stderr), (int(bool(words)), True), f"{args}: {done.stderr}")
        notes = json.loads(done.stdout)["notes"]
        equal((len(notes), all(note.startswith(words) for note in notes)), (int(bool(words)), True), f"{args}: {notes}")
    small = world.tutti("run", config, "--set", "learner.device=cuda-sim", env={"TT_SIMT_MEMORY": "65536"})
    equal(small.returncode, 74, f"exit code; {small.stderr}")
    check(re.search(r"\d+ MiB asked for, \d+ of \d+ MiB free", small.stdout) and "make the batch" in small.stdout, small.stdout)
    auto = world.train(config, "learner.device=auto", env={"CUDA_VISIBLE_DEVICES": ""})
    check(re.search("auto is the CPU here: .*(driver|card|tutti-cuda.so)", s_logs(auto["run_dir"])), s_logs(auto["run_dir"]))


def test_a_card_of_another_architecture(world):
    """Found when it is opened, and not in the first minibatch."""
    config, env = world.config(), {"TT_SIMT_FAIL": "image:1"}
    words = "tutti-cuda.so was not built for this card's architecture: configure it with -DTT_CUDA_ARCHITECTURES=native"
    failed = world.tutti("run", config, "--set", "learner.device=cuda-sim", env=env)
    equal(failed.returncode, 69, f"exit code; {failed.stderr}")
    check("cuda:0: trying it: no kernel image is available" in failed.stdout and words in failed.stdout, failed.stdout)
    noted = world.tutti("check", config, "--set", "learner.device=cuda-sim", env=env)
    equal((noted.returncode, words in noted.stderr), (0, True), noted.stderr)


def test_a_driver_that_is_too_old(world):
    failed = world.tutti("run", world.config(), "--set", "learner.device=cuda-sim", env={"TT_SIMT_DEVICES": "-1"})
    equal(failed.returncode, 69, f"exit code; {failed.stderr}")
    check("CUDA driver version is insufficient for CUDA runtime version; there is no NVIDIA driver here, or one too old for this build: update "
          "the driver, or say cpu (learner.device, collector.device)" in failed.stdout, failed.stdout)


def test_no_room_for_a_replay(world):
    """Asked for, it ends the run at once, with what is free; else its frames stay on the host."""
    text = (f"env: CartPole-v1\nnum_envs: 8\nnum_steps: 16\nnetwork: {{hidden: [16]}}\nalgorithm: {DQN.replace('1k', '1M')}\n"
            "learner: {device: cuda-sim}\nstop: {env_steps: 384}\n")
    config, env = world.config(text), {"TT_SIMT_MEMORY": str(16 << 20)}
    failed = world.tutti("run", config, "--set", "replay.memory=both", env=env)
    equal(failed.returncode, 69, f"exit code; {failed.stderr}")
    check("learner/0: replay.memory is both: " in failed.stdout and "MiB asked for" in failed.stdout, failed.stdout)
    said = s_frames(world.train(config, env=env))
    check(len(said) == 1 and "stay in the host's memory: on cuda-sim:0" in said[0] and "take 18.9 MiB, more than half of the 16.0 MiB" in said[0], said)


def test_no_driver(world):
    """The real library on a machine without a card."""
    failed = world.tutti("run", world.config(), "--set", "learner.device=cuda", env={"CUDA_VISIBLE_DEVICES": ""})
    equal(failed.returncode, 69, f"exit code; {failed.stderr}")
    check("or say cpu (learner.device" in failed.stdout, failed.stdout)


def test_precision(world):
    """Other weights than the CPU's, and the same ones however shards are split, with graphs and without. On a real card networks as small as
    these are exact (tests/gpu/run has larger ones)."""
    for env, network in (("CartPole-v1", "{hidden: [64, 64]}"), (f"{PLUGINS}/catch.so", "{encoder: [conv 8 2x2, conv 8 3x3 pad 1, dense 32 relu]}"),
                         ("CartPoleNoVel-v1", "{encoder: [dense 32 tanh], rnn: lstm, rnn_size: 32}")):
        config = world.config(f"env: {env}\nnum_envs: 8\nnum_steps: 32\nalgorithm: {{name: ppo, epochs: 2, minibatch_size: 128}}\n"
                              f"network: {network}\nlearner: {{shards: 4}}\nstop: {{env_steps: 768}}\n")
        exact = world.train(config, seed=3)
        for precision in ("tf32", "bf16"):
            fast = (f"learner.device={CARD}", f"learner.precision={precision}")
            one = world.train(config, *fast, seed=3)
            check(one["weights_sha256"] != exact["weights_sha256"], f"{precision}, {env}: nothing was rounded")
            check(f", {precision} by cuBLASLt " in s_logs(one["run_dir"]), s_logs(one["run_dir"]))
            for what, two in (("two learners", world.train(config, *fast, "learner.replicas=2", seed=3)),
                              ("no graphs", world.train(config, *fast, seed=3, env={"TT_CUDA_GRAPHS": "off"}))):
                equal(two["weights_sha256"], one["weights_sha256"], f"weights, {precision}, {env}, {what}")


def test_precision_refused(world):
    config = world.config()
    for sets, code, words in ((("learner.precision=tf32",), 78, "learner.precision: tf32 wants a card, and learner.device is cpu"),
                              (("learner.precision=half", f"learner.device={CARD}"), 78, "learner.precision: 'half' is not one of exact, tf32, bf16")):
        refused = world.tutti("check", config, *(word for key in sets for word in ("--set", key)))
        equal(refused.returncode, code, f"exit code; {refused.stderr}")
        check(words in refused.stderr, refused.stderr)
    auto = ("--set", "learner.device=auto", "--set", "learner.precision=bf16")
    failed = world.tutti("run", config, *auto, env={"CUDA_VISIBLE_DEVICES": ""})
    equal(failed.returncode, 69, f"exit code; {failed.stderr}")
    check("it can only compute exactly; bf16 wants a card" in failed.stdout, failed.stdout)
    missing = world.tutti("run", config, "--set", f"learner.device={CARD}", "--set", "learner.precision=tf32", env={"TT_SIMT_LT": "missing"})
    equal(missing.returncode, 69, f"exit code; {missing.stderr}")
    check("there is no cuBLASLt" in missing.stdout, missing.stdout)


def test_from_precision_to_exact(world):
    """A run whose card is gone goes on without it."""
    process, run_dir = world.start_run(world.config(), f"learner.device={CARD}", "learner.precision=tf32", ENDLESS, seed=3)
    world.await_steps(run_dir, 4 * BATCH, process)
    stopped = world.stop(process, run_dir)
    end = f"stop.env_steps={stopped['env_steps'] + 4 * BATCH}"
    kept = world.tutti("resume", run_dir, "--set", "learner.device=cpu", "--set", end)
    check("learner.precision" in kept.stderr, f"it says that the run's precision wants a card: {kept.stderr}")
    world.resume(run_dir, "learner.device=cpu", "learner.precision=exact", end)


WHOLE = (test_ppo, test_ppo_box, test_a2c, test_dqn, test_dqn_remembers, test_sac, test_td3, test_encoder, test_pictures_twin, test_stack, test_replay_memory, test_random_shift, test_recurrent, test_two_learners, test_beside_the_cpu,
         test_a_replay_beside_the_cpu,
         test_from_a_card_to_the_cpu, test_collectors_ppo, test_collectors_recurrent, test_collectors_dqn, test_collectors_twin, test_a_collector_on_a_card_beside_the_cpu, test_eval)
FAILING = (test_two_cards, test_a_card_that_is_lost, test_no_card_where_a_learner_joins, test_the_only_card_is_lost, test_no_card, test_a_card_of_another_architecture, test_a_driver_that_is_too_old, test_no_room_for_a_replay, test_no_driver, test_precision, test_from_precision_to_exact,
           test_precision_refused,
           test_a_collectors_card_is_lost, test_no_card_where_a_collector_joins, test_the_collectors_card_is_lost, test_no_card_for_collectors,
           test_no_driver_for_collectors)
main(*WHOLE, *(FAILING if CARD == "cuda-sim" else ()))
