"""How long until something happens: `tutti version`, and a run's first environment step."""
import subprocess
import time

from kit.report import check, spread
from suite.solve import CONFIG

ABOUT = "wall time of `tutti version`, and first_step_s of a run (20 times)"
TIMES = 20


def version_s(tutti):
    begin = time.perf_counter()
    subprocess.run([tutti.binary, "version"], stdout=subprocess.DEVNULL, check=True)
    return time.perf_counter() - begin


def measure(tutti, args, _machine):
    version = [version_s(tutti) for _ in range(TIMES)]
    first = [tutti.run(CONFIG, seed)["first_step_s"] for seed in args.seeds or range(1, TIMES + 1)]
    rows = [[what, *(spread(values)[key] for key in ("min", "median", "max"))]
            for what, values in (("tutti version, s", version), ("first_step_s", first))]
    return {"version_s": version, "first_step_s": first,
            "tables": [{"columns": ["", "min", "median", "max"], "rows": rows}],
            "checks": [check("first_step_s, the slowest", max(first), 0.1, "<=")]}
