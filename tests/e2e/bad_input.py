#!/usr/bin/env python3
"""Bad input: one clear message that says what to do, a sysexits code, nothing half-written, no process left."""

import json
import os
import pwd
import re
import resource
import shutil
import socket
import subprocess
import sys
import urllib.error
import urllib.request

sys.dont_write_bytecode = True
from rig import DEADLINE, ENDLESS, JOB, SANITIZED, TUTTI, check, equal, in_time, main, wait_for

USAGE, DATA, NO_INPUT, UNAVAILABLE, CANNOT_CREATE, IO, CONFIG, DIVERGED = 64, 65, 66, 69, 73, 74, 78, 79


def s_refused(world, code, words, *args, env=None):
    """The command ends with `code`, one line on stderr that holds all words, and no run directory made."""
    before = sorted(os.listdir(world.path))
    done = world.tutti(*args, env=env)
    equal(done.returncode, code, f"{args}: exit code; stderr: {done.stderr}")
    lines = in_time(done.stderr).strip().splitlines()
    check(len(lines) == 1 or code == USAGE, f"{args}: more than one message: {done.stderr}")
    for word in words:
        check(word in lines[0], f"{args}: the message does not say {word!r}: {lines[0]}")
    equal(sorted(os.listdir(world.path)), before, f"{args}: files after the refusal")
    world.await_empty()


def s_refused_config(world, text, *words):
    path = world.config(text)
    s_refused(world, CONFIG, words, "run", path)


def test_missing_config(world):
    s_refused(world, NO_INPUT, ["nowhere.yaml"], "run", "nowhere.yaml")


def test_key_typo(world):
    s_refused_config(world, JOB.replace("num_envs", "num_env"), "job.yaml:4:1", "num_env", "num_envs")


def test_out_of_range(world):
    s_refused_config(world, JOB + "collector:\n  replicas: 0\n", "job.yaml:", "collector.replicas", "1")


def test_wrong_type(world):
    s_refused_config(world, JOB.replace("num_steps: 32", "num_steps: many"), "job.yaml:5:", "num_steps", "many")


def test_not_yaml(world):
    s_refused_config(world, "name: [1, 2\nenv: }\n", "job.yaml:2")


def test_unknown_env(world):
    s_refused_config(world, JOB.replace("CartPole-v1", "CartPole-v9"), "CartPole-v9", "CartPole-v1")


def test_unknown_algorithm(world):
    s_refused_config(world, JOB.replace("name: ppo", "name: pppo"), "pppo", "ppo")


def test_more_learners_than_shards(world):
    s_refused(world, CONFIG, ["learner.replicas", "learner.shards"], "run", world.config(), "--set", "learner.replicas=5")


def test_more_collectors_than_envs(world):
    s_refused(world, CONFIG, ["collector.replicas", "num_envs"], "run", world.config(), "--set", "collector.replicas=9")


def test_shards_that_do_not_fit(world):
    s_refused(world, CONFIG, ["learner.shards", "minibatch"], "run", world.config(), "--set", "learner.shards=128")


def test_wrong_option(world):
    s_refused(world, USAGE, ["--seeds", "--seed"], "run", world.config(), "--seeds", "3")


def test_bad_assignment(world):
    s_refused(world, USAGE, ["seed"], "run", world.config(), "--set", "seed")


def test_run_directory_in_use(world):
    config = world.config()
    summary = world.train(config, "stop.env_steps=512")
    done = world.tutti("run", config, "--run-dir", summary["run_dir"])
    equal(done.returncode, CANNOT_CREATE, "exit code")
    check("resume" in done.stderr and summary["run_dir"] in done.stderr, f"message: {done.stderr}")


def test_port_in_use(world):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        done = world.tutti("run", world.config(), "--set", f"coordinator.listen=tcp://127.0.0.1:{port}",
                           "--output", "json")
        equal(done.returncode, CANNOT_CREATE, f"exit code; {done.stderr}")
        check(str(port) in done.stderr, f"message: {done.stderr}")
        done = world.tutti("run", world.config(), "--set", f"coordinator.http=127.0.0.1:{port}", "--output", "json")
        equal(done.returncode, CANNOT_CREATE, f"exit code; {done.stderr}")
        check(str(port) in done.stderr, f"message: {done.stderr}")
    world.await_empty()


