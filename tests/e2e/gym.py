#!/usr/bin/env python3
"""Gymnasium's environments as a user meets them: what such an environment must not do, what is missing, arguments and wrappers, runs
that are scaled, killed and stopped. Needs build/venv-gym (tools/test-venv)."""

import concurrent.futures
import contextlib
import json
import os
import re
import signal
import subprocess
import sys

from rig import ENDLESS, PATIENT, SANITIZED, SOURCE, TUTTI, check, equal, in_time, main, newest_update, wait_for

sys.path.insert(0, os.path.join(SOURCE, "tests"))
import pythons  # noqa: E402

VENV = pythons.folder_of("venv-gym")
PYTHON = os.path.join(VENV, "bin", "python3")

ENVS = os.path.join(SOURCE, "tests", "collector", "gym_envs")
ENV = {"TT_PYTHON": PYTHON, "PYTHONPATH": ENVS, "PYTHONDONTWRITEBYTECODE": "1"}
os.environ.update(ENV)  # for all that a world starts
JOB = """
name: job
env: gym:CartPole-v1
num_envs: 6
num_steps: 32
lag: 1
algorithm: {name: ppo, epochs: 1, minibatch_size: 64}
stop: {env_steps: 3840}
"""
BATCH = 6 * 32

# (what, exit code, words of the message); the env is gym:tt_gym_envs:Bad-WHAT-v0
BAD = [
    ("nan-step", 70, "observation[0] of env 0 is nan"),
    ("nanreward-step", 70, "reward[0] of env 0 is nan"),
    ("noreward-step", 70, "the reward is NoneType, not a number"),
    ("shape-step", 70, "the observation has shape (3,), but its space says (2,)"),
    ("dtype-step", 70, "the observation is of dtype <U1, but its space says float32"),
    ("none-step", 70, "but its space says (2,)"),
    ("four-step", 70, "returned 4 values, must be (observation, reward, terminated, truncated, info)"),
    ("nothing-step", 70, "returned NoneType, must be"),
    ("alone-reset", 70, "returned ndarray, must be (observation, info)"),
    ("raise-init", 70, "making it raised ZeroDivisionError: integer division or modulo by zero"),
    ("raise-reset", 70, "raised ZeroDivisionError"),
    ("raise-step", 70, "tt_gym_envs.py:"),
    ("brokenpipe-step", 70, "step of env 0 raised BrokenPipeError: [Errno 32] of its own ("),
    ("connreset-reset", 70, "reset of env 0 raised ConnectionResetError: of its own ("),
    ("nul-step", 70, "step of env 0 raised ValueError: a b [31mc ("),
    ("exit-init", 70, "making it ended the process with code 3"),
    ("exit-step", 70, "of env 0 ended the process with code 3"),
    ("sysexit-step", 70, "of env 0 called sys.exit(enough)"),
    ("segv-step", 70, "of env 0 crashed with signal 11"),
    ("abort-reset", 70, "reset of env 0 crashed with signal 6"),
    ("hang-init", 70, "making it did not come back within 15 s (TT_ENV_START_S)"),
    ("hang-reset", 70, "reset of env 0 did not come back within 15 s (TT_ENV_START_S)"),
    ("hang-step", 70, "step of env 0 did not come back within 2 s (TT_ENV_STEP_S)"),
    ("kill-step", 69, "was killed by signal 9 in step of env 0"),
    ("selfkill-step", 70, "step of env 0 sent its own process SIGKILL ("), ("selfterm-reset", 70, "reset of env 0 sent its own process SIGTERM ("),
    ("text-init", 65, "the observation space is Text, which is not supported"),
    ("integers-init", 65, "a box of int32 as an action is not supported"),
    ("fork-step", 0, ""), ("fork-init", 0, ""), ("interrupt-step", 0, ""), ("print-step", 0, ""), ("hang-close", 0, ""),
]
ONE_OF_EACH = ("nan-step", "brokenpipe-step", "shape-step", "raise-init", "exit-step", "segv-step", "hang-reset", "kill-step", "text-init", "fork-step", "print-step")
if SANITIZED:  # what differs among the others is Python's
    BAD = [bad for bad in BAD if bad[0] in ONE_OF_EACH]
LIMITS = {"TT_ENV_START_S": "15", "TT_ENV_STEP_S": "2"}  # of those that hang: the others have all the time they need


def play(world, what, count=1):
    limited = "hang" in what and "close" not in what  # closing has a limit of its own
    return world.tutti("bench", "envs", f"gym:tt_gym_envs:{what}", "-n", count, "-s", "0.01", env=LIMITS if limited else None)


def workers(world):
    return [pid for pid, line in world.processes().items() if "tutti_env" in line]


def test_what_an_env_must_not_do(world):
    """One message, the right code, nothing left: each of these."""
    with concurrent.futures.ThreadPoolExecutor(3) as pool:
        played = list(pool.map(lambda bad: play(world, f"Bad-{bad[0]}-v0"), BAD))
    for (what, code, words), done in zip(BAD, played):
        equal(done.returncode, code, f"{what}: exit code; stderr: {done.stderr[-2000:]}")
        last = done.stderr.strip().splitlines()[-1] if code else ""
        check(words in last, f"{what}: the message is {last!r}, wanted {words!r}")
        check(not code or f"env gym:tt_gym_envs:Bad-{what}-v0" in last, f"{what}: {last!r} names no env")
        equal(done.stderr.count("tutti bench envs: "), int(code != 0), f"messages of {what}")
    world.await_empty()


