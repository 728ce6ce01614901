#!/usr/bin/env python3
"""Ends asked for: SIGINT, SIGTERM, `tutti stop`; then resume goes on as if nothing had been."""

import json
import os
import re
import signal
import sys

sys.dont_write_bytecode = True
from rig import BATCH, ENDLESS, SANITIZED, Failed, check, equal, main, newest_update, steps, wait_for

MORE = steps(40_000)  # after resume


def s_interrupted(world, lag, end, code):
    config = world.config()
    process, run_dir = world.start_run(config, f"lag={lag}", ENDLESS, seed=11)
    world.await_steps(run_dir, steps(30_000), process)
    end(process, run_dir)
    stopped = world.summary(process, code)
    equal(stopped["status"], "stopped", "status")
    check(stopped["env_steps"] >= steps(30_000), f"steps at the stop: {stopped['env_steps']}")
    check(os.listdir(os.path.join(run_dir, "checkpoints")), "no checkpoint")
    world.await_empty()
    end = stopped["env_steps"] + MORE
    resumed = world.resume(run_dir, f"stop.env_steps={end}")
    still = world.train(config, f"lag={lag}", f"stop.env_steps={end}", seed=11)
    equal(resumed["status"], "succeeded", "status after resume")
    for key in ("weights_sha256", "env_steps", "updates", "episodes"):
        equal(resumed[key], still[key], f"{key} after resume, lag {lag}")


def test_sigint(world):
    s_interrupted(world, 1, lambda process, run_dir: process.send_signal(signal.SIGINT), 130)


def test_sigterm_lag_0(world):
    s_interrupted(world, 0, lambda process, run_dir: process.send_signal(signal.SIGTERM), 143)


def test_tutti_stop(world):
    s_interrupted(world, 1, lambda process, run_dir: equal(world.tutti("stop", run_dir).returncode, 0, "stop"), 143)


def test_resume_keeps_the_counts_last_asked_for(world):
    process, run_dir = world.start_run(world.config(), "stop.env_steps=100M")
    world.await_steps(run_dir, 1, process)
    equal(world.tutti("scale", run_dir, "collector=3", "learner=2").returncode, 0, "scale")
    world.tutti("stop", run_dir)
    world.finish(process)
    again = world.start("resume", run_dir, "--output", "json")

    def look():
        status = world.status(run_dir)
        counts = status.get("replicas") if status else {}  # an ended run has none
        return counts and counts["collector"]["ready"] == 3 and counts["learner"]["ready"] == 2
    wait_for(look, "3 collectors and 2 learners after resume")
    again.send_signal(signal.SIGINT)
    world.summary(again, 130)


def test_resume_after_kill(world):
    """kill -9 of everything: resume continues from the newest snapshot, and the bits are those of a run left alone."""
    config = world.config()
    process, run_dir = world.start_run(config, "checkpoint.every_s=0.2", ENDLESS, seed=12)
    world.await_steps(run_dir, 1, process)
    world.await_snapshot(run_dir, process)
    world.kill_all(process)
    end = newest_update(run_dir) * BATCH + MORE
    resumed = world.resume(run_dir, f"stop.env_steps={end}")
    still = world.train(config, f"stop.env_steps={end}", seed=12)
    equal(resumed["weights_sha256"], still["weights_sha256"], "weights")
    equal(resumed["env_steps"], still["env_steps"], "steps")


def s_version(world, run_dir):
    """Of the policy that an evaluation plays with; and what was said of it."""
    done = world.tutti("eval", run_dir, "-n", 1)
    equal(done.returncode, 0, f"eval: {done.stderr}")
    said = done.stdout + done.stderr
    return int(re.search(r"\.safetensors  .*, version (\d+)", said)[1]), said


def test_the_policy_of_a_resumed_run(world):
    """While it goes on, and killed on the way, it is the newest, and not what the life before has ended with."""
    run_dir = world.train(world.config(), "checkpoint.every_s=0.2", f"stop.env_steps={MORE}")["run_dir"]
    final, _ = s_version(world, run_dir)
    process = world.start("resume", run_dir, "--output", "json", "--set", ENDLESS)
    for killed in (False, True):
        wait_for(lambda: newest_update(run_dir) > final, "a snapshot of the second life")
        if killed:
            world.kill_all(process)
        least = newest_update(run_dir)
        version, said = s_version(world, run_dir)
        check(version >= least, f"version {version}, the newest was {least}, killed: {killed}; {said}")
        check("has gone on since its final checkpoint" in said, said)


