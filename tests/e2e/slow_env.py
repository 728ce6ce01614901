#!/usr/bin/env python3
"""Who waits for a shared object that takes long to begin is told what for, once, before its deadline: by the process that loads it, and by a run
whose collectors make its environments."""

import json
import os
import subprocess
import sys

sys.dont_write_bytecode = True
from rig import DEADLINE, TUTTI, check, equal, main, wait_for

PLUGINS = os.path.join(os.environ["TT_BUILD_DIR"], "tests", "collector", "plugins")
IN_LOAD, IN_INIT = os.path.join(PLUGINS, "bad_slow_in_load.so"), os.path.join(PLUGINS, "bad_slow_in_init.so")
JOB = """\
env: %s
num_envs: 8
num_steps: 16
algorithm: {name: ppo, minibatches: 2, epochs: 1}
collector: {replicas: 3}
stop: {env_steps: 1024}
"""


def s_read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def test_the_process_that_loads_it(world):
    gate, said = os.path.join(world.path, "gate"), os.path.join(world.path, "said")
    with open(said, "w", encoding="utf-8") as err:
        process = subprocess.Popen([TUTTI, "envs", IN_LOAD], env={**world.env, "BAD_GATE": gate}, cwd=world.path, stdin=subprocess.DEVNULL,
                                   stdout=subprocess.PIPE, stderr=err, text=True)
    world.started.append(process)
    line = f"{IN_LOAD}: waiting for the environment: its constructors and tutti_env()"
    wait_for(lambda: line in s_read(said), lambda: s_read(said))
    world.file("gate.", "")
    out = process.communicate(timeout=DEADLINE)[0]
    equal(process.returncode, 0, f"exit code: {s_read(said)}")
    equal(s_read(said).count("waiting for the environment"), 1, "how often it is said")
    check("discrete(2)" in out, out)


def test_a_run_whose_collectors_wait(world):
    """First the run itself, which looks at the environment before it begins; then three collectors, of which one is heard."""
    gate = os.path.join(world.path, "gate")
    process, run_dir = world.start_run(world.config(JOB % IN_INIT), env={"BAD_GATE": gate})

    def said():
        process.err.seek(0)
        return process.err.read()
    line = f"{IN_INIT}: waiting for the environment: init and first reset of "
    wait_for(lambda: f"{line}1 env\n" in said(), said)
    for role in ("", "coordinator", "learner"):
        world.file(f"gate.{role}", "")
    wait_for(lambda: f"collectors wait for the environment {IN_INIT} to start: init and first reset of " in said(), said)
    for index in range(3):
        path = os.path.join(run_dir, "logs", f"collector-{index}.log")
        wait_for(lambda: line in s_read(path), lambda: s_read(path))
    world.file("gate.collector", "")
    code, out, err = world.finish(process)
    equal(code, 0, f"exit code: {err}")
    equal(err.count("waiting for the environment"), 1, f"how often the run says it in {err}")
    equal(err.count("collectors wait for the environment"), 1, f"how often collectors do in {err}")
    equal(json.loads(out)["status"], "succeeded", "status")


main(test_the_process_that_loads_it, test_a_run_whose_collectors_wait)
