"""A2C, DQN and recurrent PPO beside Stable-Baselines3's with the same settings (RL Baselines3 Zoo's), and SAC and TD3 with Stable-Baselines3's defaults but
for a few, in turns, and the ratios."""
import json
import os
import statistics

from kit.report import check, progress
from suite.peers import WALL_S, install, peer_run, ratio

ABOUT = "A2C, DQN and recurrent PPO with RL Baselines3 Zoo's settings, SAC and TD3 on Pendulum, in turns with Stable-Baselines3's (seeds 1-3; about 30 minutes)"
ZOO_LSTM = [  # what configs/cartpole-novel-ppo-lstm.yaml has otherwise than Zoo
    "num_envs=8", "num_steps=32", "network.init=uniform", "algorithm.learning_rate=1e-3", "algorithm.gamma=0.98",
    "algorithm.gae_lambda=0.8", "algorithm.epochs=20", "algorithm.minibatches=1", "algorithm.head_gain=1", "stop.env_steps=100k",
]
PAIRS = [  # title, ours, what is set otherwise in it, theirs, so many times its steps a second are asked for
    ("A2C", "configs/cartpole-a2c.yaml", [], "sb3_a2c.py", 20.0),
    ("DQN", "configs/cartpole-dqn.yaml", [], "sb3_dqn.py", None),
    ("PPO with an LSTM", "configs/cartpole-novel-ppo-lstm.yaml", ZOO_LSTM, "sb3_lstm.py", None),
]
EPISODES, TWIN_WALL_S = 100, 600
TWIN = """name: %(name)s
env: Pendulum-v1
num_envs: 1
num_steps: 1
lag: 0
network: {hidden: [%(units)d, %(units)d], activation: relu, init: uniform}
algorithm: {name: %(algorithm)s, learning_rate: 1e-3, gamma: %(gamma)s, batch_size: %(batch)d, learning_starts: %(starts)d, train_every: 1, gradient_steps: 1}
replay: {capacity: 1e6}
stop: {env_steps: %(steps)d}
"""
SAC, TD3 = ({"algorithm": "sac", "gamma": 0.99, "starts": 100, "steps": 8000},
            {"algorithm": "td3", "gamma": 0.98, "starts": 10000, "steps": 20000})  # gamma, start and steps of TD3 are Zoo's
TWIN_CASES = [  # name, settings, units of each of two layers, transitions of a step
    ("pendulum-sac-64", SAC, 64, 64),
    ("pendulum-sac-256", SAC, 256, 256),
    ("pendulum-td3-64", TD3, 64, 64),
    ("pendulum-td3-256", TD3, 256, 256),
]
SAME = [  # our word, theirs, which gets the same value where there is ours
    ("num_steps", "train_freq"), ("algorithm.gradient_steps", "gradient_steps"), ("algorithm.learning_rate", "learning_rate"),
    ("algorithm.batch_size", "batch_size"), ("algorithm.learning_starts", "learning_starts"), ("algorithm.gamma", "gamma"),
    ("algorithm.tau", "tau"), ("replay.capacity", "buffer_size"), ("algorithm.policy_delay", "policy_delay"),
    ("algorithm.target_noise", "target_policy_noise"), ("algorithm.target_noise_clip", "target_noise_clip"),
    ("algorithm.exploration_noise", "action_noise"),
]
SHOWN = SAME + [  # what is shown beside it
    ("network.hidden", "net_arch"), ("network.activation", "activation_fn"), ("network.init", None), ("algorithm.entropy_coef", "ent_coef"),
    ("algorithm.tune_entropy", None), ("algorithm.target_entropy", "target_entropy"), ("num_envs", "n_envs"), ("lag", None),
    ("collector.replicas", None), ("learner.replicas", None), ("learner.shards", None), ("learner.threads", "torch threads"),
]


def chosen(wanted, table, name):
    """Those of a table whose name, at that place of a row, contains what is wanted."""
    return [row for row in table if not wanted or any(part in row[name] for part in wanted)]


def steps_a_second(runs):
    """The median; None as soon as one run has none."""
    values = [run.get("sps") for run in runs]
    return None if None in values else statistics.median(values)


def by_zoo(tutti, args, pairs):
    """Runs, their table, checks."""
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
    return runs, {"columns": ["CartPole, Zoo's settings, steps a second", "tutti", "Stable-Baselines3", "times"], "rows": rows}, checks


