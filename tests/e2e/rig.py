"""rig - what the end-to-end tests share: a temporary world, runs in it, the processes they make, and deadlines.

Only the standard library. A test is a list of functions given to main(); each gets a fresh World.
"""

import contextlib
import json
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback

TUTTI = os.environ["TUTTI"]
SOURCE = os.environ["TT_SOURCE_DIR"]
sys.path.append(os.path.join(SOURCE, "tests"))
import transcript  # noqa: E402

# A sanitized build is 10 to 30 times slower: its runs are shorter, its deadlines longer.
SANITIZED = bool(os.environ.get("TT_SANITIZE"))
SLOW = 10 if SANITIZED else 1
DEADLINE = 120.0 * (3 if SANITIZED else 1)


def gym_python():
    """An interpreter that has Gymnasium with all that the bundled configs play; None: tools/test-venv has not run."""
    venv = os.path.join(SOURCE, "build", "venv-gym")
    return os.path.join(venv, "bin", "python3") if os.path.exists(os.path.join(venv, ".complete")) else None


def bundled():
    """Environment of each bundled config, by name."""
    folder, found = os.path.join(SOURCE, "configs"), {}
    for name in sorted(os.listdir(folder)):
        if name.endswith(".yaml"):
            with open(os.path.join(folder, name), encoding="utf-8") as file:
                found[name[:-5]] = re.search(r"(?m)^env:(?:\n  id:)? (\S+)", file.read()).group(1)
    return found


def steps(count):
    """Env steps of a run that lasts about as long in every build."""
    return count // SLOW



# A job of a second or so: small enough for a slow machine, long enough to be disturbed.
JOB = """
name: job
env: CartPole-v1
num_envs: 8
num_steps: 32
lag: 1
algorithm:
  name: ppo
  learning_rate: 1e-3
  epochs: 2
  minibatch_size: 64
learner:
  shards: 4
stop:
  env_steps: 20480
"""
BATCH = 8 * 32  # env steps
# For a run that is to be disturbed: however late the test looks, it has not ended yet. World.stop ends it.
ENDLESS = "stop.env_steps=1000M"
# For a run in which nobody is killed: a machine that stands still for a while takes nobody out of the roster. Not for others: half a lease
# is also after how long a learner is sent again what it lacks. Who comes or goes because it is scaled waits for none: scale.py.
PATIENT = "net.lease_ms=60000"


class Failed(Exception):
    pass


def check(condition, text):
    if not condition:
        raise Failed(text)


def equal(got, wanted, text):
    check(got == wanted, f"{text}: got {got!r}, wanted {wanted!r}")


def in_time(stderr):
    """What would have been said had nobody been late."""
    return re.sub(transcript.LATE, "", stderr, flags=re.M)


def supported(instructions):
    """Has this processor them, by their name in /proc/cpuinfo?"""
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        return instructions in file.read()


def wait_for(condition, text, deadline=DEADLINE):
    """Until condition() is true; its value. The only place that sleeps, and only to look again: a look that was long (each `tutti status`
    is a process) is rested from twice as long, up to a tenth of a second, for what is waited for needs the core.

    text: what is waited for; a function of none is asked when it did not come, for what is there instead."""
    end = time.monotonic() + deadline
    while True:
        begun = time.monotonic()
        value = condition()
        if value:
            return value
        if time.monotonic() > end:
            raise Failed(f"waited {deadline:g} s for {text() if callable(text) else text}")
        time.sleep(min(max(0.005, 2 * (time.monotonic() - begun)), 0.1))


def _proc(pid, name):
    """What /proc says of a process; nothing when it is gone, or that part of it."""
    try:
        with open(f"/proc/{pid}/{name}", "rb") as file:
            return file.read()
    except OSError:
        return b""


def stands_still(pid):
    """All threads of a stopped process: its first one may stand still while another still writes."""
    folder, states = f"/proc/{pid}/task", []
    for thread in os.listdir(folder):
        with contextlib.suppress(FileNotFoundError), open(f"{folder}/{thread}/stat", encoding="utf-8") as file:
            states.append(file.read().rpartition(")")[2].split()[0])
    return set(states) == {"T"}


