#!/usr/bin/env python3
"""Every bundled config trains: three batches and what is learned from them. Those of Gymnasium's environments need build/venv-gym
(tools/test-venv). The runs stay in the build folder, for tests/export/policies.py."""

import json
import os
import shutil
import sys

from rig import bundled, check, equal, gym_python, main

KEPT = os.path.join(os.environ["TT_BUILD_DIR"], "recipes")
GYM = gym_python()
if GYM:
    os.environ["TT_PYTHON"] = GYM


def short(values):
    """Settings for a run of three batches: a replay is learned from at once, and a screen is played for fewer steps."""
    steps = values["num_steps"]
    if values["algorithm.name"] in ("dqn", "sac", "td3"):
        yield "algorithm.learning_starts=0"
    elif values["network.encoder"] != "none":
        steps = 16
        yield f"num_steps={steps}"
    yield f"stop.env_steps={3 * values['num_envs'] * steps}"


def s_trains(world, name, env):
    said = json.loads(world.tutti("check", name, "--output", "json").stdout)["config"]
    values = {key: item["value"] for key, item in said.items()}
    equal((values["name"], values["env"]), (name, env), f"name and environment of {name}")
    settings = [word for setting in short(values) for word in ("--set", setting)]
    done = world.tutti("run", name, "--quiet", "--output", "json", "--run-dir", os.path.join(KEPT, name), *settings)
    equal(done.returncode, 0, f"run {name} {settings}: {done.stderr}")
    result = json.loads(done.stdout)
    check(result["updates"] >= 2 and result["transitions"]["lost"] == 0, f"{name}: {result}")
    return result


def test_every_config_trains(world):
    shutil.rmtree(KEPT, ignore_errors=True)
    for name, env in bundled().items():
        if GYM or not env.startswith("gym:"):
            print(f"  {name}: {s_trains(world, name, env)['wall_s']:.1f} s", file=sys.stderr)


if not GYM:
    print("the configs of Gymnasium's environments are left out: tools/test-venv makes build/venv-gym, which they need")
main(test_every_config_trains)
