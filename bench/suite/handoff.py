"""A version to the collector and its segment back, nothing computed: the floor of a lock-step update."""
from kit.report import check

ABOUT = "a version out and a segment back, two processes over ipc: what a lock-step update takes beside computing"
LIMIT = 250.0  # us for 36 KiB, as for the all-reduce


def measure(tutti, _args, _machine):
    result = tutti.json("bench", "handoff")
    rows = [[row[name] for name in ("kib", "mean_us", "median_us", "p90_us", "min_us")] for row in result["sizes"]]
    median = next(row["median_us"] for row in result["sizes"] if row["kib"] == 36)
    return {"result": result, "checks": [check("36 KiB, median, us", median, LIMIT, "<=")], "tables": [
        {"columns": ["version, KiB", "mean us", "median us", "p90 us", "min us"], "rows": rows}]}