class World:
    """A folder with its own registry of runs. Everything started here is marked and must be gone at the end."""

    def __init__(self):
        self.path = tempfile.mkdtemp(prefix="tt-e2e-")
        self.mark = os.path.basename(self.path)
        self.env = dict(os.environ, XDG_STATE_HOME=os.path.join(self.path, "state"), TT_E2E=self.mark)
        self.env.setdefault("XDG_CACHE_HOME", os.path.join(os.environ.get("TT_BUILD_DIR", self.path), "cache"))
        self.started = []
        self.known = set()
        self.count = 0

    def file(self, name, text):
        path = os.path.join(self.path, name)
        with open(path, "w", encoding="utf-8") as out:
            out.write(text)
        return path

    def tutti(self, *args, deadline=DEADLINE, env=None, cwd=None):
        """Run to the end; CompletedProcess with text."""
        return subprocess.run([TUTTI, *map(str, args)], cwd=cwd or self.path, env=dict(self.env, **(env or {})),
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=deadline, check=False)

    def start(self, *args, env=None, by=()):
        """Start and go on; Popen with pipes to files, so that nothing blocks. by: a command that executes ours."""
        self.count += 1
        out = open(os.path.join(self.path, f"out.{self.count}"), "w+", encoding="utf-8")
        err = open(os.path.join(self.path, f"err.{self.count}"), "w+", encoding="utf-8")
        process = subprocess.Popen([*by, TUTTI, *map(str, args)], cwd=self.path, env=dict(self.env, **(env or {})),
                                   stdin=subprocess.DEVNULL, stdout=out, stderr=err, text=True)
        process.out, process.err = out, err
        self.started.append(process)
        return process

    def finish(self, process, deadline=DEADLINE):
        """Wait for the end of a started process: (code, stdout, stderr)."""
        try:
            code = process.wait(timeout=deadline)
        except subprocess.TimeoutExpired as late:
            process.err.seek(0)
            raise Failed(f"no end within {deadline:g} s; stderr: {process.err.read()[-2000:]}") from late
        process.out.seek(0)
        process.err.seek(0)
        return code, process.out.read(), process.err.read()

    def config(self, text=JOB, name="job.yaml"):
        return self.file(name, text)

    def train(self, config, *sets, seed=None, code=0, deadline=DEADLINE, env=None):
        """A whole run; its summary."""
        self.count += 1
        args = ["run", config, "--output", "json", "--run-dir", os.path.join(self.path, f"run-{self.count}")]
        for item in sets:
            args += ["--set", item]
        if seed is not None:
            args += ["--seed", str(seed)]
        done = self.tutti(*args, deadline=deadline, env=env)
        check(done.returncode == code, f"{' '.join(args)}: exit {done.returncode}, stderr: {done.stderr[-3000:]}")
        return json.loads(done.stdout)

    def train_together(self, config, *sets, **more):
        """A whole run in which all that were asked for took part. It begins without who is late, and may be over before they
        come: once more then."""
        end = time.monotonic() + DEADLINE
        while True:
            summary = self.train(config, *sets, **more)
            if all_took_part(summary["run_dir"]):
                return summary
            check(time.monotonic() < end, f"somebody was late for each run: {rosters(summary['run_dir'])}")

    def start_run(self, config, *sets, name="run", seed=None, options=(), by=(), env=None):
        """A run left going, its directory known; returns (process, run_dir)."""
        run_dir = os.path.join(self.path, name)
        args = ["run", config, "--output", "json", "--run-dir", run_dir, *options]
        for item in sets:
            args += ["--set", item]
        if seed is not None:
            args += ["--seed", str(seed)]
        return self.start(*args, by=by, env=env), run_dir

    def summary(self, process, code=0, deadline=DEADLINE):
        got, out, err = self.finish(process, deadline)
        check(got == code, f"exit {got}, wanted {code}; stderr: {err[-3000:]}")
        return json.loads(out)

    def stop(self, process, run_dir):
        """End a run that has no end; its summary."""
        done = self.tutti("stop", run_dir)
        equal(done.returncode, 0, f"tutti stop: {done.stderr}")
        return self.summary(process, code=143)

    def check_same(self, summary, config, *sets, seed, what):
        """A stopped run of rig.JOB's batches against runs of one process a role, left alone. One that ends by its rule has the
        weights of as many updates, and one batch more counted; so its counters are those of one that ends a batch earlier."""
        updates = summary["updates"]
        sets = [item for item in sets if ".replicas=" not in item]  # several of a role take five times as much of the cores
        for keys, batches in ((("weights_sha256", "updates"), updates + 1),
                              (("env_steps", "episodes", "return_mean"), updates)):
            still = self.train(config, *sets, f"stop.env_steps={batches * BATCH}", seed=seed)
            for key in keys:
                equal(summary[key], still[key], f"{key} {what}, {updates} updates")

    def check_same_bits(self, config, *sets):
        """The same for any number of collectors, learners and threads, and on a device that computes as late as it may. The summary."""
        alone = self.train(config, *sets, seed=3)
        for collectors, learners, threads in ((2, 2, 1), (3, 4, 1), (1, 1, 2)):
            many = self.train(config, *sets, f"collector.replicas={collectors}", f"learner.replicas={learners}",
                              f"learner.threads={threads}", seed=3)
            for key in ("weights_sha256", "episodes", "return_mean"):
                equal(many[key], alone[key], f"{key} with {collectors} collectors, {learners} learners, {threads} threads")
            equal([many["transitions"][key] for key in ("duplicated", "lost")], [0, 0], "duplicated, lost")
        strict = self.train(config, *sets, seed=3, env={"TT_DEVICE": "cpu-strict"})
        equal(strict["weights_sha256"], alone["weights_sha256"], "weights on cpu-strict")
        return alone

    def check_disturbed(self, config, name="run", env=None):
        """Two collectors and two learners, one of each killed, then more of both, then asked to end: as if nothing had been."""
        process, run_dir = self.start_run(config, "collector.replicas=2", "learner.replicas=2", ENDLESS, name=name, seed=5, env=env)
        status = self.await_steps(run_dir, steps(1000), process)
        for role, index in (("learner", 0), ("collector", 1)):
            pid = self.replica(role, index)
            os.kill(pid, signal.SIGKILL)
            wait_for(lambda: self.replica(role, index) != pid, f"another process of {role}/{index}")
            status = self.await_steps(run_dir, status["env_steps"] + steps(2000), process)
        equal(self.tutti("scale", run_dir, "collector=3", "learner=4").returncode, 0, "scale")
        self.await_steps(run_dir, status["env_steps"] + steps(2000), process)
        self.check_same(self.stop(process, run_dir), config, seed=5, what="after kills and scaling")

    def resume(self, run_dir, *sets, code=0, deadline=DEADLINE, env=None):
        """Go on to the end; the summary."""
        args = ["resume", run_dir, "--output", "json"]
        for item in sets:
            args += ["--set", item]
        done = self.tutti(*args, deadline=deadline, env=env)
        check(done.returncode == code, f"{' '.join(args)}: exit {done.returncode}, stderr: {done.stderr[-3000:]}")
        return json.loads(done.stdout)

    def status(self, run_dir):
        """`tutti status`, None when the run does not answer."""
        done = self.tutti("status", run_dir, "--output", "json")
        return json.loads(done.stdout) if done.returncode == 0 else None

    def look(self, run_dir, process=None):
        """What the coordinator of a run says of it, however long it takes to begin or to answer."""
        def answer():
            check(process is None or process.poll() is None, "the run ended")
            status = self.status(run_dir)
            return status if status and "members" in status else None
        return wait_for(answer, f"an answer of {run_dir}")

    def await_ready(self, run_dir, collectors=2, learners=2):
        """So many collectors and learners are in the roster, or in it again: from then on the run can end with its weights."""
        def look():
            counts = (self.status(run_dir) or {}).get("replicas", {})
            return counts and (counts["collector"]["ready"], counts["learner"]["ready"]) == (collectors, learners)
        wait_for(look, f"{collectors} collectors and {learners} learners in the roster")

    def await_steps(self, run_dir, wanted, process=None):
        """Until the run has trained on so many steps."""
        def look():
            check(process is None or process.poll() is None, f"the run ended before {wanted} steps")
            status = self.status(run_dir)
            return status if status and (status.get("env_steps") or 0) >= wanted else None
        return wait_for(look, f"{wanted} steps in {run_dir}")

    def await_snapshot(self, run_dir, process=None):
        """Until there is a snapshot that the run can go back to: a file counts once it is in the journal."""
        def look():
            check(process is None or process.poll() is None, "the run ended before it made a snapshot")
            return (self.status(run_dir) or {}).get("snapshot")
        return wait_for(look, f"a snapshot of {run_dir}")

    def _look(self, pid):
        """Command line of a process of this world, "" while it ends; None when it is none, or is no more. Memory, and with
        it the environment that has our mark, goes before the files, and with them the locks: known is known."""
        marked = f"TT_E2E={self.mark}".encode() in _proc(pid, "environ").split(b"\0")
        fields = _proc(pid, "stat").rpartition(b")")[2].split()
        if not fields or fields[0] in (b"Z", b"X") and int(fields[17]) <= 1:  # a zombie with threads has its files, too
            return None
        process = pid, fields[19]  # and when it began
        if marked:
            self.known.add(process)
        if process not in self.known:
            return None
        return _proc(pid, "cmdline").replace(b"\0", b" ").decode().strip()

    def processes(self):
        """{pid: command line} of everything alive that was started in this world."""
        found = {pid: self._look(pid) for pid in map(int, filter(str.isdigit, os.listdir("/proc")))}
        return {pid: line for pid, line in found.items() if line is not None}

    def replica(self, role, index, deadline=DEADLINE):
        """Process id of a replica, from its command line."""
        wanted = f"tutti {role} "
        tail = f"--index {index}"

        def look():
            for pid, line in self.processes().items():
                if line.startswith(wanted) and (role == "coordinator" or line.endswith(tail)):
                    return pid
            return None
        return wait_for(look, f"the process of {role}/{index}", deadline)

    def kill_all(self, process):
        """As a power cut: everything of the run stands still before anything dies, so that nobody ends well because another is gone."""
        for number in (signal.SIGSTOP, signal.SIGKILL):
            for pid in self.processes():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, number)
        process.wait()
        self.await_empty()

    def await_empty(self, deadline=DEADLINE / 2):
        wait_for(lambda: not self.processes(), lambda: f"no process left: {self.processes()}", deadline)

    def logs(self):
        """The beginnings and ends of all logs and of what started programs said, for messages."""
        text = []
        for folder, _, files in os.walk(self.path):
            for name in sorted(files):
                if name.endswith(".log") or name.startswith(("out.", "err.")):
                    with open(os.path.join(folder, name), encoding="utf-8", errors="replace") as file:
                        said = file.read()
                    cut = said if len(said) < 3000 else f"{said[:1000]}\n[...]\n{said[-2000:]}"
                    text.append(f"\n--- {os.path.join(folder, name)}\n{cut}")
        return "".join(text)

    def close(self):
        for process in self.started:
            if process.poll() is None:
                process.send_signal(signal.SIGKILL)
                process.wait()
        try:
            self.await_empty()
        finally:
            for pid in self.processes():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            shutil.rmtree(self.path, ignore_errors=True)


