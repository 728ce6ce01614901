#!/usr/bin/env python3
"""Policies that remember (network.rnn), through whole runs: the bits are those of the config and the seed, whoever plays and learns, whoever
dies and over lives, since what is carried goes wherever its env goes; and what is said of such a run."""

import hashlib
import json
import os
import re
import shutil
import signal
import struct
import sys

sys.dont_write_bytecode = True
from rig import BATCH, ENDLESS, SANITIZED, SOURCE, check, equal, main, newest_update, steps, wait_for

PLUGINS = os.path.join(os.environ["TT_BUILD_DIR"], "tests", "collector", "plugins")
PPO = "{name: ppo, learning_rate: 1e-3, epochs: 2, minibatch_size: 64}"
A2C = "{name: a2c, learning_rate: 1e-3}"
LSTM = "{rnn: lstm, rnn_size: 9}"
GRU_EACH = "{rnn: gru, rnn_size: 17, hidden: [5], shared: false}"
CONFIG, DATA = 78, 65


def s_config(world, env="CartPoleNoVel-v1", algorithm=PPO, network=LSTM, more=""):
    text = (f"env: {env}\nnum_envs: 8\nnum_steps: 32\nalgorithm: {algorithm}\nnetwork: {network}\nlearner: {{shards: 4}}\n"
            f"stop: {{env_steps: {6 * BATCH}}}\n{more}")
    return world.config(text, name=f"job-{hashlib.sha256(text.encode()).hexdigest()[:8]}.yaml")


def s_same(got, wanted, what):
    for key in ("weights_sha256", "updates", "env_steps", "episodes", "return_mean"):
        equal(got[key], wanted[key], f"{key} {what}")
    equal([got["transitions"][key] for key in ("duplicated", "lost")], [0, 0], f"duplicated, lost {what}")


# ---- the same bits -------------------------------------------------------------------------------------------------------


def s_same_bits(world, config, *sets):
    """Whoever plays and learns, however a batch is cut, on whatever processor and device. Returns the summary."""
    alone = world.train(config, *sets, seed=3)
    for more, env in (
        (["collector.replicas=3", "learner.replicas=2"], {"TT_SEGMENT_ENVS": "1"}),
        (["learner.threads=3", "aggregator.replicas=1"], {"TT_CPU": "avx2", "TT_SEGMENT_ENVS": "3"}),
        (["learner.replicas=4"], {"TT_DEVICE": "cpu-strict"}),
        (["collector.replicas=2"], {"TT_CPU": "portable"}),
    ):
        if not (SANITIZED and env.get("TT_CPU") == "portable"):
            s_same(world.train(config, *sets, *more, seed=3, env=env), alone, f"with {more}, {env}")
    return alone


def test_one_memory(world):
    """Shared, and two at once are asked for what one gives: an LSTM that is ignored would pass for any of this."""
    config = s_config(world)
    for lag in (0, 1):
        alone = s_same_bits(world, config, f"lag={lag}")
        for other in ("network.rnn=gru", "network.rnn_size=8", "network.shared=false"):
            check(world.train(config, f"lag={lag}", other, seed=3)["weights_sha256"] != alone["weights_sha256"], f"{other} changes nothing")


def test_a_memory_each(world):
    """Episodes are truncated, rewards and observations scaled, and there is no shuffle."""
    s_same_bits(world, s_config(world, "PendulumNoVel-v1", A2C, GRU_EACH, "normalize: {obs: true, reward: true}\n"), "lag=1")


def test_pictures_dicts_and_masks(world):
    s_same_bits(world, s_config(world, f"{PLUGINS}/zoo.so", PPO,
                                "{rnn: lstm, rnn_size: 9, shared: false, encoder: [embed choice 4, dense 8 tanh, concat near]}"))
    stride = " /6" if SANITIZED else ""  # what a convolution computes of each picture is in tests/nn
    config = s_config(world, f"{{id: {PLUGINS}/catch_frames.so, stack: 2}}", PPO,
                      f"{{rnn: gru, rnn_size: 8, encoder: [conv 2 3x3{stride} relu, dense 4]}}")
    alone = world.train(config, "stop.env_steps=1024", seed=3)
    s_same(world.train(config, "stop.env_steps=1024", "collector.replicas=2", "learner.replicas=2", seed=3), alone, "of pictures")