def test_where_it_stood(world):
    """A crash and a hang say the line; what an env prints is in the log, and on nobody's output."""
    for what in ("segv", "hang"):
        last = play(world, f"Bad-{what}-step-v0").stderr.strip().splitlines()[-1]
        check("; it said: File " in last and "line" in last, f"{what}: {last!r} says not where")
    done = play(world, "Bad-print-step-v0")
    check("worker 0: hello from the env" in done.stderr, f"not in the log: {done.stderr[-500:]}")
    check("hello" not in done.stdout and "\x1b" not in done.stderr, "printed as it came")


SAYS = {"raise": (70, "raised ZeroDivisionError"), "hang": (70, "did not come back within 2 s (TT_ENV_STEP_S)"),
        "segv": (70, "crashed with signal 11"), "kill": (69, "was killed by signal 9"), "shape": (70, "the observation has shape (3,)")}
if SANITIZED:
    SAYS = {how: SAYS[how] for how in ("hang", "segv", "shape")}


def assert_says(done, how, env_id, envs):
    code, words = SAYS[how]
    equal(done.returncode, code, f"{env_id}: exit code; stderr: {done.stderr[-2000:]}")
    last = done.stderr.strip().splitlines()[-1]
    check(words in last and any(f"step of env {env}" in last for env in envs), f"{env_id}: the message is {last!r}")


def test_either_env_of_a_worker(world):
    """What is bad is said with its env, while the other workers play; nothing is left."""
    cores = len(os.sched_getaffinity(0))  # as many workers, of two envs each
    for which in (0, 1):
        for how in SAYS:
            env_id = f"gym:tt_gym_envs:Bad{which}-{how}-v0"
            done = world.tutti("bench", "envs", env_id, "-n", 2 * cores, "-s", "0.01", env=LIMITS if how == "hang" else None)
            assert_says(done, how, env_id, range(which, 2 * cores, 2))
    world.await_empty()


def test_either_half(world):
    """One worker where there are cores for more plays in two halves, of an env each: the other one is under way."""
    build = os.environ["TT_BUILD_DIR"]
    gym_play, share = os.path.join(build, "tests", "collector", "gym_play"), os.path.join(build, "share", "tutti")
    for which in (0, 1):
        for how in SAYS:
            env_id = f"gym:tt_gym_envs:Bad{which}-{how}-v0"
            done = subprocess.run([gym_play, env_id, "1", "0", "2", "3", "1"], input=bytes(64), capture_output=True, check=False, timeout=120,
                                  env=dict(world.env, TT_SHARE=share, **(LIMITS if how == "hang" else {})))
            done.stderr = done.stderr.decode()
            assert_says(done, how, env_id, [which])
    world.await_empty()


def test_mujoco_writes_no_file(world):
    """What it warns of is in the log, once for each worker, and not in a file where the run was started."""
    done = world.tutti("bench", "envs", "gym:HalfCheetah-v5", "-n", 2, "-s", "0.01", env={"TT_ENV_STEP_S": "60"}, cwd=world.path)
    equal(done.returncode, 0, f"bench: {done.stderr}")
    check("MUJOCO_LOG.TXT" not in os.listdir(world.path), "a log of MuJoCo's in the current folder")
    check("worker 0: mujoco: compiler attribute" in done.stderr, f"not in the log: {done.stderr}")


OLD = f"""#!/bin/sh
exec {PYTHON} -c 'import runpy, sys; sys.version_info = (3, 6, 15); runpy.run_path(sys.argv[1], run_name="__main__")' "$@"
"""


