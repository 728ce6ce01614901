"""A user's module: an env of dict spaces that does all it may, one that looks at its arguments, and many that do what they must not."""

import ctypes
import os
import signal
import subprocess
import sys
import time

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.envs.classic_control import CartPoleEnv


class Zoo(gymnasium.Env):
    """Every kind of space, both ways; every number a function of the seed and the actions."""

    observation_space = spaces.Dict({
        "image": spaces.Box(0, 255, (4, 3, 2), np.uint8),
        "small": spaces.Box(-100, 100, (2,), np.int8),
        "wide": spaces.Box(-1e9, 1e9, (), np.float64),
        "flag": spaces.MultiBinary(3),
        "pair": spaces.Tuple((spaces.Discrete(5, start=-2), spaces.MultiDiscrete([3, 4]))),
    })
    action_space = spaces.Tuple((
        spaces.Discrete(3, start=1),
        spaces.Dict({"push": spaces.Box(-1, 1, (2,), np.float32), "moves": spaces.MultiDiscrete([2, 5])}),
        spaces.MultiBinary(2),
        spaces.Box(-2, 2, (), np.float64),
    ))

    def _see(self):
        draw = self.np_random
        return {
            "image": draw.integers(0, 256, (4, 3, 2), np.uint8),
            "small": draw.integers(-100, 100, 2, np.int8),
            "wide": np.float64(draw.normal()),
            "flag": draw.integers(0, 2, 3, np.int8),
            "pair": (int(draw.integers(-2, 3)), np.array([draw.integers(3), draw.integers(4)])),
        }

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.t = 0
        self.limit = int(self.np_random.integers(3, 12))
        return self._see(), {}

    def step(self, action):
        go, both, bits, force = action
        assert self.action_space.contains((go, both, bits, np.asarray(force))), action
        self.t += 1
        reward = go + float(both["push"].sum()) + float(both["moves"] @ [10, 100]) + float(bits.sum()) + float(force)
        ended = self.t >= self.limit
        return self._see(), reward, ended and self.limit % 3 != 0, ended and self.limit % 2 == 0 or ended, {}


class Args(gymnasium.Env):
    """Refuses to be unless every argument came as what it was written as."""

    observation_space = spaces.Box(-1, 1, (2,), np.float32)
    action_space = spaces.Discrete(2)

    def __init__(self, **given):
        wanted = {"size": 3, "flag": True, "rate": 1e-3, "name": "abc", "sides": [1, 2], "deep": {"a": -1, "b": "x y"}}
        if given != wanted or any(type(given[key]) is not type(value) for key, value in wanted.items()):
            raise ValueError(f"got {given}")

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return np.zeros(2, np.float32), {}

    def step(self, action):
        return np.zeros(2, np.float32), 0.0, False, False, {}


class Stacked(gymnasium.Env):
    """A picture of bytes for whoever stacks them: episodes are cut, ended, or both, and the reward is by what was seen."""

    observation_space = spaces.Box(0, 255, (5, 4), np.uint8)
    action_space = spaces.Discrete(3)

    def _see(self):
        return self.np_random.integers(0, 256, self.observation_space.shape, np.uint8)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.t, self.limit = 0, int(self.np_random.integers(1, 9))
        return self._see(), {}

    def step(self, action):
        self.t += 1
        seen, ended = self._see(), self.t >= self.limit
        how = int(self.np_random.integers(3))
        return seen, float(action) + float(self.np_random.random()), ended and how != 0, ended and how != 1, {}


class StackedParts(Stacked):
    """The same of spaces of every kind."""

    observation_space = spaces.Dict({
        "image": spaces.Box(0, 255, (4, 3, 2), np.uint8),
        "small": spaces.Box(-100, 100, (2,), np.int8),
        "wide": spaces.Box(-1e9, 1e9, (), np.float64),
        "flag": spaces.MultiBinary(3),
        "pair": spaces.Tuple((spaces.Discrete(5, start=-2), spaces.Discrete(3))),
    })

    def _see(self):
        seen = Zoo._see(self)
        return {**seen, "pair": (seen["pair"][0], int(seen["pair"][1][0]))}


def _hang():
    time.sleep(10000)


def _raise(error):
    raise error


def _fork():
    """A child that outlives whoever made it, with all that it had open."""
    if os.fork() == 0:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        _hang()