def test_ends_of_the_range(world):
    """One env, one step; sequences in more than one group, with a short last one; shards without any."""
    config = s_config(world, algorithm="{name: ppo, learning_rate: 1e-3, epochs: 2, minibatches: 1}")
    for sets in (["num_envs=1"], ["num_steps=1", "stop.env_steps=200"], ["num_envs=1", "num_steps=1", "stop.env_steps=40"],
                 ["num_envs=45", "num_steps=3", "learner.shards=1"], ["num_envs=3", "num_steps=7", "learner.shards=32"]):
        few = min(2, int(dict(item.split("=") for item in sets).get("num_envs", 8)))
        alone = world.train(config, *sets, seed=3)
        many = world.train(config, *sets, f"collector.replicas={few}", "learner.threads=2", seed=3, env={"TT_SEGMENT_ENVS": "1"})
        s_same(many, alone, f"of {sets}")


# ---- who dies, and over lives --------------------------------------------------------------------------------------------


def s_disturbed(world, config, lag, env):
    """Every role is killed, collectors and learners come and go between."""
    process, run_dir = world.start_run(config, f"lag={lag}", "collector.replicas=2", "learner.replicas=2", ENDLESS, seed=5, env=env,
                                       name=f"run-{lag}")
    status = world.await_steps(run_dir, steps(1000), process)
    for role, index, counts in (("collector", 1, "collector=4"), ("learner", 0, "learner=4"), ("aggregator", 0, "collector=1"),
                                ("coordinator", 0, "learner=1"), ("collector", 0, "collector=3")):
        pid = world.replica(role, index)
        os.kill(pid, signal.SIGKILL)
        wait_for(lambda: world.replica(role, index) != pid, f"another process of {role}/{index}")
        wait_for(lambda: world.tutti("scale", run_dir, counts).returncode == 0, f"an answer to scale {counts}")
        status = world.await_steps(run_dir, status["env_steps"] + steps(2000), process)
    summary = world.stop(process, run_dir)
    equal([summary["transitions"][key] for key in ("duplicated", "lost")], [0, 0], "duplicated, lost")
    world.check_same(summary, config, f"lag={lag}", seed=5, what=f"after kills and scaling, lag {lag}")


def test_disturbed_lag_0(world):
    s_disturbed(world, s_config(world, "PendulumNoVel-v1", PPO, GRU_EACH), 0, None)


def test_disturbed_lag_1(world):
    s_disturbed(world, s_config(world), 1, {"TT_SEGMENT_ENVS": "1"})


def test_resumed_after_a_power_cut(world):
    """What was carried is in the snapshot, beside the states; whoever goes on cuts the envs anew. Evaluations beside it change nothing."""
    config = s_config(world)
    process, run_dir = world.start_run(config, "checkpoint.every_s=0.1", "eval.every=3000", "eval.episodes=2", ENDLESS, seed=12)
    world.await_steps(run_dir, steps(1000), process)
    world.await_snapshot(run_dir, process)
    world.kill_all(process)
    end = (newest_update(run_dir) + 10) * BATCH
    resumed = world.resume(run_dir, "eval.every=null", f"stop.env_steps={end}", "collector.replicas=3", "learner.replicas=2")
    s_same(resumed, world.train(config, f"stop.env_steps={end}", seed=12), "after a resume")


# ---- what is in snapshots ------------------------------------------------------------------------------------------------


def s_rewrite(path, edit):
    """A checkpoint with other bytes and a checksum that is right."""
    with open(path, "rb") as file:
        size, = struct.unpack("<Q", file.read(8))
        header, data = json.loads(file.read(size)), bytearray(file.read())
    data = edit(header, data)
    header["__metadata__"]["checksum"] = "sha256:" + 64 * "0"
    text = json.dumps(header, separators=(",", ":")).encode()
    whole = bytearray(struct.pack("<Q", len(text)) + text + data)
    at = whole.index(b"sha256:") + len(b"sha256:")
    whole[at:at + 64] = hashlib.sha256(whole).hexdigest().encode()
    with open(path, "wb") as file:
        file.write(whole)


def s_put(at, what):
    """Into the last state of the snapshot, so far from its end: what is carried stands behind what the env itself saved."""
    def edit(header, data):
        end = header["tutti.env_states"]["data_offsets"][1] - at
        data[end:end + len(what)] = what
        return data
    return edit


