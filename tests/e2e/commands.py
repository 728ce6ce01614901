#!/usr/bin/env python3
"""The other commands as a user types them: --help everywhere, ps, status, logs, eval, rm, --detach, check."""

import hashlib
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import urllib.request

sys.dont_write_bytecode = True
from rig import DEADLINE, ENDLESS, TUTTI, check, equal, main, wait_for

COMMANDS = ["run", "resume", "ps", "status", "scale", "logs", "stop", "fetch", "rm", "eval", "envs", "algorithms", "check",
            "config", "bench", "version", "completion", "help", "coordinator", "collector", "learner", "aggregator"]


def test_help_everywhere(world):
    listing = world.tutti("help").stdout
    for name in COMMANDS:
        check(f" {name} " in listing, f"tutti help does not list {name}")
        done = world.tutti(name, "--help")
        equal(done.returncode, 0, f"tutti {name} --help")
        check(f"tutti {name}" in done.stdout, f"tutti {name} --help says {done.stdout[:100]!r}")
    equal(world.tutti("rnu").returncode, 64, "an unknown command")
    check("run" in world.tutti("rnu").stderr, "the nearest command is not named")
    equal(world.tutti().returncode, 64, "no command")


def test_completion_is_shell(world):
    script = world.tutti("completion", "bash").stdout
    done = subprocess.run(["bash", "-n"], input=script, text=True, capture_output=True, check=False)
    equal(done.returncode, 0, f"bash reads it: {done.stderr}")


def test_check_prints_origins(world):
    done = world.tutti("check", world.config(), "--set", "seed=9")
    equal(done.returncode, 0, f"check: {done.stderr}")
    check("job.yaml:4" in done.stdout, "the file's line is missing")
    check("--set" in done.stdout, "the override's origin is missing")
    check("default" in done.stdout, "a default's origin is missing")


def test_a_run_from_outside(world):
    """ps, status, logs and eval agree with what run says."""
    summary = world.train(world.config(), "collector.replicas=2")
    name = summary["run"]
    rows = json.loads(world.tutti("ps", "--all", "--output", "json").stdout)
    equal([(row["run"], row["status"]) for row in rows], [(name, "succeeded")], "ps")
    equal(json.loads(world.tutti("status", name, "--output", "json").stdout), summary, "status of an ended run")
    logs = world.tutti("logs", name)
    equal(logs.returncode, 0, f"logs: {logs.stderr}")
    equal(world.tutti("logs", name, "collector/1").returncode, 0, "logs of one replica")
    equal(world.tutti("logs", name, "poet").returncode, 66, "logs of nobody")
    final = os.path.join(summary["run_dir"], "checkpoints", "final.safetensors")
    first = json.loads(world.tutti("eval", final, "--episodes", "20", "--output", "json").stdout)
    again = json.loads(world.tutti("eval", final, "--episodes", "20", "--output", "json").stdout)
    equal(first["return_mean"], again["return_mean"], "eval twice")
    equal(first["episodes"], 20, "episodes of eval")
    os.remove(os.path.join(summary["run_dir"], "summary.json"))  # as if tutti run had been killed at the very end
    equal(json.loads(world.tutti("status", name, "--output", "json").stdout)["status"], "succeeded", "by result.json")
    equal(world.tutti("rm", name).returncode, 0, "rm")
    check(not os.path.exists(summary["run_dir"]), "rm left the directory")
    equal(json.loads(world.tutti("ps", "-a", "--output", "json").stdout), [], "ps after rm")


