#!/usr/bin/env python3
"""States of Gymnasium's environments: which can be saved and how, in a process of their own each; what a state may not call; one that has
grown, and one that is damaged."""

import json
import os
import pickle
import subprocess
import sys

sys.dont_write_bytecode = True
SOURCE = os.environ["TT_SOURCE_DIR"]
sys.path.insert(0, os.path.join(os.environ["TT_SOURCE_DIR"], "tests"))
import pythons  # noqa: E402

pythons.run_with("venv-gym", "gymnasium", "numpy")
import gymnasium  # noqa: E402
import numpy as np  # noqa: E402
from gymnasium.vector import AutoresetMode  # noqa: E402

sys.path[1:1] = [os.path.join(SOURCE, "python"), os.path.join(SOURCE, "tests", "collector", "gym_envs")]
from tutti_env import faults, making, state, trial  # noqa: E402

WRAPPED = ["RecordEpisodeStatistics", "NormalizeObservation", "FrameStackObservation(stack_size=3)"]
FRAMES = ["GrayscaleObservation", "MaxAndSkipObservation(skip=2)", "FrameStackObservation(stack_size=3)"]
FRAMED = {"screen_size": 84, "frame_skip": 4, "noop_max": 30, "terminal_on_life_loss": True, "clip_reward": True}
# (id, arguments, wrappers, by what kinds, or a word of why not)
ENVS = [("CartPole-v1", [], [], "copy replay"),
        ("CartPole-v1", [], WRAPPED, "copy"),
        ("HalfCheetah-v5", [], [], "copy"),
        ("Ant-v5", [], [], "copy"),
        ("ALE/Pong-v5", [["frameskip", "1"], ["repeat_action_probability", "0"]], FRAMES, "copy"),
        ("ALE/Pong-v5", [], [], ""),  # sticky actions
        ("ALE/Breakout-v5 frames", [["repeat_action_probability", "0"]], [], "copy"),
        ("LunarLander-v3", [], [], "replay"),
        ("FrozenLake-v1", [], [], "copy replay"),
        ("Taxi-v4", [], [], "copy replay"),
        ("tt_gym_envs:TTZoo-v0", [], [], "copy"),
        ("tt_gym_envs:TTPhases-v0", [], [], "copy"),
        ("tt_gym_envs:TTForgets-v0", [], [], ""),
        ("tt_gym_envs:Bad-raise-step-v0", [], [], "")]


def maker(env_id, args=(), wrappers=(), mask=""):
    env_id, framed, _ = env_id.partition(" frames")
    return making.Maker({"id": env_id, "args": args, "wrappers": wrappers, "path": [], "mask": mask, "frames": FRAMED if framed else None})


