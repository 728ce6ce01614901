#!/usr/bin/env python3
"""eval.every: what is evaluated beside training, and what comes out, is a function of the config and the version; training does not
know of it. So the results are the same for any number of processes and learners, whoever is killed, and over a stop."""

import json
import os
import re
import signal
import subprocess
import sys
import time

sys.dont_write_bytecode = True
from rig import BATCH, ENDLESS, JOB, check, equal, main, steps, wait_for

EVERY = 2000
EVAL = [f"eval.every={EVERY}", "eval.episodes=5"]
# Small tasks with what evaluation has to get right besides: a normaliser that travels with the version, continuous actions, a replay.
PENDULUM = """
name: pendulum
env: Pendulum-v1
num_envs: 4
num_steps: 64
normalize: {obs: true, reward: true}
algorithm: {name: ppo, minibatch_size: 64, epochs: 2}
learner: {shards: 2}
stop: {env_steps: 8192}
"""
DQN = """
name: dqn
env: CartPole-v1
num_envs: 4
num_steps: 16
lag: 0
algorithm: {name: dqn, learning_starts: 512, batch_size: 32, target_every: 256, train_every: 16}
replay: {capacity: 1M}
learner: {shards: 2}
stop: {env_steps: 8192}
"""
MOUNTAIN_CAR = """
name: car
env: MountainCar-v0
num_envs: 4
num_steps: 64
algorithm: {name: ppo, learning_rate: 1e-12, minibatch_size: 64}
stop: {env_steps: 512}
"""
# A step that takes its time without a core.
CATCH = f"""
name: catch
env: {os.path.join(os.environ["TT_BUILD_DIR"], "tests", "collector", "plugins", "catch.so")}
num_envs: 4
num_steps: 64
algorithm: {{name: ppo, minibatch_size: 64, epochs: 2}}
learner: {{shards: 2}}
"""


