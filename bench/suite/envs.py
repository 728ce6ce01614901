"""The environments alone, on one core."""
from kit.report import check

ABOUT = "`tutti bench envs`: CartPole-v1 at 30 M steps/s on one core"


def measure(tutti, _args, _machine):
    result = tutti.json("bench", "envs")
    rows = result["envs"]
    columns = [key for key in rows[0] if not isinstance(rows[0][key], (list, dict))]
    cartpole = next(row for row in rows if row["env"] == "CartPole-v1")
    return {"result": result, "tables": [{"columns": columns, "rows": [[row[key] for key in columns] for row in rows]}],
            "checks": [check("CartPole-v1, steps/s", cartpole["steps_per_s"], 30e6, ">=")]}