def test_what_is_missing(world):
    empty, old = world.file("empty", ""), world.file("old", OLD)
    os.chmod(old, 0o755)
    for name, target in (("shut", "empty"), ("linked", "shut"), ("dangling", "/nowhere/python3.11")):
        os.symlink(target, os.path.join(world.path, name))
    linked, dangling = (os.path.join(world.path, name) for name in ("linked", "dangling"))
    os.mkdir(os.path.join(world.path, "no_atari"))
    world.file("no_atari/ale_py.py", "raise ImportError('no atari here')")
    bare = {"TT_PYTHON": "/usr/bin/python3", "PYTHONPATH": "", "VIRTUAL_ENV": ""}
    for env_id, env, code, words in [
        ("CartPole-v1", {"TT_PYTHON": "/nowhere/python3"}, 66, "TT_PYTHON names the Python interpreter /nowhere/python3, and there is no such program"),
        ("CartPole-v1", {"TT_PYTHON": empty}, 77, f"{empty}, which may not be run: Permission denied"),
        ("CartPole-v1", {"TT_PYTHON": linked}, 77, f"{linked}, which leads to {empty}, and that may not be run: Permission denied"),
        ("CartPole-v1", {"TT_PYTHON": dangling}, 66, f"{dangling}, which leads to /nowhere/python3.11, and there is no such program"),
        ("CartPole-v1", {"TT_PYTHON": "", "VIRTUAL_ENV": "", "CONDA_PREFIX": "", "PATH": "/nowhere"}, 66, "no python3 in PATH"),
        ("CartPole-v1", {"TT_PYTHON": "", "VIRTUAL_ENV": "/nowhere", "CONDA_PREFIX": "", "PATH": "/nowhere"}, 66,
         "VIRTUAL_ENV names the Python interpreter /nowhere/bin/python3, and there is no such program; there is no python3 in PATH"),
        ("CartPole-v1", {**bare, "TT_PYTHON": "", "VIRTUAL_ENV": "/nowhere", "CONDA_PREFIX": "", "PATH": "/usr/bin"}, 66,
         "(VIRTUAL_ENV names the Python interpreter /nowhere/bin/python3, and there is no such program: so it was not taken)"),
        ("CartPole-v1", {"TT_PYTHON": old}, 66, "is Python 3.6, and environments of Gymnasium's need 3.8 at least"),
        ("CartPole-v1", bare, 66, '/usr/bin/python3 -m pip install "gymnasium"'),
        ("ALE/Pong-v5", bare, 66, 'pip install "gymnasium[atari]"'),
        ("ALE/Pong-v5", {"PYTHONPATH": os.path.join(world.path, "no_atari")}, 66, 'pip install "gymnasium[atari]"'),
        ("CartPol-v1", {}, 66, "Did you mean: `CartPole`?"),
        ("ALE/Nothing-v5", {}, 66, "gymnasium has no such environment"),
        ("tt_gym_nothing:Some-v0", {}, 66, "no Python module 'tt_gym_nothing' in " + world.path),
        ("tt_gym_broken:Some-v0", {}, 66, "importing tt_gym_broken needs tt_there_is_no_such_package"),
        ("tt_gym_hangs:Some-v0", LIMITS, 70, "did not come back within"),
        ("", {}, 64, "An id of Gymnasium's stands behind it"),
    ]:
        done = world.tutti("envs", f"gym:{env_id}", env=env)
        equal(done.returncode, code, f"exit code of {env_id} with {env}: {done.stderr}")
        check(words in done.stderr, f"{env_id} with {env}: {done.stderr!r}, wanted {words!r}")
        equal(len(in_time(done.stderr).splitlines()), 1, f"lines of {done.stderr!r}")
        equal(done.stdout, "", "stdout")
    world.await_empty()


def test_simulators_that_it_leaves(world):
    """What an environment started in a session of its own ends with the command that played, and with a run."""
    env = "gym:tt_gym_envs:TTLeaves-v0"
    config = world.config(f"env: {{id: '{env}', workers: 1}}\nnum_envs: 2\nnum_steps: 32\nstop: {{env_steps: 128}}\n")
    for args in (("check", config), ("run", config, "--run-dir", "run", "--quiet"), ("eval", "run", "--episodes", 2),
                 ("bench", "envs", env, "-n", 2, "-s", "0.01"), ("envs", env)):
        done = world.tutti(*args)
        equal(done.returncode, 0, f"{args}: {done.stderr}")
        world.await_empty()  # a simulator that was left would stay; one that was killed may need a moment to be gone


def test_few_files(world):
    done = subprocess.run(["sh", "-c", 'ulimit -n 12; exec "$0" "$@"', TUTTI, "envs", "gym:CartPole-v1"], env=world.env, cwd=world.path,
                          capture_output=True, text=True, timeout=60, check=False)
    equal(done.returncode, 71, f"exit code: {done.stderr}")
    check("too many open files: raise the hard limit (ulimit -Hn)" in done.stderr, done.stderr)


def test_a_slow_beginning(world):
    """Who waits for it is told so, once, and not on stdout."""
    gate = os.path.join(world.path, "gate")
    config = world.config("env: {id: 'gym:tt_gym_envs:TTGate-v0', args: {gate: %s}}\nnum_envs: 1\nnum_steps: 32\nstop: {env_steps: 64}\n" % gate)

    def said():
        process.err.seek(0)
        return process.err.read()
    process = world.start("run", config, "--run-dir", "run", "--output", "json")
    wait_for(lambda: "waiting for the environment to be made" in said(), said)
    world.file("gate", "")
    code, out, err = world.finish(process)
    equal(code, 0, f"exit code: {err}")
    equal(err.count("waiting for the environment"), 1, f"how often that is said in {err}")
    equal(json.loads(out)["status"], "succeeded", "status")


def test_active_environments(world):
    """Without TT_PYTHON: the active virtual environment's."""
    done = world.tutti("envs", "gym:CartPole-v1", env={"TT_PYTHON": "", "VIRTUAL_ENV": VENV, "PATH": "/nowhere"})
    check(done.returncode == 0 and "float32[4]" in done.stdout, f"VIRTUAL_ENV: {done.stderr}")
    said = f"CONDA_PREFIX names the Python interpreter /nowhere/bin/python3, and there is no such program: {VENV}/bin/python3 is taken"
    done = world.tutti("envs", "gym:CartPole-v1", env={"TT_PYTHON": "", "VIRTUAL_ENV": "", "CONDA_PREFIX": "/nowhere", "PATH": f"{VENV}/bin"})
    check(done.returncode == 0 and done.stderr.count(said) == 1, f"one that is not there: {done.stderr}")
    done = world.tutti("envs", "gym:CartPole-v1", env={"TT_PYTHON": "", "VIRTUAL_ENV": "", "PATH": f"{VENV}/bin"})
    check(done.returncode == 0 and "float32[4]" in done.stdout, f"PATH: {done.stderr}")


def resolved(world, text, *sets):
    args = [word for item in sets for word in ("--set", item)]
    done = world.tutti("check", world.config(text), "--output", "json", *args)
    return done, (json.loads(done.stdout).get("config") if done.returncode == 0 else None)


