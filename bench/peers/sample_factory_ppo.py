#!/usr/bin/env python3
"""Sample Factory's asynchronous PPO on CartPole-v1, on CPU: two workers, and CleanRL's optimiser settings."""
from probe import prepare

ARGS = prepare("sample-factory", __doc__, 500_000)

import os  # noqa: E402
import shutil  # noqa: E402
import sys  # noqa: E402
import tempfile  # noqa: E402
import time  # noqa: E402

SETTINGS = {
    "algo": "APPO", "env": "CartPole-v1", "device": "cpu", "experiment": "cartpole", "seed": ARGS.seed,
    "train_for_env_steps": ARGS.steps, "num_workers": 2, "num_envs_per_worker": 8, "worker_num_splits": 2,
    "rollout": 64, "recurrence": 1, "batch_size": 512, "num_batches_per_epoch": 2, "num_epochs": 4,
    "use_rnn": False, "encoder_mlp_layers": [64, 64], "nonlinearity": "tanh", "actor_critic_share_weights": False,
    "policy_initialization": "orthogonal", "normalize_input": False, "normalize_returns": False,
    "learning_rate": 1e-3, "gamma": 0.99, "gae_lambda": 0.95, "ppo_clip_ratio": 0.2, "max_grad_norm": 0.5,
    "exploration_loss_coeff": 0.01, "value_loss_coeff": 0.5, "adam_eps": 1e-5, "reward_scale": 1.0, "stats_avg": 100,
    "decorrelate_envs_on_one_worker": False, "save_every_sec": 3600, "experiment_summaries_interval": 3600,
}


def flags(settings, directory):
    out = ["--train_dir=" + directory]
    for name, value in settings.items():
        out += ["--" + name] + [str(item) for item in value] if isinstance(value, list) else ["--%s=%s" % (name, value)]
    return out


def make_env(full_env_name, _cfg=None, _env_config=None, render_mode=None):
    """Environments live in the workers: each notes in a file when it was stepped first."""
    import gymnasium
    env = gymnasium.make(full_env_name, render_mode=render_mode)
    step = env.step

    def first_step(action):
        env.step = step
        with open(os.environ["TT_FIRST_STEPS"], "a") as file:
            file.write("%.6f\n" % time.clock_gettime(time.CLOCK_BOOTTIME))
        return step(action)

    env.step = first_step
    return env


def watch(runner, probe):
    """Steps are those that the learner has consumed."""
    from sample_factory.algo.runners.runner import AlgoObserver
    from sample_factory.algo.utils.misc import EPISODIC, LEARNER_ENV_STEPS

    def episodes(_runner, message, _policy):
        import numpy
        probe.step(0)
        for value in numpy.atleast_1d(message[EPISODIC]["reward"]):
            probe.episode(float(value))

    def steps(_runner, message, _policy):
        probe.step(message[LEARNER_ENV_STEPS] - probe.steps)

    class Limit(AlgoObserver):
        def on_training_step(self, runner, training_iteration_since_resume):
            if probe.over():
                runner.cfg.train_for_env_steps = 0

    runner.policy_msg_handlers[LEARNER_ENV_STEPS].append(steps)
    runner.policy_msg_handlers[EPISODIC].append(episodes)
    runner.register_observer(Limit())


def main(directory):
    os.environ["TT_FIRST_STEPS"] = os.path.join(directory, "first-steps")
    import torch
    from importlib.metadata import version
    from sample_factory.algo.utils.misc import ExperimentStatus
    from sample_factory.cfg.arguments import parse_full_cfg, parse_sf_args
    from sample_factory.envs.env_utils import register_env
    from sample_factory.train import make_runner

    from probe import Probe, age
    register_env("CartPole-v1", make_env)
    parser, _ = parse_sf_args(flags(SETTINGS, directory))
    cfg, runner = make_runner(parse_full_cfg(parser, flags(SETTINGS, directory)))
    probe = Probe("Sample Factory", {"sample-factory": version("sample-factory"), "torch": torch.__version__,
                                     "gymnasium": version("gymnasium")}, ARGS.wall_s)
    watch(runner, probe)
    out, sys.stdout = sys.stdout, sys.stderr
    status = runner.init() or runner.run()
    sys.stdout = out
    if status != ExperimentStatus.SUCCESS:
        raise SystemExit("Sample Factory: status %s" % status)
    with open(os.environ["TT_FIRST_STEPS"]) as file:
        first = min(float(line) for line in file)
    probe.result["first_step_s"] = age() - (time.clock_gettime(time.CLOCK_BOOTTIME) - first)
    probe.finish()


if __name__ == "__main__":
    where = tempfile.mkdtemp(prefix="tt-peer-")
    try:
        main(where)
    finally:
        shutil.rmtree(where, ignore_errors=True)
