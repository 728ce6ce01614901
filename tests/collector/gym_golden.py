#!/usr/bin/env python3
"""What the vec sees of Gymnasium's environments, through one worker, two and three, against Gymnasium stepped here with the same
seeds and actions: equal bits."""

import functools
import os
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.environ["TT_SOURCE_DIR"], "tests"))
import pythons  # noqa: E402

pythons.run_with("venv-gym", "ale_py", "gymnasium", "numpy")
import ale_py  # noqa: E402
import gymnasium  # noqa: E402
import numpy as np  # noqa: E402
from gymnasium import spaces  # noqa: E402
from gymnasium.wrappers import AtariPreprocessing, ClipReward  # noqa: E402

gymnasium.register_envs(ale_py)
BUILD = os.environ["TT_BUILD_DIR"]
PLAY = os.path.join(BUILD, "tests", "collector", "gym_play")
ENVS = os.path.join(os.environ["TT_SOURCE_DIR"], "tests", "collector", "gym_envs")
sys.path.insert(0, ENVS)
SANITIZED = bool(os.environ.get("TT_SANITIZE"))
SHORT = 4 if SANITIZED else 1
WORKERS = (1, 3) if SANITIZED else (1, 2, 3)
BY_TWO = ("CartPole-v1", "tt_gym_envs:TTZoo-v0")  # as many envs for each: between one worker and two that have unlike ones
SEED, FIRST, COUNT = 11, 5, 4
GAMES = [("CartPole-v1", 400), ("Pendulum-v1", 450), ("LunarLander-v3", 400), ("LunarLanderContinuous-v3", 300),
         ("BipedalWalker-v3", 300), ("HalfCheetah-v5", 1010), ("FrozenLake-v1", 200), ("ALE/Pong-v5", 60), ("ALE/Pong-v5 frames", 120),
         ("ALE/Breakout-v5 frames", 250), ("ALE/Qbert-v5 frames", 250), ("tt_gym_envs:TTZoo-v0", 300)]
if SANITIZED:  # one of each kind of action and of frames: states are Python's
    GAMES = [game for game in GAMES if game[0] not in ("LunarLanderContinuous-v3", "BipedalWalker-v3", "ALE/Pong-v5", "ALE/Qbert-v5 frames")]


def philox(counter, key):
    """Salmon et al. 2011, Philox 4x32-10: from the paper, not from the program."""
    c, k = list(counter), list(key)
    for _ in range(10):
        a, b = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [(b >> 32) ^ c[1] ^ k[0], b & 0xFFFFFFFF, (a >> 32) ^ c[3] ^ k[1], a & 0xFFFFFFFF]
        k = [(k[0] + 0x9E3779B9) & 0xFFFFFFFF, (k[1] + 0xBB67AE85) & 0xFFFFFFFF]
    return c


def seed_of(env, episode):
    """The first word of (seed, stream of resets, env, episode * 2^32)."""
    return philox((0, episode, env, 1), (SEED, 0))[0]


# ---- columns as they are stored -------------------------------------------------------------------------------------


def leaves(space):
    if isinstance(space, spaces.Dict):
        return [leaf for part in space.spaces.values() for leaf in leaves(part)]
    if isinstance(space, spaces.Tuple):
        return [leaf for part in space.spaces for leaf in leaves(part)]
    return [space]


def parts(space, value):
    if isinstance(space, spaces.Dict):
        return [leaf for key, part in space.spaces.items() for leaf in parts(part, value[key])]
    if isinstance(space, spaces.Tuple):
        return [leaf for part, of in zip(space.spaces, value) for leaf in parts(part, of)]
    return [value]


def stored(leaf):
    """dtype of a column."""
    if isinstance(leaf, spaces.Box):
        return {"float64": np.float32, "float16": np.float32, "int8": np.int32}.get(leaf.dtype.name, leaf.dtype)
    return np.uint8 if isinstance(leaf, spaces.MultiBinary) else np.int32


def column(leaf, value):
    """Choices are counted from 0."""
    start = leaf.start if isinstance(leaf, (spaces.Discrete, spaces.MultiDiscrete)) else 0
    return np.asarray(value - start if not isinstance(leaf, spaces.Box) else value).astype(stored(leaf))


def record(space, values):
    """Rows of several envs, column by column."""
    rows = [parts(space, value) for value in values]
    return b"".join(np.ascontiguousarray(np.stack([column(leaf, row[k]) for row in rows])).tobytes()
                    for k, leaf in enumerate(leaves(space)))


# ---- the game -------------------------------------------------------------------------------------------------------