def test_rm_removes_runs_only(world):
    """A checkout with a config.yaml, a link to a run, what a link in a run leads to: all that stays; 0.1's runs go."""
    checkout = os.path.join(world.path, "checkout")
    subprocess.run(["git", "init", "-q", checkout], check=True)
    world.config(name="checkout/config.yaml")
    for command in ("rm", "status", "logs", "resume", "stop"):
        done = world.tutti(command, checkout)
        equal(done.returncode, 66, f"{command} of what is no run: {done.stderr}")
        equal(sorted(os.listdir(checkout)), [".git", "config.yaml"], f"files after {command}")
    equal(json.loads(world.tutti("ps", "-a", "--output", "json").stdout), [], "ps")
    run_dir = world.train(world.config())["run_dir"]
    os.symlink(run_dir, os.path.join(world.path, "best"))
    equal(world.tutti("rm", "best/").returncode, 64, "rm of a link")
    os.symlink(checkout, os.path.join(run_dir, "claims"))
    os.symlink(checkout, os.path.join(run_dir, "sock"))
    for name in (".tutti-run", "history.jsonl"):  # as 0.1 made it
        os.remove(os.path.join(run_dir, name))
    done = world.tutti("rm", run_dir)
    equal(done.returncode, 0, f"rm: {done.stderr}")
    check(not os.path.exists(run_dir), "rm left the run")
    equal(sorted(os.listdir(checkout)), [".git", "config.yaml"], "what the run's links led to")


def s_stop_now(world, run_dir):
    """By its coordinator, which may be late to answer: of a run that has ended it is no mistake to say it again."""
    said = []

    def look():
        said.append(world.tutti("stop", run_dir, "--now"))
        return said[-1].returncode == 0
    wait_for(look, lambda: f"stop --now: {said[-1].stderr}")


def test_stop_ends_nobody_else(world):
    """run.json is a file like others: a process of which it speaks must hold the run."""
    run_dir = os.path.join(world.path, "left")
    equal(world.tutti("run", world.config(), "--run-dir", run_dir, "--detach", "--set", "stop.env_steps=1000M").returncode, 0,
          "run --detach")
    path = os.path.join(run_dir, "run.json")
    with open(path, encoding="utf-8") as file:
        who = json.load(file)
    victim = subprocess.Popen(["sleep", "1000"])
    try:
        with open(path, "w", encoding="utf-8") as file:
            json.dump(dict(who, pid=victim.pid), file)
        s_stop_now(world, run_dir)
        world.await_empty()  # its coordinator was asked
        equal(victim.poll(), None, "that process")
    finally:
        victim.kill()
        victim.wait()


def test_stop_from_outside_its_namespace(world):
    """A run in a container has numbers of its own for its processes: it is asked to end by its socket, and where that does not answer it is
    said why and what to do."""
    by = ("unshare", "--pid", "--fork", "--kill-child", "--mount-proc")
    if os.geteuid() != 0 or not shutil.which("unshare") or subprocess.run([*by, "true"], capture_output=True, check=False).returncode != 0:
        print("        needs root and a PID namespace: left out", flush=True)
        return
    config = world.config()
    process, run_dir = world.start_run(config, ENDLESS, by=by)
    world.await_steps(run_dir, 1, process)
    s_stop_now(world, run_dir)
    summary = world.summary(process, code=143)
    equal((summary["status"], summary["reason"]), ("stopped", "tutti stop --now"), "how it ended")
    check("final.safetensors" not in os.listdir(os.path.join(run_dir, "checkpoints")), "a snapshot")
    world.await_empty()
    process, run_dir = world.start_run(config, ENDLESS, by=by, name="deaf")
    world.await_steps(run_dir, 1, process)
    for pid, line in world.processes().items():
        if line.startswith("tutti "):
            os.kill(pid, signal.SIGSTOP)
    done = world.tutti("stop", run_dir, "--now")
    equal(done.returncode, 69, f"stop --now of one that does not answer: {done.stderr}")
    for words in ("deaf cannot be killed from here", "does not answer", "container", "tutti stop --now"):
        check(words in done.stderr, f"{words!r} is not said: {done.stderr}")
    process.kill()  # and with it all of its namespace