def test_arguments_and_wrappers(world):
    words = ("env: {id: 'gym:tt_gym_envs:TTArgs-v0', args: {size: 3, flag: true, rate: 1e-3, name: abc, sides: [1, 2], "
             "deep: {a: -1, b: x y}}}")
    done, _ = resolved(world, words)
    equal(done.returncode, 0, f"arguments: {done.stdout}{done.stderr}")
    done, _ = resolved(world, words, "env.args.size=4")
    check(done.returncode == 78 and "'size': 4" in done.stderr, f"another argument: {done.stderr}")
    check("job.yaml:1:7: env, with env.args.size of --set: env gym:" in done.stderr, f"where it stands: {done.stderr}")
    for given, place in [("env.args.suton=true", "--set: env.args.suton: "), ("env.wrappers=[Foo]", "--set: env.wrappers: "),
                         ("env.mask=x", "--set: env.mask: "), ("env.python=/nothere", "--set: env.python: ")]:
        done, _ = resolved(world, "env:\n  id: gym:CartPole-v1\n  args: {sutton_barto_reward: true}", given)
        check(done.returncode == 78 and in_time(done.stderr).startswith("tutti check: " + place), f"{given}: {done.stderr}")
    done, _ = resolved(world, "env:\n  id: gym:CartPole-v1\n  args: {sutton: true}", "env.args.sutton_barto_reward=true")
    check(done.returncode == 78 and "yaml:3:10: env.args.sutton: " in done.stderr, f"an argument of the file: {done.stderr}")
    done, _ = resolved(world, "env: {id: 'gym:CartPole-v1', args: {sutton: true}}")
    check(done.returncode == 78 and "env.args" in done.stderr and "sutton" in done.stderr, f"no such argument: {done.stderr}")

    cart = """
env:
  id: gym:CartPole-v1
  wrappers:
    - FrameStackObservation(stack_size=3)
    - FlattenObservation
"""
    done, config = resolved(world, cart)
    equal(config and config["space.obs"]["value"], "float32[12]", f"stacked and flat: {done.stderr}")
    equal(config["env.wrappers"]["value"], ["FrameStackObservation(stack_size=3)", "FlattenObservation"], "wrappers")
    for wrappers, words in [("[FlattenObservations]", "did you mean 'FlattenObservation'?"),
                            ("[FrameStackObservation]", "env.wrappers: FrameStackObservation: TypeError"),
                            ("['FrameStackObservation(3)']", "arguments are given by name"),
                            ("['FrameStackObservation(stack_size=']", "is not Name or Name(key=value, ...)"),
                            ("['FrameStackObservation(stack_size=open(1))']", "is not Name or Name(key=value, ...)"),
                            ("[no_module_of_this:Name]", "No module named"),
                            ("FlattenObservation", "is not a list")]:
        done, _ = resolved(world, "env: gym:CartPole-v1", f"env.wrappers={wrappers}")
        check(done.returncode == 78 and words in done.stderr, f"{wrappers}: {done.stderr!r}, wanted {words!r}")
    done, _ = resolved(world, "env: CartPole-v1", "env.workers=2")
    check(done.returncode == 78 and "env.workers: only environments of Gymnasium's have it" in done.stderr, done.stderr)
    done, config = resolved(world, "env: CartPole-v1")
    equal([key for key in config if key.startswith("env.")], [], "keys of an environment that is not Gymnasium's")


def test_paths_of_a_config(world):
    """A module and an interpreter beside the config are found from another folder, and by a run that goes on elsewhere."""
    os.symlink(VENV, os.path.join(world.path, "venv"))
    with open(os.path.join(ENVS, "tt_gym_envs.py"), encoding="utf-8") as file:
        world.file("beside.py", file.read())
    config = world.config(JOB.replace("env: gym:CartPole-v1",
                                      "env: {id: 'gym:beside:Bad-print-close-v0', python: venv/bin/python3}"))
    run_dir = os.path.join(world.path, "run")
    env = {"TT_PYTHON": "/nowhere", "PYTHONPATH": ""}
    done = world.tutti("run", config, "--run-dir", run_dir, "--output", "json", env=env, cwd="/")
    equal(done.returncode, 0, f"from elsewhere: {done.stderr[-2000:]}")
    done = world.tutti("resume", run_dir, "--output", "json", "--set", "stop.env_steps=7680", env=env, cwd="/")
    equal(done.returncode, 0, f"resumed: {done.stderr[-2000:]}")


