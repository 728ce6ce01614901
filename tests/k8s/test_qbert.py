#!/usr/bin/env python3
"""An environment in Python, in pods: configs/k8s/dijob-qbert.yaml from the image with a Python, to Succeeded with the weights of a local
run, and collectors and learners scaled by kubectl while it trains. Needs build/venv-image (tools/test-venv)."""

import json
import os
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
import cluster

cluster.require(full=True)
import image_rig  # noqa: E402
import job_rig  # noqa: E402
from cluster import check  # noqa: E402
from job_rig import SOURCE, TUTTI, await_more_updates, await_roster, await_updates, summary  # noqa: E402

SAMPLE = os.path.join(SOURCE, "configs/k8s/dijob-qbert.yaml")
# It learns from the third batch on, and from a small replay: the end of a run has to carry it into the run directory.
SETS = ("algorithm.learning_starts=64", "replay.capacity=2000", "env.workers=1")


def local(*sets):
    """The summary of the same run by `tutti run`."""
    with tempfile.TemporaryDirectory() as folder:
        args = [word for item in sets for word in ("--set", item)]
        done = subprocess.run([TUTTI, "run", os.path.join(SOURCE, "configs/qbert-dqn.yaml"), "--seed", "1", "--output", "json", "--run-dir",
                               os.path.join(folder, "run"), *args], capture_output=True, text=True, check=False, timeout=400,
                              env={**os.environ, "XDG_STATE_HOME": folder, "TT_PYTHON": os.path.join(image_rig.VENV, "bin", "python3")})
    check(done.returncode == 0, done.stderr)
    return json.loads(done.stdout)


def test_install(k8s):
    job_rig.install(k8s, "--gym", image_rig.VENV)


def test_to_succeeded(k8s):
    """One collector: the weights are those of a run on this machine. (An environment that moves begins a new episode.)"""
    sets = (*SETS, "stop.env_steps=320")
    job_rig.create(k8s, SAMPLE, "short", *sets, collector=1)
    got, wanted = summary(k8s, "short"), local(*sets)
    for key in ("weights_sha256", "env_steps", "updates", "episodes", "return_mean"):
        check(got[key] == wanted[key], f"{key}: {got[key]} in pods, {wanted[key]} by tutti run")
    check(got["reason"] == "env_steps" and got["updates"] >= 9, got)
    k8s.kubectl("delete", "dijob", "short")


def test_scaled_while_it_trains(k8s):
    """2 -> 3 -> 1 collectors by kubectl scale, 1 -> 2 -> 1 learners by kubectl patch; no step is lost or counted twice."""
    # a silence, of a process that the machine holds up, is no death
    job_rig.create(k8s, SAMPLE, "scaled", *SETS, "stop.env_steps=1G", "net.lease_ms=30000")
    await_updates(k8s, "scaled")
    learners = lambda count: k8s.kubectl("patch", "dijob", "scaled", "--type=merge", "-p", json.dumps({"spec": {"learner": {"replicas": count}}}))
    await_roster(k8s, "scaled", "2 collectors, 1 learners")
    k8s.kubectl("scale", "dijob/scaled", "--replicas=3")
    await_roster(k8s, "scaled", "3 collectors, 1 learners")
    learners(2)
    await_roster(k8s, "scaled", "3 collectors, 2 learners")
    await_more_updates(k8s, "scaled")
    k8s.kubectl("scale", "dijob/scaled", "--replicas=1")
    await_roster(k8s, "scaled", "1 collectors, 2 learners")
    learners(1)
    await_roster(k8s, "scaled", "1 collectors, 1 learners")
    await_more_updates(k8s, "scaled")
    job_rig.stop(k8s, "scaled")
    got = summary(k8s, "scaled")
    check((got["transitions"]["lost"], got["transitions"]["duplicated"], got["rolled_back"]) == (0, 0, 0), got)


image_rig.need_venv()
cluster.main(test_install, test_to_succeeded, test_scaled_while_it_trains, full=True)
