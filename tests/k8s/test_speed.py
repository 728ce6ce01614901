#!/usr/bin/env python3
"""The measurements of speed.py in short, for their counts and not for their times: every job gets its pods once, nothing
is written while nothing happens or by an operator that begins anew, and memory grows by no more than entries need.

TT_SPEED_JOBS=1000: the long form (`./dev soak`), which also holds the operator to what is asked of its size."""

import os
import sys

sys.dont_write_bytecode = True
import cluster
import speed
from cluster import check

cluster.require()
TUTTI = os.environ["TUTTI"]
JOBS = int(os.environ.get("TT_SPEED_JOBS", "20" if os.environ.get("TT_SANITIZE") else "100"))
LONG = JOBS >= 1000
SIZE = not os.environ.get("TT_SANITIZE")


def s_told(result):
    print("  " + ", ".join(f"{name} {value:.3g}" if isinstance(value, float) else f"{name} {value}"
                           for name, value in result.items()), flush=True)


def test_jobs_at_a_pace_get_a_coordinator_each():
    s_told(speed.paced(TUTTI, JOBS))


def test_a_burst_of_jobs_gets_a_coordinator_each():
    s_told(speed.burst(TUTTI, JOBS))


def test_a_burst_by_kubectl():
    s_told(speed.burst(TUTTI, JOBS, kubectl=True))


def test_nothing_is_written_while_nothing_happens():
    seen = speed.steady(TUTTI, JOBS, 60.0 if LONG else 6.0, 3 if LONG else 1)
    s_told(seen)
    check(seen["writes"] == 0, f"{seen['writes']} writes in {seen['watched_s']:.0f} s")
    check(seen["rounds"] == 0, f"{seen['rounds']:.0f} looks at jobs in {seen['watched_s']:.0f} s")
    check(all(again["writes"] == 0 for again in seen["restarts"]), "an operator that begins anew writes")
    if SIZE:
        check(seen["rss_mib"] < 32, f"{seen['rss_mib']:.1f} MiB resident")
        check(max(again["peak_mib"] for again in (seen, *seen["restarts"])) < 48, "more than 48 MiB at its peak")
        check(seen["cpu_part"] < 0.05, f"{100 * seen['cpu_part']:.1f} % of a core")


SHORT = (test_a_burst_of_jobs_gets_a_coordinator_each, test_nothing_is_written_while_nothing_happens)
cluster.main(*SHORT, *((test_jobs_at_a_pace_get_a_coordinator_each, test_a_burst_by_kubectl) if LONG else ()))