def test_no_library_for_http(world):
    """A run for which nobody gave a port goes on without HTTP; one with a port does not begin."""
    folder = os.path.join(world.path, "empty")
    os.mkdir(folder)
    with open(os.path.join(folder, "libmicrohttpd.so.12"), "wb"):
        env = {"LD_LIBRARY_PATH": folder}
    process, run_dir = world.start_run(world.config(), ENDLESS, env=env)

    def said():
        return [line for line in world.tutti("logs", run_dir, "coordinator").stdout.splitlines() if "no HTTP: " in line]

    wait_for(said, "a word of HTTP")
    check("libmicrohttpd.so.12" in said()[0] and "install libmicrohttpd12" in said()[0], said())
    equal(world.tutti("stop", run_dir).returncode, 0, "to be stopped")
    equal(world.finish(process)[0], 143, "exit code")
    equal(len(said()), 1, "words of it")
    done = world.tutti("run", world.config(), "--set", "coordinator.http=127.0.0.1:1", "--output", "json", env=env)
    equal(done.returncode, UNAVAILABLE, f"exit code; {done.stderr}")
    check("install libmicrohttpd12, or switch HTTP off" in json.loads(done.stdout)["reason"], f"message: {done.stdout}")
    world.await_empty()


def test_unknown_run(world):
    for command in ("status", "stop", "logs", "resume", "rm"):
        s_refused(world, NO_INPUT, ["nobody", "tutti ps"], command, "nobody")
    s_refused(world, NO_INPUT, ["nobody", "tutti ps"], "scale", "nobody", "collector=2")


def s_ordered(run_dir, path, body):
    """(status code, the answer) of a POST to a run."""
    with open(f"{run_dir}/http.json", encoding="utf-8") as file:
        url = json.load(file)["url"]
    with open(f"{run_dir}/token", encoding="utf-8") as file:
        request = urllib.request.Request(url + path, body.encode(), {"Authorization": f"Bearer {file.read().strip()}"})
    try:
        with urllib.request.urlopen(request, timeout=DEADLINE) as reply:
            return reply.status, json.load(reply)
    except urllib.error.HTTPError as refused:
        return refused.code, json.load(refused)


def test_orders_that_are_none(world):
    """HTTP's /stop, and tutti scale: what is not understood is not done."""
    process, run_dir = world.start_run(world.config(), ENDLESS)
    wait_for(lambda: os.path.exists(f"{run_dir}/http.json"), "HTTP")
    for body, words in (('{"now": "yes"}', "now must be true or false"), ('{"reason": 5}', "reason must be a string"),
                        ('{"foo": 1}', "no key 'foo'"), ('{"code": 3}', "no key 'code'"), ('stop', "not JSON")):
        code, said = s_ordered(run_dir, "/stop", body)
        equal(code, 400, f"{body}: {said}")
        check(words in said["error"], f"{body}: {said}")
    for order, words in (("collector=0", "collector must be a number from 1 to 8 (num_envs)"),
                         ("collector=9", "9 collectors; at most 8 have work"), ("poet=3", "no role 'poet'")):
        done = world.tutti("scale", run_dir, order)
        equal(done.returncode, USAGE, f"scale {order}: {done.stderr}")
        check(done.stderr.startswith(f"tutti scale: {words}"), f"scale {order}: {done.stderr}")
    equal(s_ordered(run_dir, "/stop", '{"reason": "enough", "now": false}'), (200, {}), "a right one")
    equal(world.summary(process, code=143)["reason"], "enough", "reason")