def rosters(run_dir):
    """(collectors, learners) of each roster that there was, in all its lives."""
    with open(os.path.join(run_dir, "logs", "coordinator-0.log"), encoding="utf-8") as file:
        return [tuple(map(int, counts)) for counts in re.findall(r" roster \d+: .* (\d+) collectors, (\d+) learners", file.read())]


def silent(run_dir):
    """Lines of who was away for a lease: besides whom a test has stopped it may be anyone that the machine has held up."""
    with open(os.path.join(run_dir, "logs", "coordinator-0.log"), encoding="utf-8") as file:
        return [line for line in file if "not a word for" in line]


def all_took_part(run_dir, before=0):
    """As many as its config asks for, from the first roster of a life to its end? before: rosters of the lives before it."""
    with open(os.path.join(run_dir, "config.yaml"), encoding="utf-8") as file:
        asked = dict(re.findall(r"(?m)^(collector|learner):\n(?:  .*\n)*?  replicas: (\d+)$", file.read()))
    return set(rosters(run_dir)[before:]) == {(int(asked["collector"]), int(asked["learner"]))}


def newest_update(run_dir):
    """Of the snapshots in checkpoints/, whose files are named after it; 0: there is none."""
    folder = os.path.join(run_dir, "checkpoints")
    names = [name.partition(".") for name in (os.listdir(folder) if os.path.isdir(folder) else ())]
    return max((int(stem) for stem, _, kind in names if stem.isdigit() and kind == "safetensors"), default=0)