def test_masks(world):
    """What an env allows, in each form: it fails if it is given anything else. And what cannot be such a mask, in one message."""
    for how in ("flat", "one", "pair"):
        config = world.config(JOB.replace("gym:CartPole-v1", "{id: 'gym:tt_gym_envs:TTMasks-v0', mask: legal, args: {how: %s}}" % how))
        counts = (1, 2) if how == "flat" else (2,)  # what is made of it is the same from there on
        sums = {world.train(config, f"env.workers={count}", seed=3)["weights_sha256"] for count in counts}
        equal(len(sums), 1, f"weights with {counts} workers, {how}")
    for how, code, words in (("text", 78, "env.mask: info['legal'] has shape (), must be (5,)"),
                             ("box", 78, "env.mask is for an action space of"),
                             ("gone", 70, "info has no 'legal', which env.mask names; there is: nothing"),
                             ("shape", 70, "info['legal'] has shape (4,), must be (5,)"),
                             ("dtype", 70, "info['legal'] is of dtype float64"),
                             ("none", 70, "allows nothing for")):
        config = world.config(JOB.replace("gym:CartPole-v1", "{id: 'gym:tt_gym_envs:TTMasks-v0', mask: legal, args: {how: %s}}" % how))
        done = world.tutti("run", config, "--run-dir", os.path.join(world.path, f"mask-{how}"))
        equal(done.returncode, code, f"{how}: {done.stderr[-2000:]}")
        said = [line for line in (done.stdout + done.stderr).splitlines() if "its state cannot be saved" not in line]
        check(any(words in line for line in said), f"{how}: {said}, wanted {words!r}")
    done, _ = resolved(world, "env: {id: 'gym:CartPole-v1', mask: action_mask}")
    check(done.returncode == 78 and "env.mask: info has no 'action_mask'" in done.stderr, f"none there: {done.stderr}")
    world.await_empty()


def test_taxi_is_masked(world):
    """Gymnasium's own: PPO and DQN train on what it allows. What C makes of a mask is in test_masks, and what it learns by one in spaces.py."""
    if SANITIZED:
        return
    taxi = JOB.replace("gym:CartPole-v1", "{id: 'gym:Taxi-v4', mask: action_mask}")
    for algorithm in ("{name: ppo, epochs: 1, minibatch_size: 64}", "{name: dqn}"):
        config = world.config(taxi.replace("{name: ppo, epochs: 1, minibatch_size: 64}", algorithm))
        summary = world.train(config, seed=3)
        equal(summary["transitions"]["lost"], 0, "lost")


def test_a_run_fails_by_its_env(world):
    """One message with the env, what it did and where; the traceback in the collector's log."""
    config = world.config(JOB.replace("gym:CartPole-v1", "gym:tt_gym_envs:Bad-raise-step-v0"))
    run_dir = os.path.join(world.path, "run")
    done = world.tutti("run", config, "--run-dir", run_dir)
    equal(done.returncode, 70, f"exit code: {done.stderr[-2000:]}")
    said = [line for line in (done.stdout + done.stderr).splitlines() if "ZeroDivisionError" in line]
    check(said and all("env gym:tt_gym_envs:Bad-raise-step-v0: step of env" in line for line in said), f"said: {said}")
    with open(os.path.join(run_dir, "logs", "collector-0.log"), encoding="utf-8") as log:
        check("Traceback (most recent call last)" in log.read(), "no traceback in the log")
    world.await_empty()


def test_same_bits(world):
    """Whatever the number of workers is."""
    config = world.config(JOB)
    sums = {world.train(config, f"env.workers={count}", seed=3)["weights_sha256"] for count in (1, 2, 5)}
    equal(len(sums), 1, "weights with 1, 2 and 5 workers")


def await_more(world, process, run_dir, count=1000):
    world.await_steps(run_dir, world.look(run_dir, process)["env_steps"] + count, process)


def check_end(world, process, run_dir, config, what):
    """No step is lost, and the weights are those of a run that nobody disturbed."""
    summary = world.stop(process, run_dir)
    equal((summary["transitions"]["duplicated"], summary["transitions"]["lost"]), (0, 0), "transitions")
    end = (summary["updates"] + 1) * BATCH  # it does not train on its last batch
    still = world.train(config, f"stop.env_steps={end}", "env.workers=1", seed=5)
    equal(still["weights_sha256"], summary["weights_sha256"], f"weights after {summary['updates']} updates; {what}")
    world.await_empty()


def s_killed(world, env):
    config = world.config(JOB.replace("CartPole-v1", env))
    process, run_dir = world.start_run(config, ENDLESS, name=f"killed-{env}", seed=5)
    world.await_steps(run_dir, 1000, process)
    for victim in (lambda: workers(world)[0], lambda: world.replica("collector", 0)):
        before = set(workers(world))
        os.kill(victim(), signal.SIGKILL)
        wait_for(lambda: set(workers(world)) and not before & set(workers(world)), "other workers")
        await_more(world, process, run_dir)
    process.err.seek(0)
    said = process.err.read()
    check(f"collector/0: exit code 69: env gym:{env}: its worker (process" in said, f"what became of the worker is not said: {said}")
    check_end(world, process, run_dir, config, f"{env}: a worker and a collector were killed")


def test_a_worker_is_killed(world):
    """Its collector is started again, and the run goes on; so it does when the collector itself is killed. The envs go on from where they
    were: one whose state is copied, one whose actions are made again, and one of MuJoCo's, whose state lies in a library."""
    envs = ("CartPole-v1", "LunarLander-v3", "InvertedPendulum-v5")
    for env in envs[:2] if SANITIZED else envs:  # what MuJoCo's state is made of is Python's: it is copied like the first one's
        s_killed(world, env)


def test_resumed_after_all_were_killed(world):
    """kill -9 of everything at once: `tutti resume` goes on from the newest snapshot, states of the envs included."""
    for env in ("CartPole-v1",) if SANITIZED else ("CartPole-v1", "InvertedPendulum-v5"):
        config = world.config(JOB.replace("CartPole-v1", env))
        process, run_dir = world.start_run(config, ENDLESS, "checkpoint.every_s=0.2", name=f"all-{env}", seed=5)
        world.await_snapshot(run_dir, process)
        await_more(world, process, run_dir)
        world.kill_all(process)
        end = (newest_update(run_dir) + 10) * BATCH  # it went on until it was dead
        resumed = world.resume(run_dir, f"stop.env_steps={end}")
        still = world.train(config, f"stop.env_steps={end}", seed=5)
        for key in ("weights_sha256", "env_steps"):
            equal(resumed[key], still[key], f"{key} of {env}, resumed after everything was killed")
        world.await_empty()