def test_full_disk(world):
    """A run directory on a file system with no room ends with a message, not with a hang: when the run begins or later."""
    folder = os.path.join(world.path, "small")
    os.mkdir(folder)
    if os.geteuid() != 0 or not shutil.which("unshare"):
        print("        needs root and unshare: left out", flush=True)
        return
    probe = subprocess.run(["unshare", "-m", "sh", "-c", f"mount -t tmpfs tmpfs {folder}"], capture_output=True, check=False)
    if probe.returncode != 0:
        print("        no mount namespace here: left out", flush=True)
        return
    run = os.path.join(folder, "run")
    script = ("mount -t tmpfs -o size=$0 tmpfs $1 && { $2 run $3 --run-dir $1/run; echo = $?; $2 status $1/run; $2 ps -a; "
              "echo ---; cat $1/run/metrics.jsonl; }")
    for size in ("64k", "96k", "128k", "200k"):
        done = subprocess.run(["unshare", "-m", "sh", "-c", script, size, folder, TUTTI, world.config()], env=world.env,
                              cwd=world.path, capture_output=True, text=True, timeout=DEADLINE, stdin=subprocess.DEVNULL,
                              check=False)
        said, _, rows = done.stdout.partition("---\n")
        run_said, _, after = said.partition("\n= ")
        check(int(after.split()[0]) in (IO, CANNOT_CREATE), f"{size}: exit code; {said} {done.stderr}")
        for part in (run_said + done.stderr, *after.split("DIRECTORY")):
            check("No space left on device" in part or "disk is full" in part, f"{size}: message: {part}")
        check(len(re.findall(r"^run +failed", after, re.M)) == 2 and "killed" not in after, f"{size}: status and ps: {after}")
        for row in rows.splitlines():
            json.loads(row)
        world.await_empty()
    check(not os.path.exists(run), "the run was not where it is full")


def s_may_mount():
    """Not where the program itself is in /tmp, over which something is mounted."""
    may = (os.geteuid() == 0 and shutil.which("unshare") and not TUTTI.startswith("/tmp/") and
           subprocess.run(["unshare", "-m", "true"], capture_output=True, check=False).returncode == 0)
    if not may:
        print("        needs root and a mount namespace: left out", flush=True)
    return may


def test_a_disk_that_became_read_only(world):
    """As a kernel leaves it after an error: the run could not write how it ended."""
    if not s_may_mount():
        return
    script = ('mkdir m && mount -t tmpfs tmpfs m && "$0" run "$1" --quiet --run-dir m/run --set stop.env_steps=512 && '
              'rm m/run/summary.json m/run/result.json && mount -o remount,ro m && "$0" status m/run')
    done = subprocess.run(["unshare", "-m", "sh", "-c", script, TUTTI, world.config()], env=world.env, cwd=world.path, capture_output=True,
                          text=True, timeout=DEADLINE, stdin=subprocess.DEVNULL, check=False)
    equal(done.returncode, 0, f"exit code; {done.stdout} {done.stderr}")
    check("or its file system, which is read-only now, kept it from saying how" in done.stdout, done.stdout)


def test_a_disk_that_became_full(world):
    """Full to its last block since the run was killed, or because of that: it may be why the run could not say how it ended."""
    if not s_may_mount():
        return
    script = ('mkdir m && mount -t tmpfs -o size=8m tmpfs m && "$0" run "$1" --quiet --run-dir m/run --set stop.env_steps=512 && '
              'rm m/run/summary.json m/run/result.json && "$0" status m/run && { cat /dev/zero >m/other 2>err || "$0" status m/run; }')
    done = subprocess.run(["unshare", "-m", "sh", "-c", script, TUTTI, world.config()], env=world.env, cwd=world.path, capture_output=True,
                          text=True, timeout=DEADLINE, stdin=subprocess.DEVNULL, check=False)
    equal(done.returncode, 0, f"exit code; {done.stdout} {done.stderr}")
    equal(done.stdout.count("killed before it could end by itself"), 2, f"status; {done.stdout}")
    equal(done.stdout.count(", or its disk, which is full now, left it no room to say how: make some"), 1, f"status; {done.stdout}")


