#!/usr/bin/env python3
"""Seeded chaos on the lines between processes: connections are reset, or fall silent for a while (shorter and longer than a lease),
those that carry experience, gradients and weights as well as those to the coordinator. What was on its way is lost, the processes live.
Whatever happens, a run ends well, with the counters of an undisturbed one, and at lag 0 and 1 with its bits.

The runs are in a network namespace of their own, all lines over tcp, where a packet filter stands between them. LINES_SEED=n repeats a
sequence, LINES_RUNS=n makes that many runs of each lag, LINES_STEPS=n makes them longer; names on the command line choose tests."""

import os
import random
import re
import shutil
import subprocess
import sys
import time

INSIDE = "TT_LINES_INSIDE"
if INSIDE not in os.environ:
    apart = ["unshare", "--net"] if os.geteuid() == 0 else ["unshare", "--map-root-user", "--net"]
    tools = [tool for tool in ("unshare", "ip", "ss", "iptables") if not shutil.which(tool, path=os.environ["PATH"] + ":/usr/sbin:/sbin")]
    if tools or subprocess.run([*apart, "true"], stderr=subprocess.DEVNULL).returncode != 0:
        print(f"no network namespace here ({', '.join(tools) or 'unshare is not allowed'})")
        sys.exit(77)
    os.environ.update({INSIDE: "1", "PATH": os.environ["PATH"] + ":/usr/sbin:/sbin"})
    os.execvp("unshare", [*apart, sys.executable, *sys.argv])

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "e2e"))
from disturbed import check_like, tests_of_lags  # noqa: E402
from rig import Failed, check, steps, wait_for  # noqa: E402
from rig import main as run_tests  # noqa: E402

SEED = int(os.environ.get("LINES_SEED") or time.time_ns() % 1_000_000)
RUNS = int(os.environ.get("LINES_RUNS") or 2)
LEASE_MS = 1000
STEPS = int(os.environ.get("LINES_STEPS") or steps(400_000))
ACTIONS = 8
LISTENS = re.compile(r"^LISTEN\s+\S+\s+\S+\s+\S+:(\d+)\s.*\"tutti\",pid=(\d+)", re.MULTILINE)


def tool(*argv):
    done = subprocess.run(argv, capture_output=True, text=True)
    check(done.returncode == 0, f"{' '.join(argv)}: {done.stderr}")
    return done.stdout


def ports():
    """Of all processes that listen for others."""
    return sorted(int(port) for port, _ in LISTENS.findall(tool("ss", "-Hltnp")))


def filter_(action, port, how):
    for side in ("--dport", "--sport"):
        tool("iptables", "-w", action, "INPUT", "-p", "tcp", side, str(port), "-j", *how)


def disturb(world, rng, process, said):
    """One line after the other, with random time between them (that is what is tested), until the run is over."""
    for _ in range(ACTIONS):
        time.sleep(rng.random() * rng.choice((0.01, 0.1, 0.4)))
        there = ports()
        if process.poll() is not None or not there:
            said.append("(over)")
            break
        port = rng.choice(there)
        how, word = rng.choice(((("REJECT", "--reject-with", "tcp-reset"), "cut"), (("DROP",), "silent")))
        seconds = rng.choice((0.02, 0.2, 0.6, 1.3)) * LEASE_MS / 1000
        said.append(f"{word} {there.index(port)} of {len(there)} for {seconds} s")
        filter_("-I", port, how)
        time.sleep(seconds)
        filter_("-D", port, how)


def sets(lag, *more):
    return [f"lag={lag}", f"stop.env_steps={STEPS}", "net.beat_ms=100", f"net.lease_ms={LEASE_MS}", "checkpoint.every_s=0.3",
            "coordinator.listen=tcp://127.0.0.1:0", *more]


def s_lines(world, seed, lag, still):
    rng, said = random.Random(f"{seed}/{lag}"), []
    collectors, learners = rng.randint(1, 3), rng.randint(1, 3)
    process, run_dir = world.start_run(
        world.config(), *sets(lag, f"collector.replicas={collectors}", f"learner.replicas={learners}"), seed=7, name=f"run-{seed}-{lag}")
    story, begun = f"LINES_SEED={seed} lag {lag}, {collectors} collectors, {learners} learners: ", time.monotonic()
    try:
        world.await_steps(run_dir, 1)
        wait_for(lambda: len(ports()) > 2 or process.poll() is not None, lambda: f"listening on {ports()} alone: experience goes another way")
        disturb(world, rng, process, said)
        summary = world.summary(process)
        check_like(summary, still, lag)
        world.await_empty()
    except Failed as error:
        raise Failed(f"{story}{', '.join(said)}: {error}") from error
    finally:
        tool("iptables", "-w", "-F", "INPUT")
    print(f"        {story}{', '.join(said)}; rolled back {summary['rolled_back']}, {time.monotonic() - begun:.1f} s", flush=True)


tool("ip", "link", "set", "lo", "up")
print(f"LINES_SEED={SEED}", flush=True)
run_tests(*tests_of_lags(s_lines, sets, SEED, RUNS))
