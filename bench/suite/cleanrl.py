"""CleanRL's settings: how many trained steps a second, beside what the core's sgemm rate allows."""
from kit.report import check
from suite.solve import runs_of, summary

ABOUT = "configs/cartpole-ppo-cleanrl.yaml: 300 k trained steps/s, last-100 return 480 (seeds 1-10)"
CONFIG = "configs/cartpole-ppo-cleanrl.yaml"
COLUMNS = ["seed", "sps", "of_sgemm", "return_mean", "first_step_s", "solved_at_s", "wall_s"]
EPOCHS = 4


def flops_per_step(obs=4, hidden=64, actions=2, epochs=EPOCHS):
    """Two networks obs-hidden-hidden-out: one forward pass to act, and forward and twice as much backward an epoch."""
    forward = 2 * (2 * (obs * hidden + hidden * hidden) + hidden * (actions + 1))
    return forward * (1 + 3 * epochs)


def measure(tutti, args, machine):
    runs = runs_of(tutti, CONFIG, args.seeds or range(1, 11), greedy=0)
    ceiling = machine["sgemm"] * 1e9 / flops_per_step()
    for run in runs:
        run["of_sgemm"] = run["sps"] / ceiling
    table, spreads = summary(runs, COLUMNS)
    mean = sum(run["return_mean"] for run in runs) / len(runs)
    return {"runs": runs, "spread": spreads, "flops_per_step": flops_per_step(), "ceiling_sps": ceiling,
            "tables": [table, {"columns": ["FLOP per step", "steps/s that one core's sgemm allows"],
                               "rows": [[flops_per_step(), ceiling]]}],
            "checks": [check("sps, median", spreads["sps"]["median"], 300e3, ">="),
                       check("last-100 return, mean of the seeds", mean, 480.0, ">=")]}
