"""Every recipe in configs/ against the return it promises."""
import os

from kit.report import check, progress
from suite.solve import runs_of

ABOUT = "every recipe against its line: 5 seeds, mean; greedy over 100 episodes unless its line says training"
RECIPES = [  # config, what is measured, line
    ("cartpole-ppo", "greedy", 475.0),
    ("cartpole-ppo-zoo", "greedy", 490.0),
    ("cartpole-ppo-cleanrl", "return_mean", 480.0),
    ("acrobot-ppo", "greedy", -85.0),
    ("mountaincar-ppo", "greedy", -115.0),
    ("mountaincar-continuous-ppo", "greedy", 90.0),
    ("pendulum-ppo", "greedy", -200.0),
    ("pendulum-sac", "greedy", -170.0),
    ("pendulum-td3", "greedy", -170.0),
    ("cartpole-novel-ppo-lstm", "greedy", 475.0),
    ("pendulum-novel-ppo-lstm", "greedy", -250.0),
    ("cartpole-novel-dqn-lstm", "greedy", 475.0),
    ("cartpole-a2c", "greedy", 475.0),
    ("cartpole-impala", "greedy", 475.0),
    ("acrobot-a2c", "greedy", -90.0),
    ("cartpole-dqn", "greedy", 475.0),
    ("cartpole-rainbow", "greedy", 475.0),
    ("acrobot-dqn", "greedy", -85.0),
    ("mountaincar-dqn", "greedy", -110.0),
]


def chosen(wanted):
    return [row for row in RECIPES if not wanted or any(part in row[0] for part in wanted)]


def measure(tutti, args, _machine):
    runs, rows, checks = [], [], []
    for name, what, line in chosen(args.config):
        mine = runs_of(tutti, os.path.join("configs", name + ".yaml"), args.seeds or range(1, 6),
                       greedy=100 if what == "greedy" else 0)
        values = [run[what] for run in mine]
        mean = sum(values) / len(values)
        runs += [dict(run, config=name) for run in mine]
        rows.append([name, "training, last 100" if what != "greedy" else "greedy, 100", mean, min(values), max(values),
                     line, max(run["env_steps"] for run in mine), sum(run["sps"] for run in mine) / len(mine),
                     sum(run["wall_s"] for run in mine) / len(mine)])
        checks.append(check(name, mean, line, ">="))
    progress("")
    return {"runs": runs, "checks": checks, "tables": [
        {"columns": ["recipe", "return", "mean", "worst", "best", "line", "env_steps", "sps", "wall_s"], "rows": rows}]}
