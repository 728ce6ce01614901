#!/usr/bin/env python3
"""Many environments with random actions, moved by a vector environment written in C++: EnvPool's or ALE's own. Steps a second, as a JSON line.

    native_vector.py --kind envpool|ale --env ID --count N --seconds S

Atari's come as both make them: four frames a step, as ALE/Pong-v5, but 84 x 84, grey and four of them.
"""
import argparse
import json
import os
import subprocess
import sys
import time

from probe import install, interpreter

PARSER = argparse.ArgumentParser(description=__doc__.splitlines()[0])
PARSER.add_argument("--kind", choices=("envpool", "ale"))
PARSER.add_argument("--env", help="as Gymnasium calls it")
PARSER.add_argument("--count", type=int)
PARSER.add_argument("--seconds", type=float)
PARSER.add_argument("--install", action="store_true", help="make the environment, run nothing")
ARGS = PARSER.parse_args()
if os.path.realpath(sys.prefix) != os.path.realpath(os.path.dirname(os.path.dirname(interpreter("vector")))):
    PYTHON = install("vector")
    sys.exit(0 if ARGS.install else subprocess.run([PYTHON, *sys.argv]).returncode)

import numpy  # noqa: E402


def envpool_make(name, count):
    import envpool
    return envpool.make_gymnasium(name.removeprefix("ALE/"), num_envs=count, num_threads=len(os.sched_getaffinity(0)), seed=1)


def ale_make(name, count):
    from ale_py.vector_env import AtariVectorEnv
    game = name.removeprefix("ALE/").split("-")[0].lower()
    return AtariVectorEnv(game=game, num_envs=count, num_threads=len(os.sched_getaffinity(0)), repeat_action_probability=0.25)


def actions(env, count):
    """As many for each environment; EnvPool's spaces are of one of them."""
    space = getattr(env, "single_action_space", env.action_space)
    space.seed(1)
    return [numpy.stack([numpy.asarray(space.sample()) for _ in range(count)]) for _ in range(64)]


def main():
    env = {"envpool": envpool_make, "ale": ale_make}[ARGS.kind](ARGS.env, ARGS.count)
    env.reset()
    drawn = actions(env, ARGS.count)
    steps, start = 0, time.perf_counter()
    while time.perf_counter() - start < ARGS.seconds:
        for action in drawn:
            env.step(action)
        steps += ARGS.count * len(drawn)
    rate = steps / (time.perf_counter() - start)
    print(json.dumps({"kind": ARGS.kind, "env": ARGS.env, "count": ARGS.count, "steps_per_s": rate}), flush=True)


main()