def test_fetch(world):
    """The weights as one file, to a file and to a pipe; what is damaged, or not what the summary tells of, is not handed out."""
    summary = world.train(world.config(), "checkpoint.every_s=0.01")
    name, folder = summary["run"], os.path.join(summary["run_dir"], "checkpoints")
    final, out = os.path.join(folder, "final.safetensors"), os.path.join(world.path, "out.safetensors")
    with open(final, "rb") as file:
        wanted = file.read()
    done = world.tutti("fetch", name, "-o", out)
    equal(done.returncode, 0, f"fetch: {done.stderr}")
    check(f"sha256 {hashlib.sha256(wanted).hexdigest()}" in done.stderr and "final.safetensors" in done.stderr, done.stderr)
    with open(out, "rb") as file:
        check(file.read() == wanted, "another file")
    piped = subprocess.run([os.environ["TUTTI"], "fetch", name, "-o", "-"], capture_output=True, check=True, env=world.env)
    check(piped.stdout == wanted, "another file through a pipe")
    equal(world.tutti("eval", out, "--episodes", "2").returncode, 0, "eval of what was fetched")
    equal(world.tutti("fetch", name, "--best", "-o", out).returncode, 0, "fetch --best")
    equal(world.tutti("fetch", name, "-o", os.path.join(world.path, "no", "x")).returncode, 74, "nowhere to write")
    params = bytearray(wanted)
    header = int.from_bytes(wanted[:8], "little")
    where = json.loads(wanted[8:8 + header])[f"tutti.version.{summary['updates']}.params"]["data_offsets"][0]
    at = 8 + header + where
    params[at] ^= 1
    os.unlink(out)
    os.unlink(final)
    with open(final, "wb") as file:
        file.write(params)
    newest = sorted(entry for entry in os.listdir(folder) if entry[0].isdigit())[-1]
    damaged = world.tutti("fetch", name, "-o", out)
    equal(damaged.returncode, 0, f"a flipped bit: {damaged.stderr}")
    check("final.safetensors is passed over: damaged" in damaged.stderr, damaged.stderr)
    taken = re.search(r": (\S+), its newest that is whole, is taken", damaged.stderr).group(1)
    check(taken in (newest, "best.safetensors"), f"{taken} is taken")
    with open(out, "rb") as file, open(os.path.join(folder, taken), "rb") as before:
        check(file.read() == before.read(), f"not {taken}")
    os.unlink(final)
    done = world.tutti("fetch", name, "-o", out)
    check(done.returncode == 0 and "its newest is taken" in done.stderr, done.stderr)
    os.link(os.path.join(folder, newest), final)  # weights of another version in the place of the last ones
    other = world.tutti("fetch", name, "-o", out)
    if newest != f"{summary['updates']:08}.safetensors":
        check(other.returncode == 65 and "result.json" in other.stderr, other.stderr)
    equal(sorted(entry for entry in os.listdir(world.path) if "tmp" in entry), [], "left behind")


def s_blocks(pid, number):
    """Has the process come to where it takes that signal itself?"""
    with open(f"/proc/{pid}/status", encoding="utf-8") as file:
        return int(re.search(r"(?m)^SigBlk:\s*(\S+)$", file.read()).group(1), 16) >> (number - 1) & 1


def test_fetch_stays(world):
    """In a pod: there before the run directory is, gone so long after the run's end, or when it is told to."""
    run = os.path.join(world.path, "later")
    stays, told = world.start("fetch", run, "--stay", "0"), world.start("fetch", run, "--stay", "1000")
    process = world.start_run(world.config(), name="later")[0]
    world.summary(process)
    equal(stays.wait(60), 0, "it has stayed")
    wait_for(lambda: s_blocks(told.pid, signal.SIGTERM), "it to be ready to be told")
    told.send_signal(signal.SIGTERM)
    equal(told.wait(60), 0, "it was told to go")
    equal(world.tutti("fetch", "later", "--stay", "0").returncode, 0, "it has stayed with a run by its name")
    lost = world.tutti("fetch", "latr", "--stay", "1000")
    equal(lost.returncode, 66, f"there is no run of that name: {lost.stderr}")
    check("no run 'latr'" in lost.stderr, lost.stderr)