def make(name):
    """`ID frames`: as env.frames has it, by Gymnasium's own wrappers."""
    name, frames = name.partition(" ")[::2]
    if not frames:
        return gymnasium.make(name, disable_env_checker=True)
    env = AtariPreprocessing(gymnasium.make(name, frameskip=1, disable_env_checker=True), terminal_on_life_loss=True)
    return ClipReward(env, -1, 1)


class Direct:
    """One env, stepped here; a new episode in the step in which one ends."""

    def __init__(self, name, env):
        self.env, self.number, self.episode = make(name), env, 0
        self.obs = self._reset()
        leaf = self.env.observation_space
        self.nothing = b"".join(bytes(int(np.prod(of.shape or (1,))) * np.dtype(stored(of)).itemsize) for of in leaves(leaf))

    def _reset(self):
        return self.env.reset(seed=seed_of(self.number, self.episode))[0]

    def step(self, action):
        self.obs, reward, terminated, truncated, _ = self.env.step(action)
        final = self.obs if truncated else None
        if terminated or truncated:
            self.episode += 1
            self.obs = self._reset()
        return np.float32(reward), terminated, truncated, final


def finals(space, all_finals):
    """Zeros where nothing was cut, column by column."""
    out = b""
    for k, leaf in enumerate(leaves(space)):
        empty = np.zeros(leaf.shape, stored(leaf))
        out += b"".join(np.ascontiguousarray(empty if final is None else column(leaf, parts(space, final)[k])).tobytes()
                        for final in all_finals)
    return out


def direct(name, steps):
    """(actions as they are stored, all that is seen)"""
    games = [Direct(name, FIRST + i) for i in range(COUNT)]
    observed, acts = games[0].env.observation_space, games[0].env.action_space
    acts.seed(3)
    given, seen = [], [record(observed, [game.obs for game in games])]
    for _ in range(steps):
        actions = [acts.sample() for _ in games]
        given.append(record(acts, actions))
        # a float64 action is stored as float32
        results = [game.step(narrowed(acts, action)) for game, action in zip(games, actions)]
        reward, terminated, truncated, cut = zip(*results)
        seen += [record(observed, [game.obs for game in games]), np.array(reward, np.float32).tobytes(),
                 bytes(map(bool, terminated)), bytes(map(bool, truncated)), finals(observed, cut)]
    return b"".join(given), seen, sum(game.episode for game in games)


def narrowed(space, value):
    if isinstance(space, spaces.Dict):
        return {key: narrowed(part, value[key]) for key, part in space.spaces.items()}
    if isinstance(space, spaces.Tuple):
        return tuple(narrowed(part, of) for part, of in zip(space.spaces, value))
    if isinstance(space, spaces.Box):
        return np.asarray(value, np.float32).astype(space.dtype)
    return value


def ours(name, steps, workers, actions):
    env = dict(os.environ, TT_PYTHON=sys.executable, TT_SHARE=os.path.join(BUILD, "share", "tutti"), PYTHONPATH=ENVS,
               PYTHONDONTWRITEBYTECODE="1")
    name, *frames = name.split()
    words = [PLAY, f"gym:{name}", workers, FIRST, COUNT, steps, SEED, *frames]
    done = subprocess.run([*map(str, words)], input=actions, capture_output=True, env=env, timeout=300, check=False)
    assert done.returncode == 0, f"gym_play ended with {done.returncode}: {done.stderr.decode()[-3000:]}"
    return done.stdout


def first_difference(seen, got):
    at = 0
    for k, piece in enumerate(seen):
        if got[at:at + len(piece)] != piece:
            what = ("observation", "reward", "terminated", "truncated", "final")[(k - 1) % 5] if k else "first observation"
            return f"{what} of step {(k + 4) // 5}"
        at += len(piece)
    return f"{len(got) - at} bytes more"


@functools.lru_cache(1)
def once(name, steps):
    return direct(name, steps)


def compare(name, steps, workers):
    actions, seen, episodes = once(name, steps)
    got = ours(name, steps, workers, actions)
    same = got == b"".join(seen)
    print(f"{'ok    ' if same else 'FAILED'}  {name}, {workers} workers: {steps} steps of {COUNT} envs, {episodes} episodes"
          f"{'' if same else ': another ' + first_difference(seen, got)}", flush=True)
    return same


def main():
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)  # MuJoCo writes a log beside itself
        failed = sum(not compare(name, steps // SHORT, workers) for name, steps in GAMES for workers in WORKERS if workers != 2 or name in BY_TWO
                     if name in sys.argv[1:] or not sys.argv[1:])
    sys.exit(1 if failed else 0)


main()