def test_a_state_that_grows(world):
    """Where there is no room for it any more the env begins anew, which the logs say; and so does one whose state nobody can save."""
    for env, words in (("TTGrows", "could not be saved: it begins anew"), ("TTForgets", "cannot save its state")):
        config = world.config(JOB.replace("CartPole-v1", f"tt_gym_envs:{env}-v0"))
        process, run_dir = world.start_run(config, ENDLESS, name=env)
        world.await_steps(run_dir, 6 * 400, process)
        before = world.replica("collector", 0)
        os.kill(before, signal.SIGKILL)
        wait_for(lambda old=before: world.replica("collector", 0) != old, "another collector")
        await_more(world, process, run_dir)
        with open(os.path.join(run_dir, "logs", "collector-0.log"), encoding="utf-8") as log:
            text = log.read()
        check(words in text and "not reproducible" in text, f"{env}: the log says not {words!r}: {text[-2000:]}")
        world.stop(process, run_dir)
        world.await_empty()


def s_scalable(world, env, *sets):
    """A run of one collector with two workers, that goes on until it is stopped. With PATIENT no collector, and none of its workers, is
    replaced because the machine held it up."""
    config = world.config(JOB.replace("gym:CartPole-v1", env))
    name = "scaled-" + "".join(filter(str.isalnum, env))[:30]
    process, run_dir = world.start_run(config, ENDLESS, "env.workers=2", *sets, name=name, seed=5)
    world.await_steps(run_dir, 500, process)
    return config, process, run_dir


def s_scale(world, run_dir, wanted):
    done = world.tutti("scale", run_dir, f"collector={wanted}")
    equal(done.returncode, 0, f"scale: {done.stderr}")


def s_rosters(run_dir):
    """Those that collector 0 has had a range in."""
    with open(os.path.join(run_dir, "logs", "collector-0.log"), encoding="utf-8") as log:
        return log.read().count(": envs ")


def await_workers(world, count):
    return set(wait_for(lambda: len(workers(world)) == count and workers(world), lambda: f"{count} workers: {world.processes()}"))


def s_scaled(world, env):
    """Python is started for the new collector, and for nobody else."""
    config, process, run_dir = s_scalable(world, env, PATIENT)
    first = await_workers(world, 2)
    for wanted in (2, 1):
        s_scale(world, run_dir, wanted)
        there = await_workers(world, 2 * wanted)
        await_more(world, process, run_dir)
        equal(there, set(workers(world)), f"{env}: workers that there were, and after they have played")
        check(first <= there, f"{env}: other workers with {wanted} collectors: {first}, {there}")
    check_end(world, process, run_dir, config, f"{env}: scaled")


def test_scaled_live(world):
    """From one collector to two and back: what moves is copied, or its actions are made again; MuJoCo's and the emulator's lie in a library."""
    envs = ("gym:LunarLander-v3", "{id: 'gym:ALE/Pong-v5', args: {obs_type: ram, repeat_action_probability: 0}}", "gym:InvertedPendulum-v5")
    for env in envs[:1] if SANITIZED else envs:  # actions that are made again; a state that is copied moves in test_killed_in_a_move
        s_scaled(world, env)


def test_actions_that_are_made_again_slowly(world):
    """All of them take longer than net.stall_s: who resumes the run says what it does and gets on, hears that it is to end, and comes through."""
    config = world.config(JOB.replace("gym:CartPole-v1", "{id: 'gym:tt_gym_envs:TTSlow-v0', args: {pause: 0.015}, workers: 1}"))
    process, run_dir = world.start_run(config, ENDLESS, "checkpoint.every_s=0.5", seed=5)
    world.await_steps(run_dir, 6 * 160, process)  # fifteen seconds of one worker
    wait_for(lambda: newest_update(run_dir) >= 5, "a snapshot")
    world.kill_all(process)
    process = world.start("resume", run_dir, "--output", "json", "--set", "net.stall_s=10")
    wait_for(lambda: "loading states of envs 0..5" in json.dumps(world.status(run_dir) or {}), "a collector that loads")
    world.stop(process, run_dir)
    with open(os.path.join(run_dir, "logs", "collector-0.log"), encoding="utf-8") as log:
        check("leaving after 0 env steps" in log.read(), "it has not left of itself while states were loaded")
    end = (newest_update(run_dir) + 2) * BATCH
    equal(world.resume(run_dir, "net.stall_s=10", f"stop.env_steps={end}")["env_steps"], end, "env steps")
    world.await_empty()