def test_a_run_is_its_owners(world):
    """Whatever the umask, nobody else gets into a run; nobody may read its secrets or take its locks, were it opened to all."""
    for mask in (0o022, 0o077):
        run_dir = os.path.join(world.path, f"run-{mask:o}")
        before = os.umask(mask)
        try:
            process, _ = world.start_run(world.config(), ENDLESS, name=f"run-{mask:o}")
        finally:
            os.umask(before)
        world.await_steps(run_dir, 1, process)
        wait_for(lambda path=run_dir: os.path.exists(f"{path}/http.json"), "HTTP")
        world.tutti("stop", run_dir)  # files come and go while it runs
        world.finish(process)
        equal(os.stat(run_dir).st_mode & 0o7777, 0o700, "the run directory")
        seen = {}
        for folder, folders, files in os.walk(run_dir):
            for name in folders + files:
                path = os.path.join(folder, name)
                seen[os.path.relpath(path, run_dir)] = os.stat(path).st_mode & 0o7777
        for name in ("token", "key", "lock", "coordinator.lock"):
            equal(seen.pop(name), 0o600, f"umask {mask:o}: mode of {name}")
        for name, mode in seen.items():
            equal(mode & mask, 0, f"umask {mask:o}: mode of {name}, {mode:o}, beyond the umask")
            equal(mode & 0o022, 0, f"mode of {name}, {mode:o}: others may write")
        check({"config.yaml", "metrics.jsonl", "logs", "journal.db", "summary.json"} <= set(seen), f"not all: {seen}")
    equal(os.stat(os.path.join(world.path, "state", "tutti", "runs")).st_mode & 0o7777, 0o700, "the registry")


def test_a_coordinator_on_its_own_leaves_no_sockets(world):
    """When its job has ended; the sockets of a long path are in a folder of /tmp. Where it only leaves (SIGTERM) they stay: it comes back."""
    run_dir = os.path.join(world.path, "x" * 100)
    link = os.path.join(run_dir, "sock")
    for number, code in ((signal.SIGTERM, 143), (signal.SIGINT, 0)):
        process = world.start("coordinator", "--config", world.config(), "--run", run_dir)
        wait_for(lambda: (world.status(run_dir) or {}).get("phase"), "its answer")
        folder = os.readlink(link)
        process.send_signal(number)
        got, _, err = world.finish(process)
        equal(got, code, f"exit code: {err}")
        equal((os.path.lexists(link), os.path.exists(folder)), (code != 0, code != 0), f"{folder} after {number.name}")


def s_as_nobody(world, *args):
    """A command as a user of no rights at all, without a home; it must not wait for what it cannot get."""
    return subprocess.run(["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", TUTTI, *args], env={"TT_E2E": world.mark},
                          cwd="/", stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=False)


def test_another_users_run(world):
    """One that was opened to be read: how it ended is said; of a live one, at once, that its sockets are its owner's alone."""
    if os.geteuid() != 0 or not shutil.which("setpriv"):
        print("        needs root and setpriv: left out", flush=True)
        return
    os.chmod(world.path, 0o755)
    if s_as_nobody(world, "version").returncode != 0:
        print("        the program is not open to others: left out", flush=True)
        return
    process, run_dir = world.start_run(world.config(), ENDLESS)
    world.await_steps(run_dir, 1, process)
    os.chmod(run_dir, 0o755)
    for command in (("status",), ("stop",), ("stop", "--now"), ("scale", "collector=2"), ("resume",), ("rm",)):
        done = s_as_nobody(world, command[0], run_dir, *command[1:])
        equal(done.returncode, 73 if command[0] == "resume" else 77, f"{command}: {done.stderr}")
        equal(len(done.stderr.splitlines()), 1, f"{command}: lines of {done.stderr}")
        if command[0] not in ("resume", "rm"):
            check("another user's" in done.stderr, f"{command}: {done.stderr}")
    world.stop(process, run_dir)
    done = s_as_nobody(world, "status", run_dir)
    equal((done.returncode, "stopped: tutti stop" in done.stdout), (0, True), f"status of an ended run: {done.stdout} {done.stderr}")
    check("asked to end" in s_as_nobody(world, "logs", run_dir, "learner", "-f").stdout, "its logs, to their end")
    for command in ("stop", "resume", "rm"):
        done = s_as_nobody(world, command, run_dir)
        equal(done.returncode, 69 if command == "stop" else 77, f"{command} of an ended run: {done.stderr}")
        check("running already" not in done.stderr, f"{command}: {done.stderr}")


