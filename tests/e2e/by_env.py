#!/usr/bin/env python3
"""The shortest commands: an environment's id for a config, --env, and a run's name for its checkpoint."""

import json
import os
import re
import shutil
import subprocess
import sys

sys.dont_write_bytecode = True
from rig import TUTTI, bundled, check, equal, gym_python, in_time, main

SOURCE = os.environ["TT_SOURCE_DIR"]
BUILD = os.environ["TT_BUILD_DIR"]
GYM = gym_python()  # without it the configs of Gymnasium's environments are passed over
if GYM:
    os.environ["TT_PYTHON"] = GYM
DRIFT = os.path.join(BUILD, "tests", "collector", "plugins", "drift.so")


def s_config(world, *args, code=0, tutti=None):
    """What `tutti check` says: (values by key, stderr)."""
    done = subprocess.run([tutti or TUTTI, "check", *args, "--output", "json"], cwd=world.path, env=world.env,
                          capture_output=True, text=True, timeout=60, check=False)
    equal(done.returncode, code, f"check {' '.join(args)}: {done.stderr}")
    said = json.loads(done.stdout)
    return ({key: item["value"] for key, item in said["config"].items()} if code == 0 else said["error"]), in_time(done.stderr)


def test_every_env_has_its_config(world):
    configs = {name: env for name, env in bundled().items() if GYM or not env.startswith("gym:")}
    envs = [env["id"] for env in json.loads(world.tutti("envs", "--output", "json").stdout)["envs"]]
    check(len(envs) >= 5, f"{envs}")
    for env in envs:
        values, note = s_config(world, env)
        equal(values["env"], env, f"the environment of check {env}")
        chosen = re.fullmatch(rf"tutti check: {env} by the bundled config ([^\s,]+)(?:, which is for (\S+))?\n", note)
        check(chosen and configs[chosen.group(1)] == (chosen.group(2) or env), f"check {env} says {note!r}")
        check(not chosen.group(2) or chosen.group(2).split("/")[0] == env.split("/")[0], f"another family: {note!r}")
        equal(values["name"], chosen.group(1), f"the config of {env}")
    # a name is found in one way, whoever plays, and recipes.py has each of Gymnasium's by its own: one of them says the same here
    for name in [name for name, env in configs.items() if not env.startswith("gym:")] + ["lunarlander-ppo"] * bool(GYM):
        equal(s_config(world, name), (s_config(world, os.path.join(SOURCE, "configs", name + ".yaml"))[0], ""), name)


def test_gym_family(world):
    """An Atari game without a config of its own is played as Pong; what has no family, with every setting at its default."""
    if not GYM:
        return
    for env, said in (("gym:ALE/Qbert-v5", "gym:ALE/Qbert-v5 by the bundled config qbert-ppo"),
                      ("gym:ALE/Breakout-v5", "gym:ALE/Breakout-v5 by the bundled config pong-ppo, which is for gym:ALE/Pong-v5"),
                      ("gym:LunarLander-v3", "gym:LunarLander-v3 by the bundled config lunarlander-ppo"),
                      ("gym:CartPole-v1", "no bundled config for gym:CartPole-v1: every setting at its default ('tutti config')")):
        values, note = s_config(world, env)
        equal((values["env"], note), (env, f"tutti check: {said}\n"), env)
        if "Breakout" in env:
            equal((values["space.obs"], values["env.stack"]), ("uint8[84, 84]", 4), "what the wrappers of the family make")


def test_after_install(world):
    prefix = os.path.join(world.path, "prefix")
    for folder, files in (("bin", [TUTTI]), ("share/tutti/configs", [])):
        os.makedirs(os.path.join(prefix, folder))
        for file in files:
            shutil.copy(file, os.path.join(prefix, folder))
    installed = os.path.join(prefix, "bin", "tutti")
    values, note = s_config(world, "CartPole-v1", tutti=installed)
    check("no bundled config for CartPole-v1: every setting at its default" in note, f"without configs: {note!r}")
    equal((values["env"], values["algorithm.clip"]), ("CartPole-v1", 0.2), "the defaults")
    shutil.copy(os.path.join(SOURCE, "configs", "cartpole-ppo.yaml"), os.path.join(prefix, "share/tutti/configs"))
    values, note = s_config(world, "CartPole-v1", tutti=installed)
    check(note.endswith("by the bundled config cartpole-ppo\n"), f"with its config: {note!r}")
    equal(values["network.hidden"], [32, 32], "a setting of the config")