def s_core_s():
    """Seconds of a core that this process has taken, with all that it started and waited for."""
    used = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    return sum(part.ru_utime + part.ru_stime for part in used)


def main(*tests):
    """Run each test in a world of its own, or those named on the command line; exit code 1 when one failed."""
    wanted = sys.argv[1:]
    unknown = set(wanted) - {test.__name__ for test in tests}
    if unknown:
        sys.exit(f"{sys.argv[0]}: no test {', '.join(sorted(unknown))}")
    passed = failed = 0
    for test in tests:
        if wanted and test.__name__ not in wanted:
            continue
        world = World()
        begun, before = time.monotonic(), s_core_s()
        try:
            try:
                test(world)
            except Exception as error:
                error.logs = world.logs()
                raise
            finally:
                world.close()
            passed += 1
            print(f"ok      {test.__name__} ({time.monotonic() - begun:.1f} s, {s_core_s() - before:.1f} of a core)", flush=True)
        except Exception as error:  # every failure counts, and the others still run
            failed += 1
            text = str(error) if isinstance(error, Failed) else traceback.format_exc()
            print(f"FAILED  {test.__name__}: {text}{getattr(error, 'logs', '')}", flush=True)
    print(f"{passed} passed, {failed} failed", flush=True)
    sys.exit(1 if failed else 0)
