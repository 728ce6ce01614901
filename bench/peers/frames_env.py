"""Frames of noise, four deep, as Atari's are after preprocessing: nothing but their size matters, and making one costs a copy."""
import gymnasium
import numpy

POOL = 64


class Frames(gymnasium.Env):
    """Episodes of 1,000 steps; one action in six is paid for."""

    observation_space = gymnasium.spaces.Box(0, 255, (4, 84, 84), numpy.uint8)
    action_space = gymnasium.spaces.Discrete(6)

    def __init__(self):
        self.pool = numpy.random.default_rng(1).integers(0, 256, (POOL, *self.observation_space.shape), numpy.uint8)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.at = int(self.np_random.integers(POOL))
        self.left = 1000
        return self.pool[self.at], {}

    def step(self, action):
        paid = int(action) == self.at % 6
        self.at = (self.at + 1) % POOL
        self.left -= 1
        return self.pool[self.at], float(paid), False, self.left == 0, {}


gymnasium.register("Frames-v0", entry_point=Frames)
