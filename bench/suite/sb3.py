"""A2C, DQN and recurrent PPO beside Stable-Baselines3's with the same settings (RL Baselines3 Zoo's), in turns, and the ratios."""
import statistics

from kit.report import check, progress
from suite.peers import WALL_S, install, peer_run, ratio

ABOUT = "A2C, DQN and recurrent PPO with RL Baselines3 Zoo's settings, in turns with Stable-Baselines3's (seeds 1-3; about 10 minutes)"
ZOO_LSTM = [  # what configs/cartpole-novel-ppo-lstm.yaml has otherwise than Zoo
    "num_envs=8", "num_steps=32", "network.init=uniform", "algorithm.learning_rate=1e-3", "algorithm.gamma=0.98",
    "algorithm.gae_lambda=0.8", "algorithm.epochs=20", "algorithm.minibatches=1", "algorithm.head_gain=1", "stop.env_steps=100k",
]
PAIRS = [  # title, ours, what is set otherwise in it, theirs, so many times its steps a second are asked for
    ("A2C", "configs/cartpole-a2c.yaml", [], "sb3_a2c.py", 20.0),
    ("DQN", "configs/cartpole-dqn.yaml", [], "sb3_dqn.py", None),
    ("PPO with an LSTM", "configs/cartpole-novel-ppo-lstm.yaml", ZOO_LSTM, "sb3_lstm.py", None),
]


def chosen(wanted):
    return [pair for pair in PAIRS if not wanted or any(part in pair[1] for part in wanted)]


def steps_a_second(runs):
    """The median; None as soon as one run has none."""
    values = [run.get("sps") for run in runs]
    return None if None in values else statistics.median(values)


def measure(tutti, args, _machine):
    pairs = chosen(args.config)
    install(script for _, _, _, script, _ in pairs)
    runs, rows, checks = [], [], []
    for title, config, sets, script, asked in pairs:
        ours, theirs = [], []
        for seed in args.seeds or range(1, 4):
            ours.append(dict(tutti.run(config, seed, *sets), peer="tutti " + title))
            progress("%s: seed %d" % (script, seed))
            theirs.append(peer_run(tutti, script, seed))
        runs += ours + theirs
        mine, other = steps_a_second(ours), steps_a_second(theirs)
        failed = next((run["failed"] for run in theirs if "failed" in run), None)
        times = ratio(mine, other)
        rows.append([title, mine, failed or other, times])
        if asked and times:
            checks.append(check("%s, times Stable-Baselines3's steps a second" % title, times, asked, ">="))
    progress("")
    return {"runs": runs, "checks": checks, "wall_limit_s": WALL_S, "tables": [
        {"columns": ["CartPole, Zoo's settings, steps a second", "tutti", "Stable-Baselines3", "times"], "rows": rows}]}