def test_what_is_not_utf8(world):
    """A run directory whose name is no text, and a reason that is cut within a character: the run ends as any other."""
    folder = os.fsencode(world.path) + b"/caf\xe9"
    done = subprocess.run([TUTTI.encode(), b"run", b"job.yaml", b"--output", b"json", b"--run-dir", folder],
                          cwd=os.path.dirname(world.config()), env=world.env, capture_output=True, check=False)
    equal(done.returncode, 0, f"run in caf\\xe9: {done.stderr}")
    summary = json.loads(done.stdout)
    equal((summary["status"], summary["run"]), ("succeeded", "caf?"), "its summary")
    equal(len(summary["weights_sha256"]), 64, "its weights")
    for args in ((b"status", folder, b"--output", b"json"), (b"ps", b"-a", b"--output", b"json"), (b"status", folder),
                 (b"eval", folder + b"/checkpoints/final.safetensors", b"-n", b"2", b"--output", b"json")):
        done = subprocess.run([TUTTI.encode(), *args], cwd=world.path, env=world.env, capture_output=True, check=False)
        equal(done.returncode, 0, f"{args}: {done.stderr}")
        check(b"caf" in done.stdout, f"{args}: {done.stdout}")
        if b"json" in args:
            json.loads(done.stdout)
    equal(subprocess.run([TUTTI.encode(), b"rm", folder], env=world.env, check=False).returncode, 0, "rm")

    process, run_dir = world.start_run(world.config(), ENDLESS)
    world.await_steps(run_dir, 1, process)
    address = wait_for(lambda: os.path.exists(f"{run_dir}/http.json") and f"{run_dir}/http.json", "HTTP")
    with open(address, encoding="utf-8") as file:
        url = json.load(file)["url"]
    with open(f"{run_dir}/token", encoding="utf-8") as file:
        token = file.read().strip()
    body = json.dumps({"reason": "x" + "\u00e9" * 300}, ensure_ascii=False).encode()
    request = urllib.request.Request(f"{url}/stop", body, {"Authorization": f"Bearer {token}"})
    with urllib.request.urlopen(request, timeout=60) as answer:
        equal(answer.status, 200, "POST /stop")
    summary = world.summary(process, code=143)
    equal(summary["reason"], "x" + "\u00e9" * 127, "the reason, cut at a character")
    equal(len(summary["weights_sha256"]), 64, "its weights")


def test_an_end_of_learning_is_said(world):
    """A schedule that ends before the run; not one that ends with it."""
    for steps, said in ((512, True), (0, False)):
        summary = world.train(world.config(), "algorithm.anneal=linear", f"algorithm.anneal_steps={steps}")
        log = world.tutti("logs", summary["run"], "coordinator").stdout
        equal("the learning rate is 0" in log, said, f"anneal_steps={steps}: {log[-2000:]}")


def test_detach(world):
    run_dir = os.path.join(world.path, "left")
    done = world.tutti("run", world.config(), "--run-dir", run_dir, "--detach", "--set", "stop.env_steps=1000M")
    equal(done.returncode, 0, f"run --detach: {done.stderr}")
    check("left" in done.stdout, f"its name is missing: {done.stdout}")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = f"coordinator.http=127.0.0.1:{taken.getsockname()[1]}"
        refused = world.tutti("run", world.config(), "--run-dir", os.path.join(world.path, "taken"), "--detach", "--set", port)
    equal(refused.returncode, 73, f"the end of a detached run that never trained: {refused.stderr}")
    for number in range(3):  # over before it could say that it trains, or not
        short = world.tutti("run", world.config(), "--run-dir", os.path.join(world.path, f"short{number}"), "--detach", "--set", "stop.env_steps=1")
        equal(short.returncode, 0, f"a detached run of one update: {short.stdout}{short.stderr}")
        check(f"tutti status short{number}" in short.stdout, short.stdout)
    status = world.look(run_dir)
    check(status["env_steps"] > 0, f"it does not train: {status}")
    check("left" in world.tutti("ps").stdout, "ps does not show it")
    equal(world.tutti("rm", "left").returncode, 73, "rm of a live run")
    equal(world.tutti("stop", "left").returncode, 0, "stop")
    world.await_empty()
    equal(json.loads(world.tutti("status", "left", "--output", "json").stdout)["status"], "stopped", "status")


