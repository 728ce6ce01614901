"""Environments that show themselves, rightly and wrongly. For render.py."""

import gymnasium
import numpy


class Counting(gymnasium.Env):
    """Ends with its seventh step; a picture is as bright as steps have been made."""

    metadata = {"render_modes": ["rgb_array"], "render_fps": 20}
    observation_space = gymnasium.spaces.Box(-10, 10, (1,), numpy.float32)
    action_space = gymnasium.spaces.Discrete(2)

    def __init__(self, render_mode=None, wrong=None):
        self.render_mode, self.wrong, self.steps = render_mode, wrong, 0

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.steps = 0
        return numpy.zeros(1, numpy.float32), {}

    def step(self, action):
        self.steps += 1
        return numpy.full(1, self.steps, numpy.float32), 1.0, self.steps == 7, False, {}

    def render(self):
        if self.wrong == "raises":
            raise RuntimeError("no picture today")
        if self.wrong == "grows":
            return numpy.zeros((6 + self.steps, 8, 3), numpy.uint8)
        if self.wrong == "shape":
            return numpy.zeros((6, 8), numpy.uint8)
        return numpy.full((6, 8, 3), 30 * self.steps, numpy.uint8)


class Blind(Counting):
    metadata = {"render_modes": ["human"]}


gymnasium.register("Counting-v0", Counting)
gymnasium.register("Blind-v0", Blind)
