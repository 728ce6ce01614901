#!/usr/bin/env python3
"""Records what MinAtar's games do, step by step, for tests/collector/test_minatar.c.

    tools/test-venv
    build/venv-minatar/bin/python3 tests/golden/minatar/record.py [DIR]     # DIR: where to write; here without

The committed files were made with MinAtar 1.0.15, Gymnasium 1.4.0 and NumPy 2.4.6. Everything is seeded and nothing is
computed in floating point, so a second run writes the same bytes. MinAtar is under GPL-3: nothing of it is kept
here but what its games show from outside.

The games draw from a generator of ours: each draw is one byte, which stands for u = (byte + 1/2) / 256. A uniform
number is u, a choice of n is u * n rounded down. The reader hands out the same bytes and must see the
same games.

One file a game, little-endian: char magic[8] "TTMNA\\0\\0\\1"; u32 runs, channels; then the runs, each
    u32 version, actions, sticky (of 256), ramping, steps, draws, episodes, crc
    u8  step [steps]   action | terminated << 3 | reward << 4
    u8  seen [steps]   the low byte of the CRC-32 over all observations of the run so far (bytes 0 and 1), resets too
    u8  drawn [draws]
and zeros up to a multiple of 4. `crc` is the whole CRC at the end. After a terminated step follow a reset and its
observation.
"""

import logging
import os
import struct
import sys
import warnings
import zlib

logging.disable(logging.WARNING)  # of what it would take to draw the games on a screen
import gymnasium  # noqa: E402
import minatar.gym  # noqa: E402
import numpy as np  # noqa: E402

warnings.simplefilter("ignore")  # that -v0 is out of date

GAMES = {"Asterix": 4, "Breakout": 4, "Freeway": 7, "Seaquest": 10, "SpaceInvaders": 6}
STEPS = 2600
# version, sticky (of 256), ramping, how often (in percent) the action is a random one
RUNS = [(0, 26, True, 2), (1, 26, True, 4), (0, 26, True, 100), (1, 26, True, 60), (1, 0, True, 0), (0, 64, False, 1)]
NOTHING, LEFT, UP, RIGHT, DOWN, FIRE = range(6)


class Draws:
    """The generator that the game gets: remembers every byte that it gives."""

    def __init__(self, seed):
        self.random = np.random.RandomState(seed)
        self.bytes = bytearray()

    def byte(self):
        self.bytes.append(self.random.randint(256))
        return self.bytes[-1]

    def rand(self, *shape):
        return np.array([self.rand() for _ in range(shape[0])]) if shape else (self.byte() + 0.5) / 256

    def randint(self, low, high=None, size=None):
        low, n = (0, low) if high is None else (low, high - low)
        if size is None:
            return low + (2 * self.byte() + 1) * n // 512
        return np.array([self.randint(low, low + n) for _ in range(size)])


# --- players: good enough to meet what a game has; o[y, x, channel] is the observation


def where(o, channel):
    return [tuple(at) for at in np.argwhere(o[:, :, channel])]


class Breakout:
    def act(self, o, random):
        (_, pad), (y, x) = where(o, 0)[0], where(o, 1)[0]
        _, was = where(o, 2)[0]
        direction = 1 if x > was or (x == was and x == 0) else -1
        for _ in range(9 - y):
            if not 0 <= x + direction <= 9:
                direction = -direction
            else:
                x += direction
        x += random.randint(4) == 0 and random.randint(-1, 2)
        return RIGHT if x > pad else LEFT if x < pad else NOTHING


class Freeway:
    def act(self, o, random):
        return DOWN if random.randint(20) == 0 else UP


def steps_from(y, x, low, high):
    moves = {NOTHING: (y, x), LEFT: (y, x - 1), UP: (y - 1, x), RIGHT: (y, x + 1), DOWN: (y + 1, x)}
    return {a: (b, c) for a, (b, c) in moves.items() if low <= b <= high and 0 <= c <= 9}


def reach(o, channels, cells):
    """The cells that things of these channels may be in soon: ahead of them, where their trail is not behind."""
    out = set()
    trail = set(where(o, cells))
    for channel in channels:
        for y, x in where(o, channel):
            ahead = [d for d in (-1, 1) if (y, x - d) in trail or not 0 <= x - d <= 9] or [-1, 1]
            out |= {(y, x + k * d) for d in ahead for k in (0, 1, 2)}
    return out


