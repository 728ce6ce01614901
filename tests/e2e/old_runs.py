#!/usr/bin/env python3
"""A run that tutti 0.1 made (tests/golden/run-0.1), as that program left it: it goes on to the weights that 0.1 would have come to."""

import json
import os
import subprocess
import sys

sys.dont_write_bytecode = True
from rig import SOURCE, check, equal, main

GOLDEN = os.path.join(SOURCE, "tests", "golden", "run-0.1")
FURTHER = "stop.env_steps=1280"
SAID = ("algorithm.entropy is algorithm.entropy_coef now, algorithm.minibatches 4 went unused beside algorithm.minibatch_size")


def s_unpack(world):
    subprocess.run(["tar", "-xzf", os.path.join(GOLDEN, "run-0.1.tar.gz"), "-C", world.path], check=True)
    return os.path.join(world.path, "run-0.1")


def s_text(*path):
    with open(os.path.join(*path), encoding="utf-8") as file:
        return file.read()


def s_resume(world, run_dir, *sets, code=0):
    done = world.tutti("resume", run_dir, "--output", "json", *(word for item in sets for word in ("--set", item)))
    equal(done.returncode, code, f"resume: {done.stderr}")
    return done


def s_check_config(run_dir):
    config = s_text(run_dir, "config.yaml").split()
    at = config.index("entropy_coef:")
    equal(config[at + 1], "0.01", "entropy_coef in config.yaml")
    check("entropy:" not in config, "the old name is still in config.yaml")
    equal([config[config.index(key) + 1] for key in ("minibatches:", "minibatch_size:")], ["0", "32"], "minibatches in config.yaml")


def test_resume(world):
    run_dir = s_unpack(world)
    done = s_resume(world, run_dir, FURTHER)
    summary = json.loads(done.stdout)
    equal(summary["weights_sha256"], s_text(GOLDEN, "weights_sha256").strip(), "weights")
    equal([line.split(": ", 2)[2] for line in done.stderr.splitlines() if "brought up to date" in line], [SAID], "said")
    equal([change["key"] for change in summary["changed"]], ["stop.env_steps"], "changed")
    s_check_config(run_dir)
    began = [line for line in map(json.loads, s_text(run_dir, "history.jsonl").splitlines()) if line["event"] == "began"]
    equal([line.get("upgraded") for line in began], [SAID], "history")
    equal(len(s_text(run_dir, "metrics.jsonl").splitlines()), len(set(s_text(run_dir, "metrics.jsonl").splitlines())), "lines")
    again = s_resume(world, run_dir, "stop.env_steps=1920")  # that is a run of this version now
    check("brought up to date" not in again.stderr, again.stderr)


def test_what_decides_is_not_edited(world):
    """The old name is compared with what the snapshot was made with, too."""
    run_dir = s_unpack(world)
    path = os.path.join(run_dir, "config.yaml")
    text = s_text(path)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text.replace("entropy: 0.01", "entropy: 0.02"))
    done = s_resume(world, run_dir, FURTHER, code=78)
    check("algorithm.entropy_coef" in done.stderr and "0.02" in done.stderr, done.stderr)
    check(not os.path.exists(os.path.join(run_dir, "history.jsonl")), "a life was begun")
    equal(s_text(path), text.replace("entropy: 0.01", "entropy: 0.02"), "config.yaml")
    changed = s_resume(world, run_dir, FURTHER, "algorithm.entropy_coef=0.01")
    equal(json.loads(changed.stdout)["weights_sha256"], s_text(GOLDEN, "weights_sha256").strip(), "weights, set back")


def test_an_old_key_is_none_of_a_person(world):
    """What is read in a run's own config is refused elsewhere."""
    run_dir = s_unpack(world)
    done = world.tutti("run", os.path.join(GOLDEN, "job.yaml"))
    equal(done.returncode, 78, done.stderr)
    check("entropy_coef" in done.stderr, done.stderr)
    s_resume(world, run_dir, FURTHER, "algorithm.entropy=0.01", code=78)


def test_looked_at(world):
    run_dir = s_unpack(world)
    for command in (["status"], ["fetch", "-o", "fetched.safetensors"], ["eval", "--episodes", "2"]):
        done = world.tutti(command[0], run_dir, *command[1:])
        equal(done.returncode, 0, f"{command}: {done.stderr}")
    check(os.path.exists(os.path.join(world.path, "fetched.safetensors")), "fetched")


def test_a_coordinator_without_a_controller(world):
    """As in a pod whose volume has a run that 0.1 began."""
    run_dir = s_unpack(world)
    text = s_text(GOLDEN, "job.yaml").replace("entropy:", "entropy_coef:")
    other = world.tutti("coordinator", "--run", run_dir, "--config", world.file("other.yaml", text.replace("1e-3", "2e-3")))
    equal(other.returncode, 78, f"another config: {other.stderr}")
    check("another config" in other.stderr, other.stderr)
    process = world.start("coordinator", "--run", run_dir, "--config", world.file("now.yaml", text))
    code, _, err = world.finish(process)  # the run is over: it says how it ended once more
    equal(code, 0, f"exit code; stderr: {err}")
    check(f"brought up to date: {SAID}\n" in err, err)
    s_check_config(run_dir)


main(test_resume, test_what_decides_is_not_edited, test_an_old_key_is_none_of_a_person, test_looked_at,
     test_a_coordinator_without_a_controller)
