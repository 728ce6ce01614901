#!/usr/bin/env python3
"""An algorithm with a replay keeps every promise: the same bits for any number of collectors, learners and threads, for any
processor, through scaling, kills and a resume, from the first step on and while a replay is filling."""

import json
import os
import signal
import sys

sys.dont_write_bytecode = True
from rig import ENDLESS, SANITIZED, check, equal, main, steps, supported, wait_for

JOB = """\
env: CartPole-v1
num_envs: 8
num_steps: 32
algorithm:
  name: dqn
  batch_size: {units}
  learning_starts: 700
  train_every: 32
  gradient_steps: 1
  epsilon_steps: 5000
  epsilon_power: {power}
  target_every: 640
  n_step: 3
  double: true
  dueling: {dueling}
  noisy: {noisy}
  quantiles: {quantiles}
  atoms: {atoms}
  v_max: 30
  sequence_length: 20
  burn_in: 15
  rescale: {rescale}
replay:
  capacity: 4000
  prioritized: {prioritized}
  beta_steps: 8000
network: {{hidden: {hidden}, rnn: {rnn}}}
learner: {{shards: 4}}
stop: {{env_steps: {steps}}}
"""

BOTH = "replay.memory=both"  # frames are in a device's memory, too; without it, on a CPU, they are not
SHAPES = [(2, 2), (3, 4), (1, 2)]
KEYS = ("weights_sha256", "env_steps", "updates", "episodes", "return_mean")


def s_config(world, prioritized, count=12_000, dueling=False, noisy=False, quantiles=0, atoms=0, normalized=False, rnn="none"):
    text = JOB.format(rnn="none" if rnn == "none" else rnn + ", rnn_size: 12", units=32 if rnn == "none" else 8, rescale=0 if rnn == "none" else 0.001,
                      prioritized="true" if prioritized else "false", dueling="true" if dueling else "false", quantiles=quantiles, atoms=atoms,
                      noisy="true" if noisy else "false", power=0 if prioritized else 7, hidden="[32, 16]" if dueling else "[32]", steps=steps(count))
    text += "normalize: {obs: true}\n" if normalized else ""
    return world.config(text, name=f"dqn-{prioritized}-{dueling}-{noisy}-{quantiles}-{atoms}-{normalized}-{rnn}-{count}.yaml")


def s_matrix(world, lag, prioritized, shapes=SHAPES, **options):
    config = s_config(world, prioritized, **options)
    first = world.train(config, f"lag={lag}", seed=7)
    for collectors, learners in shapes:
        other = world.train(config, f"lag={lag}", f"collector.replicas={collectors}", f"learner.replicas={learners}", seed=7)
        for key in KEYS:
            equal(other[key], first[key], f"{key} with {collectors} collectors, {learners} learners, lag {lag}")
    two = world.train(config, f"lag={lag}", "learner.threads=2", seed=7)
    equal(two["weights_sha256"], first["weights_sha256"], f"weights with 2 threads, lag {lag}")
    for cpu, flag in (("portable", None), ("avx2", "avx2"), ("avx512", "avx512f")):
        if flag and not supported(flag) or SANITIZED and not flag:
            print(f"        no {cpu} here, or too slow: left out", flush=True)
            continue
        other = world.train(config, f"lag={lag}", seed=7, env={"TT_CPU": cpu})
        equal(other["weights_sha256"], first["weights_sha256"], f"weights with TT_CPU={cpu}, lag {lag}")
    return first


def test_uniform_lag_0(world):
    """Each env explores by an epsilon of its own."""
    s_matrix(world, 0, False)


def test_prioritized_lag_1(world):
    s_matrix(world, 1, True)


def test_dueling(world):
    """Its heads are combined in every process that acts or learns."""
    s_matrix(world, 1, True, dueling=True, shapes=[(2, 2)])


def test_quantiles(world):
    s_matrix(world, 1, True, quantiles=5, shapes=[(2, 2)])