def test_no_place_for_a_run(world):
    """Where nothing may be written, what would help is named: another directory, or a shorter path."""
    if not s_may_mount():
        return
    world.config()
    os.mkdir(os.path.join(world.path, "x" * 100))
    ro = 'mount --bind "$0" /mnt && cd /mnt && mount -t tmpfs -o ro tmpfs /tmp && '
    for script, words in ((ro + f'XDG_STATE_HOME=/mnt/state "$1" run job.yaml --run-dir {"x" * 100}/run', ("is too long for sockets", "a shorter path")),
                          (ro + 'mount -t tmpfs -o ro tmpfs /srv && cd /srv && "$1" run /mnt/job.yaml', ("cannot make", "runs", "--run-dir"))):
        done = subprocess.run(["unshare", "-m", "sh", "-c", script, world.path, TUTTI], env=world.env, cwd=world.path, capture_output=True,
                              text=True, timeout=DEADLINE, stdin=subprocess.DEVNULL, check=False)
        equal(done.returncode, 77, f"exit code; {done.stdout} {done.stderr}")
        last = done.stderr.strip().splitlines()[-1]
        for word in words:
            check(word in last, f"the message does not say {word!r}: {done.stderr}")


def test_no_proc(world):
    """As in a chroot: it is /proc that is missing, not a bundled config, nor 'tutti', which could not be started.

    LeakSanitizer reads its own options there, and ends a process that has no /proc with a code of its own.
    """
    if not s_may_mount():
        return
    for args in (("run", world.config()), ("run", "cartpole-ppo"), ("check", "cartpole-ppo"), ("ps",)):
        done = subprocess.run(["unshare", "-m", "sh", "-c", 'mount -t tmpfs tmpfs /proc && exec "$0" "$@"', TUTTI, *args], env=world.env,
                              cwd=world.path, capture_output=True, text=True, timeout=DEADLINE, stdin=subprocess.DEVNULL, check=False)
        equal(done.returncode, 1 if SANITIZED else 71, f"{args}: exit code; {done.stdout} {done.stderr}")
        check("there is no /proc here" in done.stderr and "mount -t proc" in done.stderr, f"{args}: {done.stderr}")
    check(not os.path.exists(os.path.join(world.path, "runs")), "a run's directory")


def test_a_umask_that_shuts_out_its_owner(world):
    """Refused before anything is made, whatever it is that would be; so is going on with a run."""
    config = world.config()
    user = f"user.{pwd.getpwuid(os.geteuid()).pw_name}"
    os.mkdir(os.path.join(world.path, "in"))
    world.file("in/one", "")
    equal(world.tutti("dataset", "add", "-d", f"{user}.in", "-p", "in").returncode, 0, "dataset add")
    run_dir = world.train(config, "stop.env_steps=1024")["run_dir"]
    before = sorted(os.listdir(world.path))
    for args in (("run", config), ("run", config, "--run-dir", "new"), ("run", config, "--run-dir", "deep/er/new"),
                 ("resume", run_dir, "--set", "stop.env_steps=2048"), ("master",),
                 ("task", "create", "-c", f"{user}.in", "-o", "out", "-t", f"{user}.t", "--exec", "cat %IN > %OUT", "--bypass")):
        done = subprocess.run(["sh", "-c", 'umask 777; exec "$0" "$@"', TUTTI, *args], env=world.env, cwd=world.path, capture_output=True,
                              text=True, timeout=DEADLINE, stdin=subprocess.DEVNULL, check=False)
        equal(done.returncode, 77, f"{args}: exit code; {done.stdout} {done.stderr}")
        check("umask 0777" in done.stderr and "umask 022" in done.stderr, f"{args}: {done.stderr}")
        equal(sorted(os.listdir(world.path)), before, f"{args}: files after the refusal")
    world.resume(run_dir, "stop.env_steps=2048")


def test_no_home(world):
    """Tasks have no place then (78, as of every variable that is wrong), names of runs have /tmp; a path that is not absolute is none."""
    world.train(world.config(), "stop.env_steps=1024")
    for state in ("", "here"):
        for command in (("task", "list"), ("dataset", "list"), ("task", "run")):
            done = world.tutti(*command, env={"HOME": "", "XDG_STATE_HOME": state})
            equal(done.returncode, CONFIG, f"{command}: exit code; {done.stderr}")
            check("set HOME or XDG_STATE_HOME" in done.stderr, f"{command}: {done.stderr}")
        equal(world.tutti("ps", env={"HOME": "", "XDG_STATE_HOME": state}).returncode, 0, "ps")
    for name in ("HOME", "XDG_STATE_HOME"):
        for command in (("task", "list"), ("dataset", "list"), ("ps",), ("run", world.config(), "--run-dir", "long")):
            done = world.tutti(*command, env={"XDG_STATE_HOME": "", name: "/" + "x" * 5000})
            equal(done.returncode, CONFIG, f"{command}: exit code; {done.stderr}")
            check(f": {name} is too long" in done.stderr, f"{command}: {done.stderr}")
    check(not os.path.exists(os.path.join(world.path, "long")), "a run's directory")


