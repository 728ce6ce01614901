#!/usr/bin/env python3
"""Limits counted for many envs at once (tutti_env/limits.py) against the wrappers that count them: random histories of rounds, resets, saved counts and
steps of some; and which wrappers are stepped past."""

import os
import random
import sys

sys.dont_write_bytecode = True
SOURCE = os.environ["TT_SOURCE_DIR"]
sys.path.insert(0, os.path.join(SOURCE, "tests"))
import pythons  # noqa: E402

pythons.run_with("venv-gym", "gymnasium", "numpy")
import gymnasium  # noqa: E402
from gymnasium.wrappers import OrderEnforcing, RecordEpisodeStatistics, TimeLimit  # noqa: E402

sys.path.insert(1, os.path.join(SOURCE, "python"))
from tutti_env.limits import Limits  # noqa: E402

FIRST = 7  # the number of the first slot


class Coin(gymnasium.Env):
    """Ends after as many steps as its seed says."""

    observation_space = action_space = gymnasium.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.left = seed
        return 0, {}

    def step(self, action):
        self.left -= 1
        return 0, 0.0, self.left == 0, False, {}


def check(holds, what):
    if not holds:
        sys.exit(f"FAILED: {what}")


def made(limit):
    return TimeLimit(OrderEnforcing(Coin()), limit)


def ends(result):
    return result[2], result[3]


class History:
    """The same envs twice: these through Limits, those through their wrappers."""

    def __init__(self, rng):
        self.rng = rng
        limits = [rng.choice([1, 2, 5, 20, 60]) for _ in range(rng.randint(1, 5))]
        self.these, self.those = [made(limit) for limit in limits], [made(limit) for limit in limits]
        self.limits = Limits(self.these, FIRST)
        check(self.limits.past is not None, "what gymnasium.make puts around an env is not stepped past")
        self.past = 0
        for k in range(len(limits)):
            self.reset(k)

    def reset(self, k):
        seed = self.rng.choice([1, 3, 30, 1000])
        self.these[k].reset(seed=seed)
        self.those[k].reset(seed=seed)
        self.limits.begun(FIRST + k)

    def round(self):
        stepped = self.limits.stepped()
        self.past += stepped is self.limits.past
        for k, env in enumerate(stepped):
            this, that = ends(env.step(0)), ends(self.those[k].step(0))
            check(this == that, f"env {k} says {this}, its wrappers {that}")
            if any(this):
                self.reset(k)

    def some(self):
        """Steps of some, as where others begin an episode or are saved: all are told before."""
        self.limits.settle()
        for k in range(len(self.these)):
            check(self.these[k]._elapsed_steps == self.those[k]._elapsed_steps, f"env {k} was told another number of steps")
            if self.rng.random() < 0.5 and any(ends(self.these[k].step(0)) + ends(self.those[k].step(0))):
                self.reset(k)

    def load(self):
        """Another count, as with a state."""
        self.limits.settle()
        k = self.rng.randrange(len(self.these))
        count = self.rng.randrange(self.those[k]._max_episode_steps)
        self.these[k]._elapsed_steps = self.those[k]._elapsed_steps = count

    def play(self, rounds):
        for _ in range(rounds):
            self.rng.choice([self.some, self.load] + [self.round] * 60)()
        self.some()


def test_histories():
    past = 0
    for seed in range(150):
        history = History(random.Random(seed))
        history.play(300)
        past += history.past
    check(past > 5000, f"only {past} rounds went past the wrappers")


class More(TimeLimit):
    pass


def test_what_is_stepped_past():
    def stepped_past(env):
        return Limits([made(5), env], 0).past is not None
    overwritten = made(5)
    overwritten.step = overwritten.env.step
    inner = TimeLimit(OrderEnforcing(Coin()), 5)
    inner.env.step = inner.env.env.step
    check(stepped_past(gymnasium.make("CartPole-v1", disable_env_checker=True)), "CartPole is not")
    for env, what in [(OrderEnforcing(Coin()), "no limit"), (TimeLimit(Coin(), 5), "a limit alone"), (More(OrderEnforcing(Coin()), 5), "a limit of one's own"),
                      (RecordEpisodeStatistics(made(5)), "a wrapper around it"), (TimeLimit(RecordEpisodeStatistics(OrderEnforcing(Coin())), 5), "one between"),
                      (overwritten, "a step of its own"), (inner, "one of the inner one's own")]:
        check(not stepped_past(env), f"{what} is stepped past")
    check(Limits([], 0).past == [], "no envs")


def test_a_version_that_does_more():
    """Its step looks at something else: it is called."""
    kept = TimeLimit.step

    def step(self, action):
        return self.env.step(self.action_space.sample() or action)
    TimeLimit.step = step
    try:
        check(Limits([made(5)], 0).past is None, "a TimeLimit that nobody knows is stepped past")
    finally:
        TimeLimit.step = kept


for test in (test_histories, test_what_is_stepped_past, test_a_version_that_does_more):
    test()
    print(f"ok      {test.__name__}", flush=True)