def test_rainbow(world):
    """Priorities are the cross-entropies of atoms; a dueling network has values and advantages of each of them."""
    s_matrix(world, 1, True, atoms=7, dueling=True, noisy=True, shapes=[(2, 2), (3, 4)])
    late = world.train(s_config(world, True, atoms=7, dueling=True, noisy=True), "lag=1", BOTH, "learner.replicas=2", seed=7, env={"TT_DEVICE": "cpu-strict"})
    other = world.train(s_config(world, True, atoms=7, dueling=True, noisy=True), "lag=1", seed=7)
    equal(late["weights_sha256"], other["weights_sha256"], f"weights on cpu-strict, {BOTH}")


def test_normalized(world):
    """What is stored is what was collected; it is normalised as it is read, with what was seen up to then."""
    first = s_matrix(world, 1, True, shapes=[(2, 2), (3, 4)], normalized=True)
    other = world.train(s_config(world, True), "lag=1", seed=7)
    check(first["weights_sha256"] != other["weights_sha256"], "normalize.obs changes nothing")
    late = world.train(s_config(world, True, normalized=True), "lag=1", BOTH, "learner.replicas=2", seed=7, env={"TT_DEVICE": "cpu-strict"})
    equal(late["weights_sha256"], first["weights_sha256"], f"weights on cpu-strict, {BOTH}")


def test_noisy(world):
    """Whoever acts or learns draws the same noise."""
    s_matrix(world, 1, True, dueling=True, noisy=True, shapes=[(2, 2), (3, 4)])


def test_sequences(world):
    """A network that remembers is trained on sequences, from what was stored of it where they begin; shards need not have equally many."""
    first = s_matrix(world, 1, True, rnn="lstm", shapes=[(2, 2), (3, 4)], count=8_000)
    late = world.train(s_config(world, True, rnn="lstm", count=8_000), "lag=1", BOTH, "learner.replicas=2", seed=7, env={"TT_DEVICE": "cpu-strict"})
    equal(late["weights_sha256"], first["weights_sha256"], f"weights on cpu-strict, {BOTH}")


def test_sequences_of_all_kinds(world):
    s_matrix(world, 0, False, rnn="gru", shapes=[(2, 2)], count=8_000, dueling=True, noisy=True, normalized=True)
    s_matrix(world, 1, True, rnn="gru", shapes=[(1, 3)], count=8_000, quantiles=5)
    s_matrix(world, 1, True, rnn="lstm", shapes=[(2, 1)], count=8_000, atoms=5)


def s_killed(world, lag, prioritized, victims, normalized=False, rnn="none"):
    config = s_config(world, prioritized, normalized=normalized, rnn=rnn)
    sets = ["collector.replicas=2", "learner.replicas=2", f"lag={lag}"]
    process, run_dir = world.start_run(config, *sets, BOTH, ENDLESS, seed=5)
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
    world.check_same(summary, config, *sets, seed=5, what=f"after {victims}, lag {lag}")
    equal(summary["transitions"]["duplicated"], 0, "duplicated")
    equal(summary["transitions"]["lost"], 0, "lost")


def test_kills_lag_0(world):
    s_killed(world, 0, True, [("learner", 0), ("collector", 1), ("learner", 1), ("aggregator", 0)])


def test_kills_lag_1(world):
    s_killed(world, 1, False, [("learner", 1), ("collector", 0), ("learner", 0), ("coordinator", 0)])


def test_kills_normalized(world):
    s_killed(world, 1, True, [("learner", 0), ("collector", 1), ("learner", 1)], normalized=True)


def test_kills_sequences(world):
    s_killed(world, 1, True, [("learner", 0), ("collector", 1), ("learner", 1)], rnn="lstm")


def s_scaled(world, **options):
    config = s_config(world, True, **options)
    sets = ["lag=1"]
    process, run_dir = world.start_run(config, *sets, ENDLESS, seed=3)
    wanted = steps(2_000)
    for collectors, learners in ((2, 3), (1, 1), (3, 4)):
        status = world.await_steps(run_dir, wanted, process)
        equal(world.tutti("scale", run_dir, f"collector={collectors}", f"learner={learners}").returncode, 0, "scale")
        world.await_ready(run_dir, collectors, learners)
        wanted = status["env_steps"] + steps(3_000)
    world.await_steps(run_dir, wanted, process)
    summary = world.stop(process, run_dir)
    world.check_same(summary, config, *sets, seed=3, what="after scaling")


def test_scaled(world):
    """Two learners join late, twice: with what the first holds in its replay."""
    s_scaled(world)