class Forgets(gymnasium.Env):
    """Draws from what no seed reaches: nobody can go on from where it was."""

    observation_space = spaces.Box(0, 1, (1,), np.float64)
    action_space = spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return np.random.random(1), {}

    def step(self, action):
        return np.random.random(1), 0.0, False, False, {}


class Grows(gymnasium.Env):
    """Remembers all that it has seen, and episodes are long."""

    observation_space = spaces.Box(0, 1, (1,), np.float32)
    action_space = spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.seen = []
        return np.zeros(1, np.float32), {}

    def step(self, action):
        self.seen.append(self.np_random.bytes(64))
        return np.full(1, self.seen[-1][0] / 255, np.float32), 1.0, len(self.seen) == 3000, False, {}


class Masks(gymnasium.Env):
    """Some choices are not allowed, and it sees to that. `how`: in which form it says so, or what it does wrong."""

    observation_space = spaces.Box(0, 1, (3,), np.float32)

    def __init__(self, how="flat"):
        self.how = how
        self.action_space = spaces.Discrete(4, start=1) if how == "one" else spaces.MultiDiscrete([3, 2], start=[-1, 5])
        if how == "box":
            self.action_space = spaces.Box(-1, 1, (2,), np.float32)

    def _info(self):
        draw = self.np_random.integers(0, 2, 4 if self.how == "one" else 5)
        draw[self.t % 3], draw[3 + self.t % 2 if self.how != "one" else 0] = 1, 1
        self.mask = draw
        late = self.t > 5
        return {"legal": {"flat": draw.astype(bool), "one": draw.astype(np.int8), "pair": (draw[:3], list(draw[3:])),
                          "shape": draw[:4] if late else draw, "dtype": draw.astype(float) if late else draw,
                          "none": draw * (not late), "text": "all"}.get(self.how, draw)} if self.how != "gone" or not late else {}

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.t = 0
        return np.zeros(3, np.float32), self._info()

    def step(self, action):
        chosen = np.ravel(action) - np.ravel(self.action_space.start)
        assert all(self.mask[at] for at in (chosen if self.how == "one" else (chosen[0], 3 + chosen[1]))), (action, self.mask)
        self.t += 1
        return np.full(3, self.t / 20, np.float32), 1.0, self.t == 20, self.t == 13, self._info()


class Bad(gymnasium.Env):
    """What is not to be done: `how` says when and what."""

    action_space = spaces.Discrete(2)
    observation_space = spaces.Box(-1, 1, (2,), np.float32)
    DO = {"raise": lambda: 1 // 0, "brokenpipe": lambda: _raise(BrokenPipeError(32, "of its own")),
          "connreset": lambda: _raise(ConnectionResetError("of its own")), "nul": lambda: _raise(ValueError("a\0b\x1b[31mc\udcff")),
          "exit": lambda: os._exit(3), "sysexit": lambda: sys.exit("enough"), "hang": _hang,
          "segv": lambda: ctypes.string_at(0), "abort": os.abort, "fork": _fork,
          "print": lambda: print("hello from the env\nand\x1b[31m again", flush=True),
          "interrupt": lambda: os.kill(os.getpid(), signal.SIGINT),
          "kill": lambda: signal.raise_signal(signal.SIGKILL),  # as if from outside
          "selfkill": lambda: os.kill(os.getpid(), signal.SIGKILL), "selfterm": lambda: os.killpg(0, signal.SIGTERM)}
    RETURN = {"nan": (np.array([np.nan, 0], np.float32), 0.0, False, False, {}),
              "nanreward": (np.zeros(2, np.float32), float("nan"), False, False, {}),
              "noreward": (np.zeros(2, np.float32), None, False, False, {}),
              "shape": (np.zeros(3, np.float32), 0.0, False, False, {}),
              "dtype": (np.array(["a", "b"]), 0.0, False, False, {}),
              "none": (None, 0.0, False, False, {}),
              "four": (np.zeros(2, np.float32), 0.0, False, {}),
              "nothing": None}

    def __init__(self, how, when):
        self.how, self.when = how, when
        self._do("init")
        if how == "text":
            self.observation_space = spaces.Text(5)
        if how == "integers":
            self.action_space = spaces.Box(0, 5, (2,), np.int32)

    def _do(self, when):
        if self.when == when and self.how in self.DO:
            self.DO[self.how]()

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self._do("reset")
        if self.when == "reset" and self.how == "alone":
            return np.zeros(2, np.float32)
        return np.zeros(2, np.float32), {}

    def step(self, action):
        self._do("step")
        return self.RETURN.get(self.how, (np.zeros(2, np.float32), 1.0, False, False, {}))

    def close(self):
        self._do("close")