def test_logs_follow(world):
    process, run_dir = world.start_run(world.config(), "stop.env_steps=1000M")
    world.await_steps(run_dir, 1, process)
    reader = world.start("logs", run_dir, "coordinator", "-f")
    path = os.path.join(world.path, "out.2")
    wait_for(lambda: os.path.getsize(path) > 0, "the first lines")
    process.send_signal(signal.SIGINT)
    world.finish(process)
    code, _, err = world.finish(reader)
    equal(code, 0, f"logs -f ends with the run: {err}")


def test_metrics_file(world):
    summary = world.train(world.config())
    with open(os.path.join(summary["run_dir"], "metrics.jsonl"), encoding="utf-8") as file:
        rows = [json.loads(line) for line in file]
    order = [(row["updates"], row["env_steps"]) for row in rows]
    equal(order, sorted(set(order)), "updates and steps in metrics.jsonl")
    updates = [row["updates"] for row in rows[:-1]]  # the batch that met the rule may be a line of its own
    equal(updates, sorted(set(updates)), "updates in metrics.jsonl")
    equal((rows[-1]["updates"], rows[-1]["env_steps"]), (summary["updates"], summary["env_steps"]), "the last row")
    for name in ("losses/policy_loss", "losses/value_loss", "losses/entropy", "losses/approx_kl", "charts/learning_rate"):
        check(name in rows[-1] or name in rows[-1].get("metrics", {}), f"{name} is missing")


def test_a_log_that_is_cut_under_its_reader(world):
    """It is read on behind what is missing, though it has grown since it was opened, and is larger still than it was then."""
    def line(number):
        return f"{number:06d} {'x' * 92}\n".encode()

    process, run_dir = world.start_run(world.config(), ENDLESS)
    path = os.path.join(run_dir, "logs", "loud.log")
    wait_for(lambda: os.path.exists(os.path.dirname(path)), "the logs")
    with open(path, "wb") as log:
        log.writelines(map(line, range(1000)))
    reader = subprocess.Popen([TUTTI, "logs", "-f", run_dir, "loud"], cwd=world.path, env=world.env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
    world.started.append(reader)
    seen = [reader.stdout.readline()]
    with open(path, "ab") as log:
        log.writelines(map(line, range(1000, 8000)))
    while seen[-1] != line(5000):
        seen.append(reader.stdout.readline())
        check(seen[-1], "an end before the run's")
    note = b"--- tutti: 640000 bytes are missing here: the log had become too large (TT_LOG_MB)\n"
    with open(path, "r+b") as log:  # as who keeps the process cuts it
        log.truncate(60000)
        log.seek(60000)
        log.write(note + b"".join(map(line, range(7000, 8000))))
    world.stop(process, run_dir)
    seen += reader.stdout.readlines()
    equal(reader.wait(timeout=DEADLINE), 0, "exit code")
    check(note in seen, "nothing is said of what is missing")
    equal(seen[-1000:], list(map(line, range(7000, 8000))), "the newest lines")
    before = seen[:seen.index(note)]
    equal(before, list(map(line, range(len(before)))), "those before")


main(test_help_everywhere, test_completion_is_shell, test_check_prints_origins, test_a_run_from_outside,
     test_rm_removes_runs_only, test_a_run_is_its_owners, test_a_coordinator_on_its_own_leaves_no_sockets, test_another_users_run, test_what_is_not_utf8, test_stop_ends_nobody_else, test_stop_from_outside_its_namespace, test_fetch,
     test_fetch_stays, test_an_end_of_learning_is_said, test_detach, test_logs_follow, test_a_log_that_is_cut_under_its_reader, test_metrics_file)
