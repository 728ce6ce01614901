#!/usr/bin/env python3
"""The wall clock is set while something runs, by hours, forth and back: no result, no duration and no deadline goes by it."""

import json
import os
import re
import sys

sys.dont_write_bytecode = True
from rig import ENDLESS, PATIENT, check, equal, main, steps, wait_for

HOUR = 3600


def s_set(world, seconds):
    """From here on the wall clock of every process of the world is so far off."""
    path = os.path.join(world.path, "off")
    with open(path + ".new", "w", encoding="utf-8") as file:
        file.write(str(seconds))
    os.rename(path + ".new", path)
    world.env.update(LD_PRELOAD=os.environ["CLOCK_JUMP"], TT_CLOCK_JUMP=path)


def test_a_run(world):
    """Snapshots, evaluations, leases and rates all along: the weights of a run whose clock is true."""
    sets = ("collector.replicas=2", "learner.replicas=2", "eval.every=50k", "checkpoint.every_s=0.1")
    config, true = world.config(), dict(world.env)
    s_set(world, 0)
    process, run_dir = world.start_run(config, *sets, PATIENT, ENDLESS, seed=3)
    turns = 0

    def turn():
        nonlocal turns
        check(process.poll() is None, f"the run ended after {turns} turns of the clock")
        s_set(world, (2 * HOUR, -2 * HOUR, 24 * HOUR, -9000 * HOUR, 0)[turns % 5])
        turns += 1
        return turns > 5 and ((world.status(run_dir) or {}).get("env_steps") or 0) >= steps(100_000)
    wait_for(turn, lambda: f"{steps(100_000)} steps; {turns} turns of the clock")
    summary = world.stop(process, run_dir)
    world.env = true
    world.check_same(summary, config, *sets, seed=3, what="whatever the clock showed")
    check(0 < summary["first_step_s"] < summary["wall_s"] < 300, f"times: {summary}")
    with open(os.path.join(run_dir, "metrics.jsonl"), encoding="utf-8") as file:
        walls = [json.loads(line)["wall_s"] for line in file]
    equal(walls, sorted(walls), "wall_s of metrics.jsonl")
    with open(os.path.join(run_dir, "logs", "coordinator-0.log"), encoding="utf-8") as file:
        check("has left" not in file.read(), "a member was lost")


JOB = """\
apiVersion: kubeflow.org/v1
kind: TFJob
metadata: {name: clock}
spec:
  runPolicy: {activeDeadlineSeconds: %d}
  tfReplicaSpecs:
    Chief:
      replicas: 1
      template:
        spec:
          containers:
          - {name: tensorflow, image: none, command: [sh, -c, 'until [ -e chief ]; do sleep 0.1; done'], workingDir: %s}
    Worker:
      replicas: 1
      template:
        spec:
          containers:
          - {name: tensorflow, image: none, command: [sh, -c, 'until [ -e worker ]; do sleep 0.1; done'], workingDir: %s}
"""


def s_start_job(world, deadline_s, word):
    """A TFJob on this machine whose processes each run till there is a file of their name; once it has said that word, or has ended."""
    s_set(world, 0)
    process = world.start("run", world.file("job.yaml", JOB % (deadline_s, world.path, world.path)), "--run-dir",
                          os.path.join(world.path, "job"))
    wait_for(lambda: word in world.logs() or process.poll() is not None, world.logs)
    return process


def test_a_deadline_of_a_job(world):
    """It comes though the clock was set back; on a machine that is late perhaps before anything of the job runs."""
    process = s_start_job(world, 2, "TFJobCreated")
    s_set(world, -2 * HOUR)
    code, out, err = world.finish(process, deadline=60)
    equal(code, 75, f"exit code; {out} {err}")


def test_no_deadline_of_a_job(world):
    """And it does not come because the clock was set on."""
    process = s_start_job(world, 600, "TFJobRunning")
    s_set(world, 2 * HOUR)
    for name, word in (("worker", "clock-worker-0 +Succeeded"), ("chief", "TFJobSucceeded")):
        world.file(name, "")
        wait_for(lambda word=word: re.search(word, world.logs()) or process.poll(), world.logs)
    code, out, err = world.finish(process)
    equal(code, 0, f"exit code; {out} {err}")


main(test_a_run, test_a_deadline_of_a_job, test_no_deadline_of_a_job)
