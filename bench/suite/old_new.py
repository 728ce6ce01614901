"""Another binary against this one, run about: the present recipes may not get slower by what they do not use."""
import os
import statistics

from kit.report import check, progress
from kit.tutti import Broken, Tutti

ABOUT = "--old BINARY beside this one, taking turns: trained steps/s and first step of the short recipes within 3 % (seeds 1-10)"
RECIPES = [  # config, settings that make every run as long
    ("cartpole-ppo-cleanrl", ["stop.return_mean=null", "stop.env_steps=500k"]),
    ("cartpole-ppo-zoo", []),
    ("pendulum-ppo", ["stop.env_steps=200k", "stop.return_mean=null"]),
]
WORSE = 0.97


def pair(old, new, configs, name, seed, sets):
    """Both runs of a seed; who begins changes from seed to seed, so that a machine that warms up favours nobody."""
    runs = {}
    for who, tutti in (("old", old), ("new", new)) if seed % 2 else (("new", new), ("old", old)):
        progress("%s: seed %d, %s" % (name, seed, who))
        runs[who] = tutti.run(os.path.join(configs[who], name + ".yaml"), seed, *sets)
    return runs


def row_of(name, pairs):
    ratios = [runs["new"]["sps"] / runs["old"]["sps"] for runs in pairs]
    later = [1000 * (runs["new"]["first_step_s"] - runs["old"]["first_step_s"]) for runs in pairs]
    same = all(runs["new"]["weights_sha256"] == runs["old"]["weights_sha256"] for runs in pairs)
    return [name, *(statistics.median(runs[who]["sps"] for runs in pairs) for who in ("old", "new")),
            statistics.median(ratios), min(ratios), max(ratios), statistics.median(later), same]


def measure(tutti, args, _machine):
    if not args.old:
        raise Broken("say which binary is the old one: --old PATH")
    configs = {"old": os.path.abspath(args.old_configs) if args.old_configs else "configs", "new": "configs"}
    everything, rows, checks = [], [], []
    with Tutti(os.path.abspath(args.old), tutti.overrides) as old:
        version = old.text("version").strip()
        for name, sets in RECIPES:
            if args.config and not any(part in name for part in args.config):
                continue
            pairs = [pair(old, tutti, configs, name, seed, sets) for seed in args.seeds or range(1, 11)]
            progress("")
            rows.append(row_of(name, pairs))
            checks.append(check("%s: new / old, median of the pairs" % name, rows[-1][3], WORSE, ">="))
            checks.append(check("%s: first step later by, ms" % name, rows[-1][6], 1.0, "<="))
            everything += [dict(runs, config=name) for runs in pairs]
    return {"old": version, "runs": everything, "checks": checks, "tables": [
        {"columns": ["recipe", "old sps", "new sps", "ratio", "least", "most", "first step +ms", "same bits"], "rows": rows}]}