def test_a_new_collector_warms_up(world):
    """While it makes its environments the run goes on without it, also when it dies at that."""
    gate = world.file("gate", "")
    config, process, run_dir = s_scalable(world, "{id: 'gym:tt_gym_envs:TTGate-v0', args: {gate: %s}}" % gate, PATIENT)
    os.unlink(gate)
    s_scale(world, run_dir, 2)
    for again in (False, True):
        if again:
            killed = world.replica("collector", 1)
            os.kill(killed, signal.SIGKILL)
            wait_for(lambda old=killed: world.replica("collector", 1) != old, "another collector")
        wait_for(lambda: ((world.status(run_dir) or {}).get("replicas") or {}).get("collector", {}).get("warming") == 1, "one that is warming")
        await_more(world, process, run_dir)
        equal(s_rosters(run_dir), 1, "rosters that the first collector had a range in")
    with open(gate, "w", encoding="utf-8"):
        pass
    wait_for(lambda: s_rosters(run_dir) == 2, "a roster with both")
    await_more(world, process, run_dir)
    check_end(world, process, run_dir, config, "one joined, warm")


def test_killed_in_a_move(world):
    """A worker, then its collector, as soon as they have heard of their other range: the run goes on as if nothing had been."""
    for env in ("gym:CartPole-v1",) if SANITIZED else ("gym:CartPole-v1", "gym:LunarLander-v3"):
        config, process, run_dir = s_scalable(world, env)
        for victim in (lambda: min(s_workers_of(world, world.replica("collector", 0))), lambda: world.replica("collector", 0)):
            for wanted in (2, 1):
                rosters = s_rosters(run_dir)
                s_scale(world, run_dir, wanted)
                wait_for(lambda before=rosters: s_rosters(run_dir) > before, f"a roster of {wanted} collectors")
                killed = victim()
                with contextlib.suppress(ProcessLookupError):  # it may have had no env left
                    os.kill(killed, signal.SIGKILL)  # a worker between two ranges is only replaced, else its collector is
                wait_for(lambda gone=killed: gone not in world.processes(), "the end of what was killed")
                await_more(world, process, run_dir)
        check_end(world, process, run_dir, config, f"{env}: killed in a move")


def test_what_does_not_close(world):
    """Envs that have to go with their range, and crash or hang at that: their worker ends with it, as it would have before, and another one
    is started. One that raises is closed."""
    for how, goes in (("segv", True), ("hang", True), ("raise", False))[SANITIZED:]:
        config, process, run_dir = s_scalable(world, f"gym:tt_gym_envs:Bad-{how}-close-v0", PATIENT)
        first = await_workers(world, 2)
        s_scale(world, run_dir, 2)
        wait_for(lambda: s_rosters(run_dir) > 1, "a roster of two collectors")
        await_more(world, process, run_dir)
        there = await_workers(world, 4)
        equal(len(first & there), 0 if goes else 2, f"{how}: workers of before")
        with open(os.path.join(run_dir, "logs", "collector-0.log"), encoding="utf-8") as log:
            equal("ends with its range" in log.read(), goes, f"{how}: it is said in the log")
        check_end(world, process, run_dir, config, f"{how} when an env is closed")


def test_workers_without_envs(world):
    """Who has none in a smaller range waits for a larger one, and is gone after a while."""
    config = world.config(JOB.replace("num_envs: 6", "num_envs: 2"))
    for idle_s, stays in (("60", 2), ("1", 1)):
        process, run_dir = world.start_run(config, ENDLESS, PATIENT, "env.workers=2", name=f"idle-{idle_s}", seed=5, env={"TT_ENV_IDLE_S": idle_s})
        world.await_steps(run_dir, 300, process)
        first = await_workers(world, 2)
        s_scale(world, run_dir, 2)
        wait_for(lambda: s_rosters(run_dir) > 1, "a roster of two collectors")
        await_more(world, process, run_dir, 200)
        there = await_workers(world, 1 + stays)
        equal(len(first & there), stays, "workers of before, with one env less")
        s_scale(world, run_dir, 1)
        wait_for(lambda: s_rosters(run_dir) > 2, "a roster of one collector again")
        await_more(world, process, run_dir, 200)
        there = await_workers(world, 2)
        equal(len(first & there), stays, "workers of before, with both again")
        world.stop(process, run_dir)
        world.await_empty()


def s_parent(pid):
    try:
        with open(f"/proc/{pid}/status", encoding="utf-8") as file:
            return int(re.search(r"(?m)^PPid:\s*(\d+)$", file.read()).group(1))
    except (OSError, AttributeError):
        return 0


def s_workers_of(world, collector):
    """Another collector's may be ending with it."""
    return wait_for(lambda: [pid for pid in workers(world) if s_parent(pid) == collector], lambda: f"workers of {collector}: {world.processes()}")


def s_simulators(world, worker):
    """Those that this process started; when it is gone they have another parent."""
    return {pid for pid, line in world.processes().items() if line.startswith("sleep ") and s_parent(pid) == worker}


def test_a_simulator_ends_with_its_worker(world):
    """Not with the run."""
    config = world.config(JOB.replace("num_envs: 6", "num_envs: 2").replace("gym:CartPole-v1", "gym:tt_gym_envs:TTOwns-v0"))
    process, run_dir = world.start_run(config, ENDLESS, PATIENT, "env.workers=2", seed=5, env={"TT_ENV_IDLE_S": "1"})
    world.await_steps(run_dir, 300, process)
    there = {worker: s_simulators(world, worker) for worker in await_workers(world, 2)}
    check(all(there.values()), f"simulators of the workers: {there}")
    s_scale(world, run_dir, 2)
    gone = wait_for(lambda: set(there) - set(workers(world)), "the end of a worker without envs")
    equal(len(gone), 1, "workers that went")
    wait_for(lambda: not there[list(gone)[0]] & set(world.processes()), "the end of its simulator")
    check(all(there[worker] <= set(world.processes()) for worker in set(there) - gone), "the other's simulator is there")
    world.stop(process, run_dir)
    world.await_empty()