def test_a_log_that_cannot_be_written(world):
    """The role that it is of stands in each line once, whatever it is that stands in its place."""
    run_dir = world.train(world.config(), "stop.env_steps=1024")["run_dir"]
    log = os.path.join(run_dir, "logs", "learner-0.log")
    os.remove(log)
    os.mkdir(log)
    done = world.tutti("resume", run_dir, "--set", "stop.env_steps=2048")
    equal(done.returncode, 71, f"exit code; stderr: {done.stderr}")
    lines = [line for line in (done.stdout + done.stderr).splitlines() if "Is a directory" in line]
    check(any("starting it again" in line for line in lines) and any("given up" in line for line in lines), f"{lines}")
    for line in lines:
        equal(line.count("learner/0"), 1, f"names of the role in {line!r}")
    equal(len(lines), len({line.partition(" ")[2] for line in lines}) + 4, f"five times begun again, and one end: {lines}")


def test_limit_on_file_sizes(world):
    """`ulimit -f`: the write fails with words, no signal kills a process, and no line is torn or there twice."""
    run_dir = os.path.join(world.path, "run")

    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (100000, 100000))
    done = subprocess.run([TUTTI, "run", world.config(), "--run-dir", run_dir, "--set", "stop.env_steps=1000M"], env=world.env,
                          cwd=world.path, capture_output=True, text=True, timeout=DEADLINE, stdin=subprocess.DEVNULL,
                          preexec_fn=limit, check=False)
    said = done.stderr + done.stdout
    equal(done.returncode, IO, f"exit code; {said}")
    check("File too large" in said or "disk is full" in said, f"message: {said}")
    check("SIGXFSZ" not in said, f"killed: {said}")
    with open(f"{run_dir}/metrics.jsonl", encoding="utf-8") as file:
        updates = [json.loads(line)["updates"] for line in file]
    equal(updates, sorted(set(updates)), "updates in metrics.jsonl")
    check(updates, "no line was written")
    world.await_empty()


def test_limit_on_stacks(world):
    """`ulimit -s`: a soft limit is raised, for the main thread and for others; of a hard one that is too small it is said at once."""
    bits = {}
    for kib in (64, 8192):
        process, run_dir = world.start_run(world.config(), "stop.env_steps=4096", name=f"soft-{kib}",
                                           by=("sh", "-c", f'ulimit -Ss {kib} && exec "$@"', "sh"))
        bits[kib] = world.summary(process)["weights_sha256"]
    equal(bits[64], bits[8192], "weights")
    for args in (("run", world.config()), ("version",)):
        process = world.start(*args, by=("sh", "-c", 'ulimit -s 256 && exec "$@"', "sh"))
        code, _, err = world.finish(process)
        equal((code, err), (71, "tutti: only 256 KiB of stack are allowed, and a thread needs 512: raise the hard limit (ulimit -Hs)\n"), args)


