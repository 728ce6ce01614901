#!/usr/bin/env python3
"""Records what Gymnasium's classic-control environments do, step by step, for tests/collector/test_golden.c.

    python3 -m venv /tmp/venv && /tmp/venv/bin/pip install gymnasium==1.4.0 numpy==2.4.6
    /tmp/venv/bin/python tests/golden/gymnasium/record.py

The committed files were made with Gymnasium 1.4.0, NumPy 2.4.6, Python 3.11.7 and glibc 2.36 on x86-64 with FMA.
Everything is seeded, so a second run on the same machine writes the same bytes. From Gymnasium only its results are
kept. Each env contributes EPISODE_STEPS steps of episodes (half of them by a policy that reaches the goal, half at
random) and SAMPLED_STEPS single steps from states drawn over the whole state space, bounds included.

One file an env, little-endian, every block padded to 8 bytes:
    char magic[8] "TTGYM\\0\\0\\1"; u32 rows, starts, state_n, obs_n, action_n (0 = discrete), zero
    u8  start [rows]               1: the step starts from the next of `states`, 0: from where the last one ended
    f64 states [starts][state_n]
    i32 action [rows] or f32 action [rows][action_n]
    f64 next [rows][state_n]; f64 reward [rows]; f32 obs [rows][obs_n]; u8 terminated [rows]
MountainCarContinuous holds its state in float64 after a reset and in float32 after a step, and computes accordingly:
its third state element is 1 for the former.

specs.txt holds what the registry and the spaces say, one env after another:
    env ID MAX_STEPS THRESHOLD; obs LOW HIGH (a line an element); then action N (discrete) or push LOW HIGH (box)

libm.bin says which libm computed all this: f64-bit sums, see probe(). Where the reader's libm gives other sums, its
last bits differ and the test allows 1e-12 instead of equal bits.
"""

import math
import os
import platform
import struct
import sys

import gymnasium
import numpy as np

EPISODE_STEPS = 9000
SAMPLED_STEPS = 1500
HERE = os.path.dirname(os.path.abspath(__file__))


class CartPole:
    id, state_n, limit = "CartPole-v1", 4, 500

    def get(self, env):
        return list(env.state)

    def put(self, env, s):
        env.state = np.array(s, dtype=np.float64)
        env.steps_beyond_terminated = None

    def policy(self, s, rng):
        return int(s[2] + 0.3 * s[3] + 0.02 * s[0] + 0.05 * s[1] + 0.3 * rng.normal() > 0)

    def random(self, rng):
        return int(rng.integers(2))

    def sample(self, rng):
        s = rng.uniform([-2.4, -4, -0.2095, -4], [2.4, 4, 0.2095, 4])
        if rng.random() < 0.1:
            s[0], s[1] = math.copysign(2.4, s[1]), rng.choice([0.0, -1e-300, 1e-3])
        return list(s)


class Acrobot:
    id, state_n, limit = "Acrobot-v1", 4, 500

    def get(self, env):
        return [float(x) for x in env.state]

    def put(self, env, s):
        env.state = np.array(s, dtype=np.float64)

    def policy(self, s, rng):  # pump: push the second link the way it swings
        return 1 + int(np.sign(s[3])) if rng.random() < 0.9 else self.random(rng)

    def random(self, rng):
        return int(rng.integers(3))

    def sample(self, rng):
        top = [math.pi, math.pi, 4 * math.pi, 9 * math.pi]
        s = rng.uniform(np.negative(top), top)
        for i in range(4):
            if rng.random() < 0.1:
                s[i] = rng.choice([-1, 1]) * top[i]
        return list(s)


class MountainCar:
    id, state_n, limit = "MountainCar-v0", 2, 200

    def get(self, env):
        return [float(x) for x in env.state]

    def put(self, env, s):
        env.state = (np.float64(s[0]), np.float64(s[1]))

    def policy(self, s, rng):
        return (2 if s[1] >= 0 else 0) if rng.random() < 0.9 else self.random(rng)

    def random(self, rng):
        return int(rng.integers(3))

    def sample(self, rng):
        s = rng.uniform([-1.2, -0.07], [0.6, 0.07])
        if rng.random() < 0.2:
            s[0] = rng.choice([-1.2, -1.199, 0.5, 0.499, 0.6])
        if rng.random() < 0.2:
            s[1] = rng.choice([-0.07, 0.0, 0.07])
        return list(s)


