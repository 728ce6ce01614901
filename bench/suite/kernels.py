"""The networks alone, on one core, for each set of instructions there is."""
import os

ABOUT = "`tutti bench kernels` for every build of the kernels, beside the core's sgemm rate"
BUILDS = ("portable", "avx2", "avx512")


def measure(tutti, _args, machine):
    results = {}
    for build in BUILDS:
        if build != "portable" and not any(flag.startswith(build) for flag in machine["cpu"]["flags"]):
            continue
        tutti.env["TT_CPU"] = build
        try:
            results[build] = tutti.json("bench", "kernels")
        finally:
            del tutti.env["TT_CPU"]
        if "TT_CPU" in os.environ:
            tutti.env["TT_CPU"] = os.environ["TT_CPU"]
    builds = list(results)
    names = [row["name"] for row in results[builds[0]]["results"]]
    rows = [["sgemm (OpenBLAS), GFLOP/s"] + [results[build]["openblas_gflops"] for build in builds],
            ["sgemm (own), GFLOP/s"] + [results[build]["own_gflops"] for build in builds]]
    for i, name in enumerate(names):
        rows.append([name + ", us"] + [results[build]["results"][i]["us"] for build in builds])
    return {"results": results, "checks": [], "tables": [{"columns": ["", *builds], "rows": rows}]}