def test_who_asked_is_said(world):
    """What ended a run, and what goes on with it, in the last words of the run and of `tutti status`."""
    for what, number, code in (("run", signal.SIGHUP, 129), ("coordinator", signal.SIGTERM, 143)):
        process = world.start("run", world.config(), "--run-dir", os.path.join(world.path, what), "--quiet", "--set", ENDLESS)
        world.await_steps(os.path.join(world.path, what), 1, process)
        os.kill(process.pid if what == "run" else world.replica(what, 0), number)
        got, out, err = world.finish(process)
        equal(got, code, f"exit code of {what}: {err}")
        words = f"stopped: {number.name}" + (f" to the coordinator, from process {os.getpid()}" if what == "coordinator" else "")
        for said in (out, world.tutti("status", what).stdout):
            check(f"{words}; 'tutti resume' goes on\n" in said, f"who asked, and what to do: {said}")


def s_arrays(run_dir):
    """All that a snapshot has but its metadata, which hold the config."""
    with open(os.path.join(run_dir, "checkpoints", "final.safetensors"), "rb") as file:
        data = file.read()
    size = 8 + int.from_bytes(data[:8], "little")
    header = json.loads(data[8:size])
    del header["__metadata__"]
    return {name: data[size + about["data_offsets"][0]:size + about["data_offsets"][1]] for name, about in header.items()}


def s_stopped_in_an_update(world, config, sets, batch):
    """(summary, run directory) of a run that was stopped in its second update or a later one. Asked between two it gives none up: once more."""
    for number in range(5):
        process, run_dir = world.start_run(config, *sets, ENDLESS, name=f"asked-{number}", seed=12)
        world.await_steps(run_dir, batch, process)
        stopped = world.stop(process, run_dir)
        equal(stopped["env_steps"], stopped["updates"] * batch, "env steps")
        with open(os.path.join(run_dir, "logs", "learner-0.log"), encoding="utf-8") as file:
            said = re.search(r"update (\d+) is given up after (\d+) of (\d+) steps: tutti stop", file.read())
        if said:
            check(int(said.group(2)) < int(said.group(3)), f"given up when it was over: {said[0]}")
            equal(stopped["updates"], int(said.group(1)), "updates")
            return stopped, run_dir
    raise Failed("no update was given up")


def test_an_update_that_lasts(world):
    """Who asks for the end need not wait for it: the run ends as it would have before that began, with a whole snapshot."""
    batch = 8 * 240
    config = world.config()
    sets = ("num_steps=240", f"algorithm.epochs={50 if SANITIZED else 1000}", "normalize.obs=true")
    stopped, run_dir = s_stopped_in_an_update(world, config, sets, batch)
    if stopped["updates"] != 1:  # the machine stood still for a while
        return
    whole = world.train(config, *sets, f"stop.env_steps={2 * batch}", seed=12)
    for key in ("weights_sha256", "updates"):
        equal(stopped[key], whole[key], key)
    equal([stopped["transitions"][key] for key in ("trained", "duplicated", "lost")], [batch, 0, 0], "transitions")
    left, wanted = s_arrays(run_dir), s_arrays(whole["run_dir"])
    differ = [name for name in sorted({*left, *wanted}) if left.get(name) != wanted.get(name)]
    check(not set(differ) - {"tutti.best", "tutti.evaluate"}, f"arrays of the snapshots that differ: {differ}")


def test_the_last_line_is_the_summary(world):
    """Stop rules look at the batch in hand, which is not trained any more: what is said of the end counts it everywhere or nowhere."""
    for seed in range(1, 6):
        summary = world.train(world.config(), "stop.env_steps=5120", seed=seed)
        with open(os.path.join(summary["run_dir"], "metrics.jsonl"), encoding="utf-8") as file:
            last = json.loads(file.read().splitlines()[-1])
        for key in ("updates", "env_steps", "episodes", "return_mean"):
            check(abs(last[key] - summary[key]) < 1e-6, f"{key}, seed {seed}: {last[key]} in the last line, {summary[key]} in the summary")


main(test_an_update_that_lasts, test_the_last_line_is_the_summary, test_sigint, test_sigterm_lag_0, test_tutti_stop, test_resume_keeps_the_counts_last_asked_for,
     test_resume_after_kill, test_the_policy_of_a_resumed_run, test_who_asked_is_said)
