"""Results as tables for people and as files for later."""
import json
import os
import statistics
import sys
import time

from kit.machine import ROOT


def check(name, value, limit, better):
    """One line of what was asked: better is '<=' or '>='; a value of None missed it."""
    ok = value is not None and (value <= limit if better == "<=" else value >= limit)
    return {"name": name, "value": value, "limit": limit, "better": better, "ok": ok}


def spread(values):
    """min, median, max of the values there are, and how many there are not."""
    there = sorted(value for value in values if value is not None)
    if not there:
        return {"min": None, "median": None, "max": None, "missing": len(values)}
    return {"min": there[0], "median": statistics.median(there), "max": there[-1], "missing": len(values) - len(there)}


def number(value):
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return "{:,}".format(value) if abs(value) >= 100000 else str(value)
    if isinstance(value, float):
        if abs(value) >= 10000:
            return "{:,.0f}".format(value)
        return "%.1f" % value if abs(value) >= 100 else "%.4g" % value
    return str(value)


def table(columns, rows):
    cells = [list(columns)] + [[number(value) for value in row] for row in rows]
    widths = [max(len(line[i]) for line in cells) for i in range(len(columns))]
    left = [all(isinstance(row[i], str) for row in rows) for i in range(len(columns))]
    lines = []
    for line in cells:
        padded = [cell.ljust(w) if is_left else cell.rjust(w) for cell, w, is_left in zip(line, widths, left)]
        lines.append("  ".join(padded).rstrip())
    return "\n".join(lines)


def heading(out, machine):
    cpu = machine["cpu"]
    print("%s, %d cores, %s, kernel %s, commit %s" % (
        cpu["model"], cpu["cores"], machine["system"], machine["kernel"], machine["commit"]), file=out)
    print("sgemm %.1f GFLOP/s on one core (%s); kernels %s; load %.2f, CPU shares %s\n" % (
        machine["sgemm"], machine["sgemm_of"], machine["kernels"], machine["load_1min"], machine["cpu_shares"]),
        file=out, flush=True)


def show(out, result):
    print("== %s%s" % (result["bench"], " with " + " ".join(result["overrides"]) if result["overrides"] else ""), file=out)
    for part in result["tables"]:
        print(table(part["columns"], part["rows"]), file=out)
        print(file=out)
    for line in result["checks"]:
        print("%-6s %s: %s (%s %s)" % ("ok" if line["ok"] else "MISSED", line["name"], number(line["value"]),
                                       line["better"], number(line["limit"])), file=out)
    out.flush()


def progress(text):
    """A line that passes by, for people at a terminal."""
    if sys.stderr.isatty():
        sys.stderr.write("\r\033[K" + text)
        sys.stderr.flush()


def save(result):
    folder = os.path.join(ROOT, "bench", "results")
    os.makedirs(folder, exist_ok=True)
    name = "%s-%s.json" % (time.strftime("%Y%m%d-%H%M%S", time.gmtime()), result["bench"])
    path = os.path.join(folder, name)
    with open(path + ".tmp", "w") as file:
        json.dump(result, file, indent=1)
        file.write("\n")
    os.replace(path + ".tmp", path)
    return os.path.relpath(path, ROOT)