class BadOne(Bad):
    """The same, but of the envs that a process makes only one: 0 is its first, 1 its second, which plays in the second half of the range where there are halves."""

    made = 0

    def __init__(self, how, when, which):
        self.is_bad = BadOne.made == which
        BadOne.made += 1
        super().__init__(how, when)

    def _do(self, when):
        if self.is_bad:
            super()._do(when)

    def step(self, action):
        return super().step(action) if self.is_bad else (np.zeros(2, np.float32), 1.0, False, False, {})


class Slow(gymnasium.Env):
    """Holds what nobody can copy, and takes its time for each step, also when it is made once more."""

    observation_space = spaces.Box(0, 1, (1,), np.float32)
    action_space = spaces.Discrete(2)

    def __init__(self, pause):
        self.pause, self.nothing = pause, (i for i in ())

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return np.zeros(1, np.float32), {}

    def step(self, action):
        time.sleep(self.pause)
        return self.np_random.random(1, np.float32), float(action), False, False, {}


def there(x):
    return x


class Phases(gymnasium.Env):
    """Goes out and comes back; what it does next is a method of its own."""

    observation_space = spaces.Box(-1e3, 1e3, (1,), np.float32)
    action_space = spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.t, self.x, self.phase, self.call, self.kind = 0, 0.0, self.out, there, None
        return np.zeros(1, np.float32), {}

    def out(self):
        self.x += 1
        self.phase = self.back if self.t == 200 else self.phase

    def back(self):
        self.x -= 1

    def step(self, action):
        self.t += 1
        self.phase()
        return np.full(1, self.call(self.x), np.float32), 1.0, self.t == 400, False, {}


class Gate(CartPoleEnv):
    """Made only while a file is there."""

    def __init__(self, gate):
        while not os.path.exists(gate):
            time.sleep(0.01)
        super().__init__()


class Leaves(CartPoleEnv):
    """Starts a simulator that is in nobody's process group, and never ends it."""

    def reset(self, *, seed=None, options=None):
        subprocess.Popen(["sleep", "1000"], start_new_session=True)  # pylint: disable=consider-using-with
        return super().reset(seed=seed, options=options)


class Owns(CartPoleEnv):
    """Has a simulator that is in nobody's process group, and does not end it."""

    def __init__(self, **given):
        super().__init__(**given)
        self.simulator = subprocess.Popen(["sleep", "1000"], start_new_session=True)  # pylint: disable=consider-using-with


class Loud(CartPoleEnv):
    """Every step is a line of its output."""

    lines = 0

    def step(self, action):
        Loud.lines += 1
        print(f"loud {Loud.lines}{'.' * 900}")
        return super().step(action)


gymnasium.register("TTOwns-v0", entry_point=Owns, max_episode_steps=500)
gymnasium.register("TTLoud-v0", entry_point=Loud, max_episode_steps=500)
gymnasium.register("TTLeaves-v0", entry_point=Leaves, max_episode_steps=20)
gymnasium.register("TTZoo-v0", entry_point=Zoo)
gymnasium.register("TTGate-v0", entry_point=Gate, max_episode_steps=500)
gymnasium.register("TTArgs-v0", entry_point=Args)
gymnasium.register("TTForgets-v0", entry_point=Forgets)
gymnasium.register("TTMasks-v0", entry_point=Masks)
gymnasium.register("TTGrows-v0", entry_point=Grows)
gymnasium.register("TTPhases-v0", entry_point=Phases)
gymnasium.register("TTSlow-v0", entry_point=Slow, max_episode_steps=1000)
gymnasium.register("TTStacked-v0", entry_point=Stacked)
gymnasium.register("TTStackedParts-v0", entry_point=StackedParts)
for _which in (0, 1):
    for _how in ("raise", "hang", "segv", "kill", "shape"):
        gymnasium.register(f"Bad{_which}-{_how}-v0", entry_point=BadOne, kwargs={"how": _how, "when": "step", "which": _which})
for _how in [*Bad.DO, *Bad.RETURN, "alone", "text", "integers"]:
    for _when in ("init", "reset", "step", "close"):
        gymnasium.register(f"Bad-{_how}-{_when}-v0", entry_point=Bad, kwargs={"how": _how, "when": _when})
