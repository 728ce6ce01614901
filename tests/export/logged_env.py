"""CartPole that writes down what it is asked and what it shows, a file each env. For same_return.py."""

import json
import os

import gymnasium


class Logged(gymnasium.Wrapper):
    def __init__(self, env, folder):
        super().__init__(env)
        self.log = open(os.path.join(folder, f"{os.getpid()}-{id(self)}"), "w", encoding="utf-8", buffering=1)

    def write(self, **entry):
        self.log.write(json.dumps(entry) + "\n")

    def reset(self, *, seed=None, options=None):
        obs, info = self.env.reset(seed=seed, options=options)
        self.write(seed=seed, obs=obs.tolist())
        return obs, info

    def step(self, action):
        obs, reward, terminated, truncated, info = self.env.step(action)
        self.write(action=int(action), reward=reward, obs=obs.tolist(), end=terminated or truncated)
        return obs, reward, terminated, truncated, info


gymnasium.register("Logged-v0", lambda folder: Logged(gymnasium.make("CartPole-v1").env.env, folder), max_episode_steps=500)