class MountainCarContinuous:
    id, state_n, limit = "MountainCarContinuous-v0", 3, 999

    def get(self, env):
        wide = env.state.dtype == np.float64
        return [float(env.state[0]), float(env.state[1]), float(wide)]

    def put(self, env, s):
        env.state = np.array(s[:2], dtype=np.float64 if s[2] else np.float32)

    def policy(self, s, rng):
        push = (1.0 if s[1] >= 0 else -1.0) * rng.uniform(0.5, 1.0)
        return np.array([push], dtype=np.float32) if rng.random() < 0.9 else self.random(rng)

    def random(self, rng):
        return np.clip(rng.normal(0, 0.8, 1), -1, 1).astype(np.float32)

    def sample(self, rng):
        s = MountainCar().sample(rng)
        if rng.random() < 0.2:
            s[0] = rng.choice([0.45, 0.4499999, 0.3800001])
        wide = rng.random() < 0.3
        return [float(x if wide else np.float32(x)) for x in s] + [float(wide)]


class Pendulum:
    id, state_n, limit = "Pendulum-v1", 2, 200

    def get(self, env):
        return [float(x) for x in env.state]

    def put(self, env, s):
        env.state = np.array(s, dtype=np.float64)

    def policy(self, s, rng):
        angle = (s[0] + math.pi) % (2 * math.pi) - math.pi
        near = abs(angle) < 0.5
        push = -8 * angle - 2 * s[1] if near else 2 * np.sign(s[1] + 1e-9)
        return np.clip([push], -2, 2).astype(np.float32)

    def random(self, rng):
        return np.clip(rng.normal(0, 1.6, 1), -2, 2).astype(np.float32)

    def sample(self, rng):
        s = rng.uniform([-20, -8], [20, 8])
        if rng.random() < 0.1:
            s[0] = rng.choice([0.0, math.pi, -math.pi, 3 * math.pi])
        if rng.random() < 0.1:
            s[1] = rng.choice([-8.0, 8.0])
        return list(s)


# Each argument that an env takes, at one value that is not Gymnasium's own: a fifth as many steps, ID.KEY=VALUE.bin.
WITH_ARGUMENTS = [(MountainCar, "goal_velocity", 0.03), (MountainCarContinuous, "goal_velocity", 0.03), (Pendulum, "g", 1.62)]


class Recorder:
    def __init__(self, spec, **args):
        self.spec = spec
        self.env = gymnasium.make(spec.id, **args).unwrapped
        self.start, self.states, self.action = [], [], []
        self.next, self.reward, self.obs, self.terminated = [], [], [], []

    def step(self, action, start):
        if start:
            self.states.append(self.spec.get(self.env))
        obs, reward, terminated, truncated, _ = self.env.step(action)
        assert obs.dtype == np.float32 and not truncated
        self.start.append(start)
        self.action.append(action)
        self.next.append(self.spec.get(self.env))
        self.reward.append(float(reward))
        self.obs.append(obs.copy())
        self.terminated.append(terminated)
        return terminated

    def episodes(self, steps, rng, seed):
        goals, done, at = 0, True, 0
        for t in range(steps):
            start = done or at == self.spec.limit
            if start:
                self.env.reset(seed=seed + t)
                at, guided = 0, rng.random() < 0.5
            state = self.spec.get(self.env)
            action = self.spec.policy(state, rng) if guided else self.spec.random(rng)
            done = self.step(action, start)
            goals, at = goals + done, at + 1
        return goals

    def sampled(self, steps, rng):
        for _ in range(steps):
            self.spec.put(self.env, self.spec.sample(rng))
            self.step(self.spec.random(rng), True)

    def write(self, path):
        boxed = isinstance(self.action[0], np.ndarray)
        rows, obs_n = len(self.start), len(self.obs[0])
        action = np.array(self.action, dtype="<f4" if boxed else "<i4")
        head = (rows, len(self.states), self.spec.state_n, obs_n, action.shape[1] if boxed else 0, 0)
        blocks = [
            b"TTGYM\0\0\1" + struct.pack("<6I", *head),
            np.array(self.start, dtype="u1").tobytes(),
            np.array(self.states, dtype="<f8").tobytes(),
            action.tobytes(),
            np.array(self.next, dtype="<f8").tobytes(),
            np.array(self.reward, dtype="<f8").tobytes(),
            np.array(self.obs, dtype="<f4").tobytes(),
            np.array(self.terminated, dtype="u1").tobytes(),
        ]
        with open(path, "wb") as f:
            for block in blocks:
                f.write(block + b"\0" * (-len(block) % 8))


