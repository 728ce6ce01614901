"""CartPole from process start to solved, seed by seed, and what the final weights do greedily."""
from kit.report import check, progress, spread

ABOUT = "configs/cartpole-ppo.yaml: solved within 0.5 s, first step within 0.1 s, greedy return 475 (seeds 1-20)"
CONFIG = "configs/cartpole-ppo.yaml"
LINES = {"solved_at_s": 0.5, "first_step_s": 0.1, "greedy": 475.0}
COLUMNS = ["seed", "solved_at_s", "solved_at_steps", "first_step_s", "wall_s", "sps", "greedy"]


def runs_of(tutti, config, seeds, *sets, greedy=100):
    """One run a seed, with "greedy" as the mean return of its final weights, None where it is not asked for."""
    out = []
    for seed in seeds:
        progress("%s: seed %d" % (config, seed))
        run = tutti.run(config, seed, *sets, greedy=greedy)
        run["greedy"] = run["greedy"]["return_mean"] if greedy else None
        out.append(run)
    progress("")
    return out


def summary(runs, columns):
    """The runs' table, with the spread of every column below."""
    spreads = {name: spread([run[name] for run in runs]) for name in columns[1:]}
    rows = [[run[name] for name in columns] for run in runs]
    rows += [[what] + [spreads[name][what] for name in columns[1:]] for what in ("min", "median", "max")]
    return {"columns": columns, "rows": rows}, spreads


def worst(runs, name, pick):
    values = [run[name] for run in runs]
    return None if None in values else pick(values)


def lines(runs, limit):
    return [
        check("solved_at_s, the slowest seed", worst(runs, "solved_at_s", max), limit, "<="),
        check("first_step_s, the slowest seed", worst(runs, "first_step_s", max), LINES["first_step_s"], "<="),
        check("greedy return over 100 episodes, the worst seed", worst(runs, "greedy", min), LINES["greedy"], ">="),
    ]


def measure(tutti, args, _machine):
    runs = runs_of(tutti, CONFIG, args.seeds or range(1, 21))
    table, spreads = summary(runs, COLUMNS)
    return {"runs": runs, "spread": spreads, "tables": [table], "checks": lines(runs, LINES["solved_at_s"])}
