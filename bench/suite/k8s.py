"""The operator against an API server, etcd and a fake kubelet (tests/k8s/speed.py): how fast, how small, how quiet."""
import os
import sys

from kit.machine import ROOT
from kit.report import check, progress
from kit.tutti import Broken

ABOUT = "the operator: from a job's create to its pod, memory, processor time and writes with 10,000 pods (needs root)"
COPIED = bool(os.environ.get("TT_BENCH_COPIES"))  # the 10,000 pods not made but copied: for a machine with others
UPSTREAM = "DI-orchestrator v0.2.2 the same way, in another hour of such a machine: last pod 99.5 s, 25.6 s, 77 MB, 6.3 s"


def speed():
    sys.path.insert(0, os.path.join(ROOT, "tests", "k8s"))
    import speed as module
    return module


def each(module, binary):
    """(name, result) of every part; the long one last."""
    for name, part in (("paced", lambda: module.paced(binary)), ("burst", lambda: module.burst(binary)),
                       ("kubectl", lambda: module.burst(binary, kubectl=True)),
                       ("steady", lambda: module.steady(binary, copied=COPIED, told=progress))):
        progress("k8s: " + name)
        yield name, part()
    progress("")


def measure(tutti, _args, _machine):
    module = speed()
    reason = module.cluster.missing()
    if reason:
        raise Broken(reason)
    try:
        found = dict(each(module, tutti.binary))
    except module.cluster.Failed as error:
        raise Broken(str(error)) from error
    paced, steady = found["paced"], found["steady"]
    restarts = steady["restarts"]
    rows = [[what, part["created_s"], part["last_pod_s"], part["quiet_s"], part["peak_mib"], part["cpu_s"], part["load"]]
            for what, part in (("%d clients" % module.CLIENTS, found["burst"]), ("one kubectl create", found["kubectl"]))]
    begun = [[i[key] for key in ("synced_s", "after_lease_s", "looked_s", "synced_cpu_s", "synced_server_cpu_s",
                                 "peak_mib", "writes", "load")] for i in restarts]
    return {"parts": found, "upstream": UPSTREAM, "tables": [
        {"columns": ["%d jobs at %.1f/s" % (paced["jobs"], paced["made_per_s"]), "p50, s", "p99, s", "max, s"], "rows": [
            ["create sent to coordinator's pod seen", paced["p50_s"], paced["p99_s"], paced["max_s"]],
            ["create sent to create answered", paced["answer_p50_s"], paced["answer_p99_s"], None],
            ["create answered to coordinator's pod seen", paced["ours_p50_s"], paced["ours_p99_s"], paced["ours_max_s"]]]},
        {"columns": ["a burst of 1000 by", "created, s", "last pod, s", "all done, s", "peak MiB", "CPU, s", "load"],
         "rows": rows},
        {"columns": ["%d pods, %.0f s" % (steady["pods"], steady["watched_s"]), "writes", "looks", "RSS, MiB", "peak, MiB",
                     "CPU, % of a core", "load"],
         "rows": [["nothing happens", steady["writes"], steady["rounds"], steady["rss_mib"], steady["peak_mib"],
                   100 * steady["cpu_part"], steady["load"]]]},
        {"columns": ["a restart: synced, s", "after the lease", "all looked at, s", "CPU, s", "server's CPU, s", "peak, MiB",
                     "writes", "load"],
         "rows": begun}],
        "checks": [
            check("50 jobs/s: p99 from create to pod, s", paced["p99_s"], 1.0, "<="),
            check("burst: the last coordinator's pod, s", found["burst"]["last_pod_s"], 15.0, "<="),
            check("writes while nothing happens", steady["writes"], 0, "<="),
            check("RSS with 10,000 pods, MiB", steady["rss_mib"], 32.0, "<="),
            check("its peak, MiB", max([steady["peak_mib"]] + [i["peak_mib"] for i in restarts]), 48.0, "<="),
            check("processor, part of a core", steady["cpu_part"], 0.05, "<="),
            check("synced after it holds the lease, slowest, s", max(i["after_lease_s"] for i in restarts), 2.0, "<="),
            check("writes of a restarted one", max(i["writes"] for i in restarts), 0, "<=")]}