def test_damaged_checkpoints(world):
    summary = world.train(world.config(), "stop.env_steps=1024")
    folder = os.path.join(summary["run_dir"], "checkpoints")
    good = os.path.join(folder, "final.safetensors")
    equal(world.tutti("eval", good, "--episodes", "3", "--output", "json").returncode, 0, "eval of the good one")
    with open(good, "rb") as file:
        data = file.read()
    cut, foreign = os.path.join(world.path, "cut.safetensors"), os.path.join(world.path, "foreign.safetensors")
    with open(cut, "wb") as file:
        file.write(data[:len(data) // 2])
    with open(foreign, "wb") as file:
        file.write(b"PK\x03\x04 this is something else altogether" * 10)
    s_refused(world, DATA, ["cut.safetensors"], "eval", cut)
    s_refused(world, DATA, ["foreign.safetensors"], "eval", foreign)
    s_refused(world, NO_INPUT, ["none.safetensors"], "eval", "none.safetensors")


def test_a_policy_of_other_spaces(world):
    """What was trained on one environment plays no other whose rows or actions are not the same, whatever its network would make of them."""
    good = os.path.join(world.train(world.config(), "stop.env_steps=1024")["run_dir"], "checkpoints", "final.safetensors")
    for env, words in (("Acrobot-v1", "the observation of Acrobot-v1 here is float32[6], the checkpoint's is float32[4]"),
                       ("MinAtar/Breakout-v1", "the observation of MinAtar/Breakout-v1 here is"),
                       ("Pendulum-v1", "the observation of Pendulum-v1 here is float32[3]")):
        s_refused(world, DATA, [words, "its policy can play an environment of those spaces alone"], "eval", good, "--env", env)


def test_what_is_left_of_a_run(world):
    """A summary that is gone or somebody else's, a run that was copied: what status says of it is of this folder."""
    run_dir = world.train(world.config(), "stop.env_steps=1024")["run_dir"]
    copied = run_dir + "-copied"
    shutil.copytree(run_dir, copied)
    for folder, summary in ((copied, None), (run_dir, ""), (run_dir, "{}")):
        path = os.path.join(folder, "summary.json")
        if summary == "":
            os.unlink(path)
        elif summary:
            with open(path, "w", encoding="utf-8") as file:
                file.write(summary)
        text = world.tutti("status", folder).stdout
        check("succeeded: env_steps" in text and "(null)" not in text, f"status of {folder}, {summary!r}: {text}")
        equal(os.path.realpath(text.strip().splitlines()[-1].strip()), os.path.realpath(folder), "the folder that status names")
        said = json.loads(world.tutti("status", folder, "--output", "json").stdout)
        equal(os.path.realpath(said["run_dir"]), os.path.realpath(folder), "the folder in JSON")


def test_numbers_of_a_run_that_failed(world):
    """The coordinator's own word of a failure has them, and so has the summary."""
    done = world.train(world.config(), "stop.env_steps=1000000", "algorithm.learning_rate=1", "algorithm.optimizer=sgd", "algorithm.max_grad_norm=0",
                       "algorithm.value_coef=100", code=DIVERGED)
    check(done["status"] == "failed" and "diverged" in done["reason"], done)
    check(done["updates"] is not None and done["env_steps"] is not None, f"numbers: {done}")


def test_nothing_would_be_trained(world):
    done = world.tutti("run", world.config(), "--quiet", "--set", "stop.env_steps=1", "--run-dir", os.path.join(world.path, "one"))
    equal(done.returncode, 0, done.stderr)
    check("nothing will be trained: stop.env_steps is 1, and the first batch has" in done.stderr, done.stderr)
    s_refused(world, CONFIG, ["stop.env_steps: '0' is outside 1 .. 1e+18"], "check", world.config(), "--set", "stop.env_steps=0")


def test_resume_from_a_damaged_checkpoint(world):
    """The newest is damaged: the run says so, and does not go on from rubbish."""
    process, run_dir = world.start_run(world.config(), "stop.env_steps=100M")
    world.await_steps(run_dir, 1, process)
    world.tutti("stop", run_dir)
    world.finish(process)
    folder = os.path.join(run_dir, "checkpoints")
    for name in os.listdir(folder):
        path = os.path.join(folder, name)
        with open(path, "r+b") as file:
            file.truncate(os.path.getsize(path) // 2)
    done = world.tutti("resume", run_dir, "--output", "json")
    equal(done.returncode, DATA, f"exit code; {done.stderr}")
    check(".safetensors" in done.stderr, f"message: {done.stderr}")
    world.await_empty()


def test_a_misbehaving_env(world):
    """A plug-in that is not an env of ours is refused with its name."""
    path = world.file("not_an_env.so", "this is not a shared object")
    s_refused_config(world, JOB.replace("CartPole-v1", path), "not_an_env.so")


PLUGINS = os.path.join(os.environ["TT_BUILD_DIR"], "tests", "collector", "plugins")


def s_dqn(replay, **options):
    words = ", ".join(f"{key}: {value}" for key, value in {"name": "dqn", **options}.items())
    return f"env: CartPole-v1\nnum_envs: 8\nnum_steps: 32\nalgorithm: {{{words}}}\nreplay: {{{replay}}}\nstop: {{env_steps: 2k}}\n"


def test_no_head_for_the_actions(world):
    s_refused_config(world, s_dqn("capacity: 1000").replace("CartPole-v1", "Pendulum-v1"), "job.yaml:4:", "algorithm.name",
                     "dqn has no head for the actions of Pendulum-v1", "discrete(n)")


def test_a_replay_below_a_batch(world):
    s_refused_config(world, s_dqn("capacity: 10"), "job.yaml:5:", "replay.capacity", "less than one batch, which has 256")


def test_learning_would_start_beyond_the_end(world):
    s_refused_config(world, s_dqn("capacity: 1000", learning_starts=5000), "job.yaml:4:", "algorithm.learning_starts", "stop.env_steps is 2000")


def s_resume_refused(world, run_dir, *words):
    """Nothing of the run is changed by it."""
    def files():
        return {os.path.join(folder, name): os.stat(os.path.join(folder, name)).st_mtime_ns
                for folder, _, names in os.walk(run_dir) for name in names}
    before = files()
    done = world.tutti("resume", run_dir, "--set", "stop.env_steps=1M", "--output", "json")
    equal(done.returncode, CONFIG, f"exit code; {done.stderr}")
    equal(len(in_time(done.stderr).splitlines()), 1, f"messages: {done.stderr}")
    for word in words:
        check(word in done.stderr, f"the message does not say {word!r}: {done.stderr}")
    equal(files(), before, "files of the run")
    world.await_empty()


def test_checkpoints_of_another_run(world):
    """Of another algorithm, and of another network."""
    run_dir = world.train(world.config(), "stop.env_steps=1024")["run_dir"]
    folder = os.path.join(run_dir, "checkpoints")
    other = {"dqn": world.train(world.config(s_dqn("capacity: 1000"), name="dqn.yaml"))["run_dir"],
             "wide": world.train(world.config(), "stop.env_steps=1024", "network.hidden=[7]")["run_dir"]}
    for name, words in (("dqn", ("algorithm.name", "has dqn, now it is ppo")), ("wide", ("network.hidden", "[7]"))):
        shutil.rmtree(folder)
        os.makedirs(folder)
        shutil.copy(os.path.join(other[name], "checkpoints", "final.safetensors"), folder)
        s_resume_refused(world, run_dir, *words)


def test_an_env_that_became_another_one(world):
    """Between two lives of a run its shared object was built anew, with other spaces."""
    here = os.path.join(world.path, "env.so")
    shutil.copy(os.path.join(PLUGINS, "catch.so"), here)
    run_dir = world.train(world.config(JOB.replace("CartPole-v1", here)), "stop.env_steps=1024")["run_dir"]
    os.remove(here)
    shutil.copy(os.path.join(PLUGINS, "catch_parts.so"), here)
    s_resume_refused(world, run_dir, "space.obs", "bool[10, 10, 2]", "paddle")


main(test_missing_config, test_key_typo, test_out_of_range, test_wrong_type, test_not_yaml, test_unknown_env,
     test_unknown_algorithm, test_more_learners_than_shards, test_more_collectors_than_envs,
     test_shards_that_do_not_fit, test_wrong_option, test_bad_assignment, test_run_directory_in_use, test_port_in_use,
     test_no_library_for_http, test_unknown_run, test_full_disk, test_a_disk_that_became_read_only, test_a_disk_that_became_full, test_no_place_for_a_run, test_no_proc, test_a_umask_that_shuts_out_its_owner, test_no_home, test_a_log_that_cannot_be_written, test_limit_on_file_sizes, test_limit_on_stacks, test_damaged_checkpoints,
     test_a_policy_of_other_spaces, test_what_is_left_of_a_run, test_numbers_of_a_run_that_failed, test_nothing_would_be_trained,
     test_resume_from_a_damaged_checkpoint, test_orders_that_are_none,
     test_a_misbehaving_env, test_no_head_for_the_actions, test_a_replay_below_a_batch, test_learning_would_start_beyond_the_end,
     test_checkpoints_of_another_run, test_an_env_that_became_another_one)
