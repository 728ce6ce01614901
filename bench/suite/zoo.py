"""RL Baselines3 Zoo's settings: reported, with the line its own table sets (greedy 490 after 100 k steps)."""
from kit.report import check
from suite.solve import COLUMNS, runs_of, summary

ABOUT = "configs/cartpole-ppo-zoo.yaml: speed, time to solved, greedy return 490 (seeds 1-5)"
CONFIG = "configs/cartpole-ppo-zoo.yaml"


def measure(tutti, args, _machine):
    runs = runs_of(tutti, CONFIG, args.seeds or range(1, 6))
    table, spreads = summary(runs, COLUMNS)
    mean = sum(run["greedy"] for run in runs) / len(runs)
    return {"runs": runs, "spread": spreads, "tables": [table],
            "checks": [check("greedy return, mean of the seeds", mean, 490.0, ">=")]}