def test_another_interpreter_where_nothing_is_saved(world):
    """An env whose state cannot be saved begins anew in a process that has played nothing yet."""
    _, process, run_dir = s_scalable(world, "gym:tt_gym_envs:TTForgets-v0")
    first = await_workers(world, 2)
    s_scale(world, run_dir, 2)
    wait_for(lambda: len(workers(world)) == 4 and not first & set(workers(world)), "four other workers")
    await_more(world, process, run_dir)
    world.stop(process, run_dir)
    world.await_empty()


def test_interrupted(world):
    """Ctrl-C goes to everybody of the terminal's group; what is killed at once leaves nothing either."""
    config = world.config(JOB)
    for number in (signal.SIGINT, signal.SIGKILL):
        process, run_dir = world.start_run(config, ENDLESS, name=f"run-{number}", by=("setsid",))
        world.await_steps(run_dir, 300, process)
        os.killpg(process.pid, number)
        process.wait(timeout=60)
        world.await_empty()
        with open(os.path.join(run_dir, "logs", "collector-0.log"), encoding="utf-8") as log:
            check("Traceback" not in log.read(), "a traceback")


def test_evaluated(world):
    """Beside training, and a checkpoint afterwards."""
    summary = world.train(world.config(JOB), "eval.every=1000", "eval.episodes=3")
    check(summary["eval"] and summary["eval"]["episodes"] == 3, f"eval is {summary['eval']}")
    done = world.tutti("eval", summary["run_dir"], "-n", 4, "--output", "json")
    equal(done.returncode, 0, f"tutti eval: {done.stderr}")
    native = world.tutti("eval", summary["run_dir"], "-n", 4, "--env", "CartPole-v1", "--output", "json")
    equal(native.returncode, 0, f"tutti eval --env: {native.stderr}")
    world.await_empty()


def test_a_loud_env(world):
    """Its log keeps its beginning and its end and says what is missing; who followed it has all that was there when it was looked at."""
    count = 3072
    process, run_dir = world.start_run(world.config(JOB), "env.id=gym:tt_gym_envs:TTLoud-v0", "env.workers=1", "num_envs=1", "algorithm.minibatch_size=32",
                                       f"stop.env_steps={count}",
                                       env={"TT_LOG_MB": "1"})
    wait_for(lambda: os.path.exists(os.path.join(run_dir, "logs", "collector-0.log")), "the log")
    follower = world.start("logs", "-f", run_dir, "collector")
    world.summary(process)
    path = os.path.join(run_dir, "logs", "collector-0.log")
    # a follower may be reading at any moment, and so at each in which it would be cut: it grows to twice the limit then (controller/logfile.h)
    check(os.path.getsize(path) < 2 << 20, f"{os.path.getsize(path)} bytes of {count * 900}")
    followed = world.finish(follower)[1]
    for said in (world.tutti("logs", run_dir, "collector").stdout, followed):
        lines = said.splitlines()
        check("in as collector/0" in "".join(lines[:5]), f"the first lines are {lines[:5]}")
        numbers = [int(number) for number in re.findall(r"worker 0: loud (\d+)\.", said)]
        check(numbers[0] == 1 and numbers[-1] >= count and numbers == sorted(set(numbers)), f"{numbers[0]} .. {numbers[-1]}, {len(numbers)} of them")
        gaps = re.findall(r"(?m)^--- tutti: (\d+) bytes are missing here", said)
        missing = sum(later - former - 1 for former, later in zip(numbers, numbers[1:]))
        check(len(gaps) == 1 if said != followed else len(gaps) <= 4, f"gaps: {gaps}")
        check((missing > 0) == (len(gaps) > 0) or said == followed, f"{missing} lines are missing, and said of that is {gaps}")


def test_learns(world):
    """The bundled config solves it, played by Python. Runs as short as a sanitizer would have them are in test_same_bits."""
    if SANITIZED:
        return
    done = world.tutti("run", "cartpole-ppo", "--env", "gym:CartPole-v1", "--output", "json", "--set", "stop.return_mean=475", deadline=300)
    equal(done.returncode, 0, f"the run: {done.stderr[-2000:]}")
    summary = json.loads(done.stdout)
    check(summary["return_mean"] >= 475, f"return {summary['return_mean']}")


main(test_what_an_env_must_not_do, test_where_it_stood, test_either_env_of_a_worker, test_either_half, test_mujoco_writes_no_file, test_what_is_missing, test_simulators_that_it_leaves, test_few_files, test_a_slow_beginning, test_active_environments,
     test_arguments_and_wrappers, test_masks, test_taxi_is_masked, test_paths_of_a_config, test_a_run_fails_by_its_env, test_same_bits,
     test_a_worker_is_killed, test_resumed_after_all_were_killed, test_a_state_that_grows, test_scaled_live, test_actions_that_are_made_again_slowly, test_a_new_collector_warms_up, test_killed_in_a_move,
     test_what_does_not_close, test_workers_without_envs, test_a_simulator_ends_with_its_worker, test_another_interpreter_where_nothing_is_saved,
     test_interrupted, test_evaluated, test_a_loud_env, test_learns)