def towards(goals, danger, moves, random):
    """The safe move that is nearest to a goal."""
    safe = {a: at for a, at in moves.items() if at not in danger} or moves
    if not goals:
        return list(safe)[random.randint(len(safe))]
    return min(safe, key=lambda a: (min(abs(safe[a][0] - y) + abs(safe[a][1] - x) for y, x in goals), a))


class Asterix:
    def act(self, o, random):
        (y, x) = where(o, 0)[0]
        return towards(where(o, 3), reach(o, [1], 2), steps_from(y, x, 1, 8), random)


class Seaquest:
    def __init__(self):
        self.home = False

    def act(self, o, random):
        (y, x) = where(o, 0)[0]
        air, saved = len(where(o, 7)), len(where(o, 8))
        danger = reach(o, [5, 6], 3) | {(b, c + k) for b, c in where(o, 4) for k in (-2, -1, 0, 1, 2)}
        self.home = y > 0 and (self.home or saved == 6 or (air <= 3 and (saved > 0 or random.randint(40) == 0)))
        left = (y, x + 1) in where(o, 1)
        row = [c for b, c in where(o, 5) + where(o, 6) if b == y and (c < x) == left]
        if row and random.randint(2):
            return FIRE
        goals = [(0, x)] if self.home else where(o, 9) or [(5, 5)]
        return towards(goals, danger, steps_from(y, x, 0 if self.home or saved > 5 else 1, 8), random)


class SpaceInvaders:
    def act(self, o, random):
        _, x = where(o, 0)[0]
        danger = {(9, c) for b, c in where(o, 5) if b >= 7} | {(9, c) for b, c in where(o, 1) if b == 9}
        moves = steps_from(9, x, 9, 9)
        columns = [(9, c) for _, c in where(o, 1)]
        if (9, x) not in danger and random.randint(3 if len(columns) > 2 else 2) == 0:
            return FIRE
        if len(columns) <= 2:
            columns = [(9, random.randint(10))]
        return towards(columns, danger, moves, random)


def choose(player, o, actions, wild, random):
    if random.randint(100) < wild:
        return random.randint(len(actions))
    action = player.act(o, random)
    return actions.index(action) if action in actions else random.randint(len(actions))


def record(name, seed, version, sticky, ramping, wild):
    env = gymnasium.make(
        f"MinAtar/{name}-v{version}", sticky_action_prob=sticky / 256, difficulty_ramping=ramping
    ).unwrapped
    channels = GAMES[name]
    assert env.observation_space.shape == (10, 10, channels) and env.observation_space.dtype == bool
    random, draws = np.random.RandomState(1000 + seed), Draws(seed)
    env.game.random = env.game.env.random = draws
    player, steps, seen, crc, episodes, best = globals()[name](), bytearray(), bytearray(), 0, 1, 0
    o, _ = env.reset()
    crc = zlib.crc32(o.astype(np.uint8).tobytes(), crc)
    total = 0
    for _ in range(STEPS):
        action = choose(player, o, list(env.action_set), wild, random)
        o, reward, terminated, truncated, _ = env.step(action)
        assert 0 <= reward < 16 and reward == int(reward) and not truncated
        crc = zlib.crc32(o.astype(np.uint8).tobytes(), crc)
        total += reward
        steps.append(action | terminated << 3 | int(reward) << 4)
        seen.append(crc & 255)
        if terminated:
            player, best, total, episodes = globals()[name](), max(best, total), 0, episodes + 1
            o, _ = env.reset()
            crc = zlib.crc32(o.astype(np.uint8).tobytes(), crc)
    print(f"{name}-v{version}: {episodes} episodes, best return {max(best, total)}, {len(draws.bytes)} draws")
    head = (version, env.action_space.n, sticky, ramping, STEPS, len(draws.bytes), episodes, crc)
    body = bytes(steps + seen + draws.bytes)
    return struct.pack("<8I", *head) + body + bytes(-len(body) % 4)


def main():
    where_to = sys.argv[1] if len(sys.argv) > 1 else os.path.dirname(os.path.abspath(__file__))
    if not any("MinAtar" in name for name in gymnasium.registry):
        minatar.gym.register_envs()
    for name, channels in GAMES.items():
        runs = [record(name, seed, *run) for seed, run in enumerate(RUNS)]
        with open(os.path.join(where_to, f"{name}.bin"), "wb") as file:
            file.write(struct.pack("<8s2I", b"TTMNA\0\0\1", len(runs), channels) + b"".join(runs))


if __name__ == "__main__":
    main()