def specs(path, ids):
    with open(path, "w") as out:
        for env in map(gymnasium.make, ids):
            threshold = "nan" if env.spec.reward_threshold is None else env.spec.reward_threshold
            out.write(f"env {env.spec.id} {env.spec.max_episode_steps} {threshold}\n")
            for low, high in zip(env.observation_space.low, env.observation_space.high):
                out.write(f"obs {low:.9g} {high:.9g}\n")
            if isinstance(env.action_space, gymnasium.spaces.Discrete):
                out.write(f"action {env.action_space.n}\n")
            else:
                for low, high in zip(env.action_space.low, env.action_space.high):
                    out.write(f"push {low:.9g} {high:.9g}\n")


def probe(path):
    """Weighted sums of the bits of sin, cos, pow(x, 2) and powf(x, 2) at 2^18 points, modulo 2^64."""
    i = np.arange(1 << 18, dtype=np.uint64)
    mixed = (i * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(11)
    unit = mixed.astype(np.float64) * 2.0**-53
    x = np.where(i % 2 == 0, unit * 20 - 10, unit - 0.5)
    f = x.astype(np.float32)
    weight = 2 * i + 1

    def total(values):
        bits = np.array(values, dtype=np.float64).view(np.uint64)
        return int((bits * weight).sum(dtype=np.uint64))

    sines = [np.sin(v) for v in x]
    assert sines == [math.sin(v) for v in x], "NumPy's sin is not libm's here: record on another machine"
    sums = [total(sines), total([np.cos(v) for v in x]), total([v**2 for v in x]), total([v**2 for v in f])]
    with open(path, "wb") as out:
        out.write(struct.pack("<4Q", *sums))


def main():
    print("python", platform.python_version(), "gymnasium", gymnasium.__version__, "numpy", np.__version__, *platform.libc_ver())
    envs = [CartPole(), Acrobot(), MountainCar(), MountainCarContinuous(), Pendulum()]
    for number, spec in enumerate(envs):
        rng = np.random.default_rng(1000 + number)
        recorder = Recorder(spec)
        goals = recorder.episodes(EPISODE_STEPS, rng, seed=number * 100000)
        recorder.sampled(SAMPLED_STEPS, rng)
        recorder.write(os.path.join(HERE, spec.id + ".bin"))
        print(spec.id, len(recorder.start), "steps,", len(recorder.states), "starts,", goals, "episodes terminated")
        assert goals > 0 or spec.id == "Pendulum-v1"
    for number, (spec, key, value) in enumerate(WITH_ARGUMENTS):
        rng = np.random.default_rng(2000 + number)
        recorder = Recorder(spec(), **{key: value})
        recorder.episodes(EPISODE_STEPS // 5, rng, seed=number * 100000)
        recorder.sampled(SAMPLED_STEPS // 5, rng)
        recorder.write(os.path.join(HERE, f"{spec.id}.{key}={value}.bin"))
        print(spec.id, key, value, len(recorder.start), "steps,", sum(recorder.terminated), "of them the last")
    specs(os.path.join(HERE, "specs.txt"), [spec.id for spec in envs])
    probe(os.path.join(HERE, "libm.bin"))


if __name__ == "__main__":
    sys.exit(main())