def twin_ours(tutti, case):
    """The file of a case, and its settings as a run has them."""
    name, settings, units, batch = case
    path = os.path.join(tutti.folder, name + ".yaml")
    with open(path, "w") as out:
        out.write(TWIN % {"name": name, "units": units, "batch": batch, **settings})
    sets = [word for setting in tutti.overrides for word in ("--set", setting)]
    return path, {key: row["value"] for key, row in tutti.json("check", path, *sets)["config"].items()}


def twin_theirs(tutti, own, seed):
    """With our settings. A run that had its time before its steps has failed: its return is of less."""
    steps, settings = own["stop.env_steps"], {its: own[mine] for mine, its in SAME if mine in own}
    settings["policy_kwargs"] = {"net_arch": own["network.hidden"]}
    run = peer_run(tutti, "sb3_twin.py", seed, "--algorithm", own["algorithm.name"], "--steps", str(steps), "--episodes", str(EPISODES),
                   "--settings", json.dumps(settings), wall_s=TWIN_WALL_S)
    if run.get("env_steps", steps) < steps:
        run = {"failed": "only %d steps in %d s" % (run["env_steps"], TWIN_WALL_S)}
    return run


def twin_row(name, runs, steps, times=None):
    failed = next((run["failed"] for run in runs if "failed" in run), None)
    if failed:
        return ["%s: %s" % (name, failed)] + [None] * 5
    greedy = [run["greedy"] for run in runs]
    return [name, steps, steps_a_second(runs), times, sum(greedy) / len(greedy), min(greedy)]


def shown(value):
    return "null" if value is None else value


def twin_settings(cases, ours, theirs):
    """What each was run with, case by case, as they say it themselves."""
    versions = next((run["versions"] for runs in theirs for run in runs if "versions" in run), {})
    told = [next((run["settings"] for run in runs if "settings" in run), {}) for runs in theirs]
    names = [name for name, *_ in cases]
    rows = [[mine] + [shown(one.get(mine, "")) for one in ours] + [its or ""] + [shown(one.get(its)) if its else "" for one in told]
            for mine, its in SHOWN]
    peer = ", ".join("%s %s" % part for part in versions.items())
    return {"columns": ["tutti"] + names + [peer or "Stable-Baselines3"] + names, "rows": rows}


def by_twins(tutti, args, cases):
    """Runs and their tables."""
    runs, rows, settings, seeds = [], [], [], list(args.seeds or range(1, 4))
    for case in cases:
        path, own = twin_ours(tutti, case)
        ours, theirs = [], []
        for seed in seeds:
            progress("%s: seed %d" % (case[0], seed))
            run = tutti.run(path, seed, greedy=EPISODES)
            ours.append(dict(run, greedy=run["greedy"]["return_mean"], peer="tutti " + case[0]))
            theirs.append(twin_theirs(tutti, own, seed))
        runs += ours + theirs
        settings.append((own, theirs))
        times = ratio(steps_a_second(ours), steps_a_second(theirs))
        rows += [twin_row("tutti, " + case[0], ours, own["stop.env_steps"], times),
                 twin_row("Stable-Baselines3, " + case[0], theirs, own["stop.env_steps"])]
    columns = ["Pendulum-v1; seeds %s" % ",".join(map(str, seeds)), "env steps", "steps/s, median", "times",
               "greedy, %d episodes, mean" % EPISODES, "worst"]
    return runs, [{"columns": columns, "rows": rows}, twin_settings(cases, *zip(*settings))]


def measure(tutti, args, _machine):
    pairs, cases = chosen(args.config, PAIRS, 1), chosen(args.config, TWIN_CASES, 0)
    install([script for *_, script, _ in pairs] + ["sb3_twin.py"] * bool(cases))
    runs, tables, checks = [], [], []
    if pairs:
        more, table, checks = by_zoo(tutti, args, pairs)
        runs, tables = runs + more, [table]
    if cases:
        more, more_tables = by_twins(tutti, args, cases)
        runs, tables = runs + more, tables + more_tables
    progress("")
    return {"runs": runs, "checks": checks, "wall_limit_s": WALL_S, "twin_wall_limit_s": TWIN_WALL_S, "tables": tables}
