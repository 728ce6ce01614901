"""Stable-Baselines3 with a probe in its callback; the recipes are in sb3_zoo.py, sb3_cleanrl.py (PPO), sb3_a2c.py, sb3_dqn.py, sb3_lstm.py and sb3_twin.py (SAC, TD3)."""
import gymnasium
import stable_baselines3
import torch
from stable_baselines3 import PPO
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.evaluation import evaluate_policy

from probe import Probe


class Watch(BaseCallback):
    def __init__(self, probe):
        super().__init__()
        self.probe = probe

    def _on_step(self):
        self.probe.step(self.training_env.num_envs)
        for info in self.locals["infos"]:
            if "episode" in info:
                self.probe.episode(info["episode"]["r"])
        return not self.probe.over()


def train(peer, args, num_envs, algorithm=PPO, policy="MlpPolicy", env="CartPole-v1", wrapper=None, around=None, after=None, **options):
    """One thread for torch: with networks of this size a second one only costs time. `wrapper` goes around each environment, `around` around all of them.
    `after` tells more of the trained model, for which no time is counted."""
    torch.set_num_threads(1)
    versions = {"stable-baselines3": stable_baselines3.__version__, "torch": torch.__version__,
                "gymnasium": gymnasium.__version__}
    probe = Probe(peer, versions, args.wall_s)
    envs = make_vec_env(env, n_envs=num_envs, seed=args.seed, wrapper_class=wrapper)
    envs = around(envs) if around else envs
    model = algorithm(policy, envs, seed=args.seed, device="cpu", **options)
    model.learn(total_timesteps=args.steps, callback=Watch(probe))
    probe.finish(lambda: after(model) if after else {})


def greedy(model, env, seed, episodes):
    """The mean return of so many episodes of the most probable actions, in environments of their own."""
    envs = make_vec_env(env, n_envs=min(episodes, 20), seed=seed + 1_000_000)
    return float(evaluate_policy(model, envs, episodes, deterministic=True)[0])


def linear(first):
    """A schedule from `first` down to 0; SB3 calls it with the part that remains."""
    return lambda remaining: remaining * first