def test_a_run_and_its_eval(world):
    done = world.tutti("run", "CartPole-v1", "--set", "stop.env_steps=4096", "--output", "json")
    equal(done.returncode, 0, f"run CartPole-v1: {done.stderr}")
    check("tutti run: CartPole-v1 by the bundled config cartpole-ppo\n" in done.stderr, f"it says {done.stderr!r}")
    run = json.loads(done.stdout)["run"]
    equal(run, "cartpole-ppo-1", "the run's name")
    said = [world.tutti("eval", run, "--episodes", "3", "--output", "json", cwd=cwd) for cwd in (world.path, "/")]
    equal([one.returncode for one in said], [0, 0], f"eval by name: {said[0].stderr}{said[1].stderr}")
    by_name, by_dir = json.loads(said[0].stdout), json.loads(
        world.tutti("eval", f"runs/{run}", "--episodes", "3", "--output", "json").stdout)
    check(by_name["checkpoint"].endswith(f"{run}/checkpoints/final.safetensors"), by_name["checkpoint"])
    equal({**by_name, "checkpoint": ""}, {**by_dir, "checkpoint": ""}, "eval by name and by directory")
    equal(json.loads(said[1].stdout), by_name, "eval by name from elsewhere")
    # as a run has it that still goes, or was killed
    os.rename(by_name["checkpoint"], os.path.join(os.path.dirname(by_name["checkpoint"]), f"{by_name['updates']:08}.safetensors"))
    done = world.tutti("eval", run, "--episodes", "3", "--output", "json")
    newest = json.loads(done.stdout)
    check("its newest is taken" in done.stderr and newest["updates"] == by_name["updates"], done.stderr)
    equal(newest["return_mean"], by_name["return_mean"], "the newest is what the final was")
    shutil.rmtree(os.path.dirname(newest["checkpoint"]))
    done = world.tutti("eval", run)
    check(done.returncode == 66 and "has no weights yet" in done.stderr, f"{done.returncode}: {done.stderr}")
    done = world.tutti("eval", "cartpole-ppo-11")
    check(done.returncode == 66 and f"did you mean '{run}'" in done.stderr, f"{done.returncode}: {done.stderr}")
    equal(in_time(world.tutti("run", "CartPole-v1", "--quiet", "--set", "stop.env_steps=4096").stderr), "", "run --quiet")


def test_env_overrides(world):
    values, note = s_config(world, "cartpole-ppo", "--env", "Pendulum-v1", "--set", "env=Acrobot-v1")
    equal((values["env"], values["space.obs"], note), ("Pendulum-v1", "float32[3]", ""), "--env")
    done = world.tutti("run", world.config(), "--env", "MountainCar-v0", "--set", "stop.env_steps=1024", "--output", "json")
    equal(done.returncode, 0, f"run --env: {done.stderr}")
    with open(os.path.join(json.loads(done.stdout)["run_dir"], "config.yaml"), encoding="utf-8") as file:
        check("\nenv: MountainCar-v0\n" in file.read(), "the run's config has another environment")
    for args, said in ((("--env", "Pendulum-v1"), "--env Pendulum-v1"), (("--set", "env=Pendulum-v1"), "--set env=Pendulum-v1")):
        for command in ("run", "check"):  # an environment in the config's place brings its settings and its goal
            done = world.tutti(command, "CartPole-v1", *args)
            check(done.returncode == 64 and f"CartPole-v1 beside {said}: give one environment" in done.stderr, f"{args}: {done.stderr}")
    equal(s_config(world, "CartPole-v1", "--env", "CartPole-v1")[0]["env"], "CartPole-v1", "the same twice")
    error, _ = s_config(world, "cartpole-ppo", "--env", "", code=78)
    check(error.startswith("--env: env"), error)
    manifest = os.path.join(SOURCE, "configs", "k8s", "dijob-cartpole.yaml")
    for command in ("run", "check"):
        done = world.tutti(command, manifest, "--env", "Pendulum-v1")
        check(done.returncode == 64 and "--env is for configs of ours" in done.stderr, f"{command}: {done.stderr}")
    error, _ = s_config(world, "cartpole-ppo", "--env", "Pendulm-v1", code=78)
    check(error.startswith("--env: env: no env 'Pendulm-v1'; did you mean 'Pendulum-v1'?"), error)
    shutil.copy(DRIFT, os.path.join(world.path, "drift.so"))
    os.mkdir(os.path.join(world.path, "below"))
    shutil.copy(world.config(), os.path.join(world.path, "below", "job.yaml"))
    for args in (("drift.so",), ("below/job.yaml", "--env", "drift.so")):  # a path is one from here
        values, note = s_config(world, *args)
        equal(values["env"], os.path.realpath(os.path.join(world.path, "drift.so")), f"{args}")
    check("no bundled config for drift.so" in s_config(world, "drift.so")[1], "nothing is said of the defaults")


def test_what_is_neither(world):
    error, _ = s_config(world, "CartPole-v0", code=66)
    equal(error, "no file 'CartPole-v0', and no bundled config or environment is called that; did you mean 'CartPole-v1'?",
          "an unknown name")
    error, _ = s_config(world, "cartpole-ppo-zo", code=66)
    check("did you mean 'cartpole-ppo-zoo'?" in error, error)
    error, _ = s_config(world, "my.yaml", code=66)
    check("my.yaml: No such file" in error, error)
    os.mkdir(os.path.join(world.path, "CartPole-v1"))  # a directory is no config
    check("by the bundled config" in s_config(world, "CartPole-v1")[1], "a directory hides the environment")
    os.rmdir(os.path.join(world.path, "CartPole-v1"))
    world.file("CartPole-v1", "env: Pendulum-v1\n")
    values, note = s_config(world, "CartPole-v1")
    equal(values["env"], "Pendulum-v1", "a file of that name")
    check("CartPole-v1 is a file here, and taken as the config" in note, note)
    world.file("CartPole-v1", "seed: 1\n")
    error, _ = s_config(world, "CartPole-v1", code=78)
    check("is a file here" in error and "'env' is missing" in error, error)


main(test_every_env_has_its_config, test_gym_family, test_after_install, test_a_run_and_its_eval, test_env_overrides, test_what_is_neither)