def s_due(updates, batch=BATCH, every=EVERY):
    return [v for v in range(1, updates + 1) if v * batch // every > (v - 1) * batch // every]


def s_lines(run_dir, name="evaluations.jsonl"):
    path = os.path.join(run_dir, name)
    if not os.path.exists(path):
        return []
    with open(path, encoding="utf-8") as file:
        return [json.loads(line) for line in file if line.endswith("\n")]


def s_results(run_dir):
    """{version: its numbers}; a version that was played again in another era has the same."""
    found, seen = {}, set()
    for line in s_lines(run_dir):
        check((line["era"], line["updates"]) not in seen, f"version {line['updates']} twice in era {line['era']}")
        seen.add((line["era"], line["updates"]))
        numbers = {key: value for key, value in line.items() if key not in ("era", "wall_s")}
        equal(numbers, found.setdefault(line["updates"], numbers), f"version {line['updates']}, played again")
    return found


def s_equal_results(got, wanted, versions, what):
    for version in versions:
        equal(got.get(version), wanted[version], f"{what}: version {version}")


def s_run(world, text, *sets, seed=3):
    summary = world.train(world.config(text), *sets, seed=seed)
    return summary, s_results(summary["run_dir"])


def test_training_does_not_know_of_it(world):
    without, nothing = s_run(world, JOB)
    equal(nothing, {}, "evaluations without eval.every")
    equal(without["eval"], None, "eval in the summary")
    summary, results = s_run(world, JOB, *EVAL)
    equal(summary["weights_sha256"], without["weights_sha256"], "weights")
    equal(sorted(results), s_due(summary["updates"]), "versions that were evaluated")
    newest = results[max(results)]
    for key in ("mean_reward", "std_reward", "mean_ep_length", "episodes"):
        got = summary["eval"][key]
        check(abs(got - newest[f"eval/{key}"]) <= 1e-6 * abs(got), f"eval.{key} in the summary: {got}")
    equal(newest["env_steps"], newest["updates"] * BATCH, "env steps of the newest")
    last = s_lines(summary["run_dir"], "metrics.jsonl")[-1]
    equal(last["eval/updates"], newest["updates"], "eval/updates in the last line of metrics.jsonl")
    equal(last["eval/mean_reward"], newest["eval/mean_reward"], "eval/mean_reward there")


def test_the_best_is_kept(world):
    """`tutti eval` of best.safetensors says what evaluation said of it."""
    summary, results = s_run(world, JOB, *EVAL)
    best = max(results.values(), key=lambda line: (line["eval/mean_reward"], -line["updates"]))
    path = os.path.join(summary["run_dir"], "checkpoints", "best.safetensors")
    done = world.tutti("eval", path, "--episodes", "5", "--output", "json")
    equal(done.returncode, 0, f"tutti eval: {done.stderr}")
    again = json.loads(done.stdout)
    equal(again["updates"], best["updates"], "version of the best")
    equal(float(f"{again['return_mean']:.9g}"), best["eval/mean_reward"], "mean return of the best")
    equal(float(f"{again['return_std']:.9g}"), best["eval/std_reward"], "its deviation")
    equal(world.tutti("fetch", summary["run_dir"], "--best", "-o", "best").returncode, 0, "fetch --best")


def test_a_best_that_was_not_kept(world):
    """It does not stand in the way of one that is no better: what was kept counts, and nothing was. An untrained policy on MountainCar, which never
    gets there."""
    first = world.train(world.config(MOUNTAIN_CAR), seed=3)  # no episode has ended yet: there is no best
    best = os.path.join(first["run_dir"], "checkpoints", "best.safetensors")
    os.symlink("best.safetensors", best)  # nobody can read it, and it may be better
    process = world.start("resume", first["run_dir"], "--output", "json", *(word for item in (*EVAL, ENDLESS) for word in ("--set", item)))
    wait_for(lambda: len(s_results(first["run_dir"])) > 1, "two evaluations")
    os.remove(best)
    wait_for(lambda: os.path.exists(best), "the best of those after them")
    summary = world.stop(process, first["run_dir"])
    equal({line["eval/mean_reward"] for line in s_results(first["run_dir"]).values()}, {-200}, "mean returns")
    with open(process.err.name, encoding="utf-8") as file:
        said = file.read()
    check(f"the best version was not kept: {best} stays: cannot read" in said, f"a warning: {said}")


def s_same_for_any_number(world, text):
    one, results = s_run(world, text, *EVAL)
    check(results, "nothing was evaluated")
    two, others = s_run(world, text, *EVAL, "learner.replicas=2", "collector.replicas=2")
    equal(two["weights_sha256"], one["weights_sha256"], "weights of two learners")
    equal(others, results, "evaluations with two learners")


def test_processes(world):
    s_same_for_any_number(world, JOB)


def test_normalised_observations_and_continuous_actions(world):
    s_same_for_any_number(world, PENDULUM)


def test_a_replay(world):
    s_same_for_any_number(world, DQN)


def s_killed(world, learners, *sets):
    """The leader dies three times while versions are due all the time."""
    config = world.config()
    sets = [*EVAL, f"learner.replicas={learners}", *sets]
    process, run_dir = world.start_run(config, *sets, ENDLESS, seed=3)
    for _ in range(3):
        before = len(s_results(run_dir))
        wait_for(lambda: len(s_results(run_dir)) > before + 1, "two more evaluations")
        leader = next(m for m in world.look(run_dir)["members"] if m["role"] == "learner" and m.get("rank") == 0)
        os.kill(leader["pid"], signal.SIGKILL)
        wait_for(lambda: world.replica("learner", leader["index"]) != leader["pid"], "another process of it")
    before = len(s_results(run_dir))
    wait_for(lambda: len(s_results(run_dir)) > before + 3, "evaluations after the last kill")
    summary = world.stop(process, run_dir)
    results = s_results(run_dir)
    due = s_due(max(results))
    equal(sorted(results), due, "versions that were evaluated")
    check(len(s_due(summary["updates"])) - len(due) <= 2, "more than two were left out at the stop")
    still, wanted = s_run(world, JOB, *EVAL, f"stop.env_steps={(summary['updates'] + 1) * BATCH}")
    equal(still["weights_sha256"], summary["weights_sha256"], "weights")
    s_equal_results(results, wanted, due, "after the leader's death")


def test_the_leader_is_killed(world):
    s_killed(world, 2)


def test_the_only_learner_is_killed(world):
    s_killed(world, 1, "checkpoint.every_s=0.1")


def test_the_next_leader_is_on_another_host(world):
    """One that joined over tcp has no run directory: the coordinator keeps the best for it, and knows what was best before."""
    config = world.config()
    process, run_dir = world.start_run(config, *EVAL, "aggregator.replicas=1", "coordinator.listen=tcp://127.0.0.1:0", ENDLESS,
                                       seed=3)
    endpoint = wait_for(lambda: (world.status(run_dir) or {}).get("listen"), "the endpoint that the run listens on")
    role = world.start("learner", "--coordinator", endpoint, "--key", os.path.join(run_dir, "key"))
    wait_for(lambda: len([m for m in world.look(run_dir)["members"] if m.get("holds")]) == 2, "two learners with weights")
    os.kill(world.replica("learner", 0), signal.SIGKILL)
    wait_for(lambda: [m for m in world.look(run_dir)["members"] if m["index"] >= 10000 and m.get("rank") == 0], "it to lead")
    before = len(s_results(run_dir))
    wait_for(lambda: len(s_results(run_dir)) > before + 5, "evaluations that it made")
    summary = world.stop(process, run_dir)
    equal(world.finish(role)[0], 0, "its exit code")
    results = s_results(run_dir)
    equal(sorted(results), s_due(max(results)), "versions that were evaluated")
    _, wanted = s_run(world, JOB, *EVAL, f"stop.env_steps={(summary['updates'] + 1) * BATCH}")
    s_equal_results(results, wanted, results, "two leaders")
    best = max(results.values(), key=lambda line: (line["eval/mean_reward"], -line["updates"]))
    done = world.tutti("eval", os.path.join(run_dir, "checkpoints", "best.safetensors"), "--episodes", "5", "--output", "json")
    equal(json.loads(done.stdout)["updates"], best["updates"], f"version of the best: {done.stderr}")


def test_stop_and_resume(world):
    """Who is asked to end does not wait for what is outstanding; the next life plays it."""
    config = world.config()
    process, run_dir = world.start_run(config, *EVAL, ENDLESS, seed=3)
    wait_for(lambda: len(s_results(run_dir)) > 3, "evaluations")
    process.send_signal(signal.SIGINT)
    stopped = world.summary(process, 130)
    end = stopped["env_steps"] + steps(20_000)
    resumed = world.resume(run_dir, f"stop.env_steps={end}")
    still, wanted = s_run(world, JOB, *EVAL, f"stop.env_steps={end}")
    equal(resumed["weights_sha256"], still["weights_sha256"], "weights")
    equal(s_results(run_dir), wanted, "evaluations")
    equal(resumed["eval"], still["eval"], "eval in the summary")


def test_a_config_without_it_gets_it_by_resume(world):
    config = world.config()
    first = world.train(config, seed=3)
    resumed = world.resume(first["run_dir"], "stop.env_steps=40960", *EVAL)
    due = [v for v in s_due(resumed["updates"]) if v > first["updates"]]
    equal(sorted(s_results(first["run_dir"])), due, "versions that were evaluated")


def test_one_that_lasts_longer_than_a_stall(world):
    """Two learners and a collector wait for it, longer than anybody may stand still; it gets on, so nobody is stuck. Each of its 1400 episodes
    is nine steps of half a millisecond."""
    stall_s = 5
    sets = ["eval.every=512", "eval.episodes=1400", f"net.stall_s={stall_s}", "net.beat_ms=100", "learner.replicas=2"]
    begun = time.monotonic()
    process, run_dir = world.start_run(world.config(CATCH), *sets, ENDLESS, seed=3, env={"CATCH_QUICK": "0"})

    def look():
        check(process.poll() is None, "the run ended")
        return s_results(run_dir)
    results = wait_for(look, "an evaluation")
    check(time.monotonic() - begun > stall_s + 1, "an evaluation that is no longer than a stall")
    equal(results[2]["eval/mean_ep_length"], 9, "steps of an episode")
    equal(world.stop(process, run_dir)["status"], "stopped", "status")


def test_status_and_metrics_over_http(world):
    process, run_dir = world.start_run(world.config(), *EVAL, ENDLESS, seed=3)
    status = wait_for(lambda: (s := world.status(run_dir)) and s.get("eval") and s.get("http") and s,
                      "an evaluation in the status, and an address")
    equal(status["eval"]["episodes"], 5, "episodes")
    with open(os.path.join(run_dir, "token"), encoding="utf-8") as file:
        token = file.read().strip()
    text = subprocess.run(["curl", "-sS", "--max-time", "20", "-H", f"Authorization: Bearer {token}",
                           f"{status['http']}/metrics"], capture_output=True, text=True, check=True).stdout
    for name in ("updates", "env_steps", "mean_reward", "std_reward", "mean_ep_length", "episodes"):
        check(f"\ntutti_eval_{name} " in text, f"tutti_eval_{name} is not in /metrics")
    started = float(re.search(r"(?m)^process_start_time_seconds (\S+)$", text)[1])
    check(0 < time.time() - started < 600, f"when the coordinator began: {started}")
    world.stop(process, run_dir)


def test_bad_values(world):
    for value, words in (("eval.every=-1", "eval.every"), ("eval.episodes=0", "eval.episodes"),
                         ("eval.episodes=10001", "eval.episodes"), ("eval_freq=100", "'eval.every'"),
                         ("n_eval_episodes=5", "'eval.episodes'")):
        done = world.tutti("check", world.config(), "--set", value)
        equal(done.returncode, 78, value)
        check(words in done.stderr, f"{value}: {done.stderr}")
    done = world.tutti("check", world.config(), "--set", "eval.every=5k")
    check("every: 5000" in done.stdout, f"the resolved config: {done.stdout}")


main(test_training_does_not_know_of_it, test_the_best_is_kept, test_a_best_that_was_not_kept, test_processes,
     test_normalised_observations_and_continuous_actions, test_a_replay, test_the_leader_is_killed,
     test_the_only_learner_is_killed, test_the_next_leader_is_on_another_host,
     test_stop_and_resume, test_a_config_without_it_gets_it_by_resume,
     test_one_that_lasts_longer_than_a_stall, test_status_and_metrics_over_http, test_bad_values)