def s_without_carry(header, data):
    """States as they are of a run that remembers nothing."""
    array = header["tutti.env_states"]
    (begin, end), (envs, size) = array["data_offsets"], array["shape"]
    less = size - 4 * 2 * 9
    keep = b"".join(bytes(data[begin + i * size:begin + i * size + less]) for i in range(envs))
    gone = envs * (size - less)
    for name, other in header.items():
        if name != "__metadata__" and other["data_offsets"][0] >= end:
            other["data_offsets"] = [offset - gone for offset in other["data_offsets"]]
    array.update(shape=[envs, less], data_offsets=[begin, end - gone])
    return data[:begin] + keep + data[end:]


def test_snapshots_of_something_else(world):
    """Damaged, of a run without a memory, with nonsense in it; and none of this is gone on from in silence."""
    whole = world.train(s_config(world), seed=3)["run_dir"]
    longer = f"stop.env_steps={8 * BATCH}"
    for edit, words in ((s_put(4, b"\0\0\xc0\x7f"), "what the policy carries into a saved env is not a number"),
                        (s_without_carry, "another network, algorithm or number of envs")):
        run_dir = shutil.copytree(whole, f"{whole}-{words.split()[-1]}")
        shutil.rmtree(os.path.join(run_dir, "checkpoints"))
        os.mkdir(os.path.join(run_dir, "checkpoints"))
        path = shutil.copy(os.path.join(whole, "checkpoints", "final.safetensors"), os.path.join(run_dir, "checkpoints"))
        s_rewrite(path, edit)
        said = world.resume(run_dir, longer, code=DATA)
        check(words in said["reason"], f"{words}: {said['reason']}")
    run_dir = shutil.copytree(whole, f"{whole}-damaged")
    for name in os.listdir(os.path.join(run_dir, "checkpoints")):
        with open(os.path.join(run_dir, "checkpoints", name), "r+b") as file:
            file.seek(-1000, os.SEEK_END)
            byte = file.read(1)
            file.seek(-1, os.SEEK_CUR)
            file.write(bytes([byte[0] ^ 1]))
    done = world.tutti("resume", run_dir, "--set", longer)
    equal(done.returncode, DATA, f"a flipped bit: {done.stderr}")
    check("damaged: the checksum is not that of these" in done.stderr, done.stderr)


def test_another_memory_is_another_run(world):
    run_dir = world.train(s_config(world), seed=3)["run_dir"]
    for key, was, now in (("network.rnn", "lstm", "gru"), ("network.rnn_size", "9", "10"),
                          ("network.shared", "true", "false"), ("num_steps", "32", "16")):
        done = world.tutti("resume", run_dir, "--set", f"{key}={now}")
        equal(done.returncode, CONFIG, f"{key}={now}: {done.stderr}")
        check(f"--set: {key}: the run has {was}, now it is {now}" in done.stderr, done.stderr)


# ---- what is said ----------------------------------------------------------------------------------------------------------


def test_what_is_refused(world):
    """With the place of what is at fault, and what to do."""
    config = s_config(world)
    for sets, words in (
        ("network.rnn=lstmm", "network.rnn: 'lstmm' is not one of none, lstm, gru; did you mean 'lstm'?"),
        ("network.rn=lstm", "unknown key 'network.rn'; did you mean 'network.rnn'?"),
        ("network.rnn_size=0", "network.rnn_size: '0' is outside 1 .. 65536"),
        ("network.rnn_size=20000", "network.rnn_size: "),
        ("network.rnn_size=4096", "MiB, at most 1024 are possible: lower it, or lag"),
        ("algorithm.minibatch_size=48", "a minibatch is whole envs; nearest that works: 64"),
    ):
        done = world.tutti("check", config, "--set", sets)
        equal(done.returncode, CONFIG, f"{sets}: {done.stderr}")
        check(f"--set: {sets.split('=')[0] if 'unknown' not in words else ''}" in done.stderr and words in done.stderr, f"{sets}: {done.stderr}")
    done = world.tutti("check", config, "--set", "network.rnn_size=2048", "--set", "num_steps=65536", "--set", "learner.threads=4", "--set",
                       "algorithm.minibatch_size=524288")
    equal(done.returncode, CONFIG, done.stderr)
    check("network.rnn_size 2048: 2 sequences of 65536 steps at a time, in each of 4 threads, are 36864 MiB" in done.stderr, done.stderr)
    sac = world.config(f"env: Pendulum-v1\nalgorithm: {{name: sac}}\nreplay: {{capacity: 4k}}\nnetwork: {LSTM}\nstop: {{env_steps: 4k}}\n")
    done = world.tutti("run", sac)
    equal(done.returncode, CONFIG, done.stderr)
    check("job.yaml:4:11: network.rnn: sac trains networks that remember nothing" in done.stderr, done.stderr)