def part(name, kind, env, text=""):
    """One process of a trial."""
    words = [sys.executable, __file__, name, kind, json.dumps(env)]
    done = subprocess.run(words, input=text, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout.splitlines()[-1]


def check_env(env):
    env_id, _, wrappers, kinds = env
    for kind in state.KINDS:
        answer = json.loads(part("load", kind, env, part("save", kind, env)))
        can = "room" in answer
        assert can or answer["why"], f"{env_id}: {answer}"
        wanted = kind in kinds.split()
        assert can == wanted or (kind == "replay" and kinds == "copy"), f"{env_id} {wrappers} by {kind}: {answer}"
    print(f"ok      {env_id} {wrappers}: {kinds or 'cannot be saved'}", flush=True)


def refused(copy, data, what):
    try:
        copy.load(data)
    except faults.Fault as fault:
        assert fault.status == "INTERNAL" and "saved state" in fault.text, fault.text
        return
    raise AssertionError(f"{what} was loaded")


NO_SIGNS = pickle.dumps({})


def of(rest):
    """A state that says so of what its layers have besides what is held, of which it says nothing."""
    return NO_SIGNS + pickle.dumps((rest, {}))


class Calls:
    def __init__(self, function, *args):
        self.function, self.args = function, args

    def __reduce__(self):
        return self.function, self.args


def check_calls():
    """A state that would run something is refused before it does; so is one that is cut off."""
    env = gymnasium.make("CartPole-v1", disable_env_checker=True)
    env.reset(seed=1)
    copy = state.Copy(env, None)
    assert len(copy.layers) == 3, copy.layers  # or all of the following would be refused for that
    good = copy.save()
    there = os.path.join(os.getcwd(), "tt-there-must-be-no-such-file")
    for call in (Calls(os.system, f"touch {there}"), Calls(eval, "1"), Calls(getattr, copy, "save"), Calls(open, there, "w"),
                 Calls(np.load, there), Calls(gymnasium.make, "CartPole-v1"), Calls(gymnasium.register, "X-v0"),
                 Calls(subprocess.Popen, "true")):
        refused(copy, of([{}, {}, {"x": call}]), call.function)
        refused(copy, pickle.dumps({(0, "x"): call}) + of([{}, {}, {}])[len(NO_SIGNS):], call.function)
    for kind, name in ((AutoresetMode, "mro"), (AutoresetMode, "__init__"), (gymnasium.Env, "step"), (gymnasium.Env, "metadata")):
        refused(copy, of([{}, {}, {"x": Calls(getattr, kind, name)}]), f"{name} of {kind}")
    for size in (0, 1, len(good) // 2, len(good) - 1):
        refused(copy, good[:size], f"{size} of {len(good)} bytes")
    refused(copy, of([{}]), "one layer of three")
    refused(copy, pickle.dumps(7), "a number")
    refused(copy, of(7), "a number in the place of all")
    for sign in ((3, "step"), (0, "nothing"), (0, "spec"), (0, 7), "os.system"):
        refused(copy, pickle.dumps({(2, "x"): sign}) + of([{}, {}, {}])[len(NO_SIGNS):], f"what is held is {sign}")
    assert not os.path.exists(there)
    copy.load(good)  # none of them has touched it
    assert env.step(0)[0].shape == (4,)
    refused(state.Replay(env, [np.zeros((1,), np.int32)]), b"\0" * 9, "nine bytes")
    refused(state.Replay(env, [np.zeros((1,), np.int32)]), b"", "nothing")
    print("ok      what a state may not do", flush=True)


def phases():
    env = gymnasium.make("tt_gym_envs:TTPhases-v0", disable_env_checker=True)
    env.reset(seed=1)
    return env, env.unwrapped, state.Copy(env, None)


def check_methods():
    """Who has gone on to another method goes on with it elsewhere; other code is what it was, or the state is refused."""
    (env, one, copy), (other, two, over) = phases(), phases()
    for _ in range(210):
        env.step(0)
    assert env.spec and two.phase == two.out and one.phase == one.back
    data = copy.save()
    for otherwise in (lambda: None, lambda: setattr(two, "phase", None), lambda: delattr(two, "phase")):
        otherwise()
        over.load(data)
        assert two.phase == two.back and two.phase.__self__ is two and two.phase is not one.phase, two.phase
    assert [other.step(0)[0] for _ in range(5)] == [env.step(0)[0] for _ in range(5)] and two.x == one.x
    two.kind, two.call = dict, abs
    refused(over, data, "another function than the one that is called here")
    two.call = None
    refused(over, data, "a function where there is none")
    one.call = None
    over.load(copy.save())
    assert two.call is None and two.kind is None, "what the saved one has not is not held"
    print("ok      methods and functions that an environment holds", flush=True)


def check_limits():
    """-1 is no limit, None the registered one."""
    for text, wanted in (("-1", None), ("null", 1000), ("7", 7)):
        args = [["max_episode_steps", text]]
        assert maker("LunarLander-v3", args).limit() == wanted, text
    assert maker("LunarLander-v3").limit() == 1000 and maker("tt_gym_envs:TTZoo-v0").limit() is None
    assert "why" in trial.save(maker("LunarLander-v3", [["max_episode_steps", "-1"]]), "replay")
    print("ok      limits of episodes", flush=True)


def check_members():
    """Python 3.11.2 says of a member of an enumeration that it is got from it by its name."""
    copy = state.Copy(gymnasium.make("CartPole-v1", disable_env_checker=True), None)
    rest = [{}, {}, {"mode": Calls(getattr, AutoresetMode, "SAME_STEP")}]
    copy.load(of(rest))
    assert copy.layers[-1].mode is AutoresetMode.SAME_STEP, copy.layers[-1].mode
    print("ok      members of enumerations", flush=True)


def main():
    if len(sys.argv) > 1:
        name, kind, env = sys.argv[1], sys.argv[2], json.loads(sys.argv[3])
        of = maker(*env[:3], mask="action_mask" if env[0].startswith("Taxi") else "")
        answer = trial.save(of, kind) if name == "save" else trial.load(of, kind, lambda: json.load(sys.stdin))
        print(json.dumps(answer), flush=True)
        os._exit(0)
    check_calls()
    check_members()
    check_methods()
    check_limits()
    for env in ENVS:
        check_env(env)


main()