def test_scaled_sequences(world):
    s_scaled(world, rnn="lstm")


def s_resumed(world, dueling, **options):
    """Stopped in the middle, and resumed from its snapshot: the replay comes back with it, and its frames go to another memory."""
    config = s_config(world, True, dueling=dueling, **options)
    process, run_dir = world.start_run(config, ENDLESS, seed=4)
    world.await_steps(run_dir, steps(4_000), process)
    stopped = world.stop(process, run_dir)
    more = stopped["env_steps"] + 256 * 20
    resumed = world.resume(run_dir, f"stop.env_steps={more}", BOTH)
    whole = world.train(config, f"stop.env_steps={more}", seed=4)
    for key in KEYS:
        equal(resumed[key], whole[key], f"{key} after a resume")


def test_resumed(world):
    s_resumed(world, False)


def test_resumed_dueling(world):
    s_resumed(world, True)


def test_resumed_quantiles(world):
    s_resumed(world, False, quantiles=5)


def test_resumed_rainbow(world):
    s_resumed(world, True, atoms=5, noisy=True)


def test_resumed_normalized(world):
    s_resumed(world, False, normalized=True)


def test_resumed_sequences(world):
    """What policies carried into the batches comes back, too."""
    s_resumed(world, False, rnn="lstm")


def test_resumed_noisy(world):
    """Its noise goes on where it was."""
    s_resumed(world, False, noisy=True)


LEARNS = """\
env: CartPole-v1
num_envs: 4
num_steps: 16
network: {hidden: [64, 64], activation: relu, init: INIT}
algorithm:
  name: dqn
  double: DOUBLE
  dueling: DUELING
  noisy: NOISY
  quantiles: QUANTILES
  atoms: ATOMS
  v_min: 0
  v_max: 100
  learning_rate: 5e-4
  batch_size: 64
  learning_starts: 1000
  train_every: 64
  gradient_steps: 32
  target_every: 500
  epsilon_steps: 5000
replay: {capacity: 50k}
learner: {shards: 2}
stop: {env_steps: 80k}
"""


def s_learns(world, dueling, noisy=False, quantiles=0, atoms=0):
    """From nothing to standing for nearly as long as an episode lasts; the same bits everywhere, so no luck is in it."""
    if SANITIZED:
        print("        too slow here: left out", flush=True)
        return
    text = LEARNS.replace("DUELING", "true" if dueling else "false").replace("NOISY", "true" if noisy else "false")
    text = text.replace("DOUBLE", "true" if noisy or atoms else "false")
    text = text.replace("INIT", "uniform" if noisy else "orthogonal").replace("QUANTILES", str(quantiles)).replace("ATOMS", str(atoms))
    run = world.train(world.config(text, name=f"learns-{dueling}-{noisy}-{quantiles}-{atoms}.yaml"), seed=1)
    done = world.tutti("eval", run["run_dir"], "--episodes", 50, "--output", "json")
    equal(done.returncode, 0, f"tutti eval: {done.stderr}")
    mean = json.loads(done.stdout)["return_mean"]
    check(mean >= 400, f"greedy return {mean}")


def test_learns(world):
    s_learns(world, False)


def test_learns_dueling(world):
    s_learns(world, True)


def test_learns_noisy(world):
    """Without epsilon; from uniform weights, as those who published it."""
    s_learns(world, True, noisy=True)


def test_learns_quantiles(world):
    s_learns(world, False, quantiles=10)


def test_learns_atoms(world):
    s_learns(world, False, atoms=51)


def test_learns_rainbow(world):
    """But for priorities."""
    s_learns(world, True, noisy=True, atoms=51)


main(test_learns, test_learns_dueling, test_learns_noisy, test_learns_quantiles, test_learns_atoms, test_learns_rainbow, test_uniform_lag_0, test_prioritized_lag_1, test_dueling, test_noisy, test_quantiles, test_rainbow,
     test_kills_lag_0, test_kills_lag_1, test_normalized, test_kills_normalized, test_resumed_normalized,
     test_scaled, test_resumed, test_resumed_dueling, test_resumed_noisy, test_resumed_quantiles, test_resumed_rainbow,
     test_sequences, test_sequences_of_all_kinds, test_kills_sequences, test_scaled_sequences, test_resumed_sequences)