def test_asked_about(world):
    """By everything that reads a run or its weights."""
    summary = world.train(s_config(world, network=GRU_EACH), "eval.every=1000", "eval.episodes=2", seed=3)
    run_dir, model, film = summary["run_dir"], os.path.join(world.path, "model.onnx"), os.path.join(world.path, "film.gif")
    for args in (["eval", run_dir, "--episodes", "3"], ["eval", run_dir, "--render", film], ["export", run_dir, "--onnx", model],
                 ["status", run_dir], ["check", os.path.join(run_dir, "config.yaml")], ["logs", run_dir]):
        done = world.tutti(*args)
        equal(done.returncode, 0, f"{args}: {done.stderr}")
    check(os.path.getsize(model) > 4 * 2 * 17 * 17 and os.path.getsize(film) > 1000, "a model and a film")
    returns = [world.tutti("eval", run_dir, "--episodes", "3", "--output", "json").stdout for _ in range(2)]
    equal(returns[0], returns[1], "two evaluations")
    with open(os.path.join(run_dir, "evaluations.jsonl"), encoding="utf-8") as file:
        check(len(file.readlines()) >= 1, "no evaluation beside training")


def test_environments_that_cannot_be_saved(world):
    """Where they come to another collector, or to another life, an episode begins, and nothing is carried into it."""
    s_unsaved(world, s_config(world, f"{PLUGINS}/unsaved.so"))


def test_sequences_of_environments_that_cannot_be_saved(world):
    """No sequence goes over a place where an env broke."""
    s_unsaved(world, world.config(
        f"env: {PLUGINS}/unsaved.so\nnum_envs: 8\nnum_steps: 32\nnetwork: {{rnn: lstm, rnn_size: 9}}\nlearner: {{shards: 4}}\n"
        "algorithm: {name: dqn, batch_size: 8, sequence_length: 40, burn_in: 9, learning_starts: 600, train_every: 64, epsilon_steps: 2000}\n"
        "replay: {capacity: 2000, prioritized: true, beta_steps: 4000}\n"))


def s_unsaved(world, config):
    process, run_dir = world.start_run(config, "collector.replicas=2", "learner.replicas=2", ENDLESS, seed=5)
    status = world.await_steps(run_dir, steps(1000), process)
    pid = world.replica("collector", 0)
    os.kill(pid, signal.SIGKILL)
    wait_for(lambda: world.replica("collector", 0) != pid, "another process of collector/0")
    world.await_steps(run_dir, status["env_steps"] + steps(2000), process)
    stopped = world.stop(process, run_dir)
    equal([stopped["transitions"][key] for key in ("duplicated", "lost")], [0, 0], "duplicated, lost")
    world.resume(run_dir, f"stop.env_steps={stopped['env_steps'] + 10 * BATCH}")
    with open(os.path.join(run_dir, "metrics.jsonl"), encoding="utf-8") as file:
        means = {json.loads(line).get("return_mean") for line in file}
    equal(means - {None}, {10}, "returns of episodes of 10 steps")


def test_a_dijob(world):
    """Pods of a manifest need nothing else: the config that the coordinator reads says all."""
    config = s_config(world)
    with open(os.path.join(SOURCE, "configs", "k8s", "dijob-cartpole.yaml"), encoding="utf-8") as file:
        job = file.read().replace("[/usr/bin/tutti]", f"[{os.environ['TUTTI']}]").replace("cartpole-ppo", config).replace('"1"', '"3"')
    run_dir = os.path.join(world.path, "dijob")
    done = world.tutti("run", world.file("dijob.yaml", job), "--run-dir", run_dir, "--no-namespaces", "--no-limits", "--output", "json")
    equal(done.returncode, 0, done.stderr)
    with open(os.path.join(run_dir, "logs", "coordinator.log"), encoding="utf-8") as file:
        said = re.search(r'"weights_sha256":"(\w+)"', file.read())
    equal(said and said[1], world.train(config, seed=3)["weights_sha256"], "weights of a DIJob")


main(test_one_memory, test_a_memory_each, test_pictures_dicts_and_masks, test_ends_of_the_range, test_disturbed_lag_0, test_disturbed_lag_1,
     test_resumed_after_a_power_cut, test_snapshots_of_something_else, test_another_memory_is_another_run, test_what_is_refused,
     test_asked_about, test_environments_that_cannot_be_saved, test_sequences_of_environments_that_cannot_be_saved, test_a_dijob)
