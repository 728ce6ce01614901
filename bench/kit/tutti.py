"""The binary under measurement: runs it in a folder of its own, reads its JSON, leaves nothing behind."""
import json
import os
import shutil
import signal
import subprocess
import tempfile

from kit.machine import ROOT


class Broken(Exception):
    """A benchmark that could not be measured, and why."""


class Tutti:
    """`with Tutti() as tutti:` - the run directories and the registry of runs live and end with the block."""

    def __init__(self, binary=None, overrides=()):
        self.binary = os.path.abspath(binary or os.path.join(ROOT, "build/release/bin/tutti"))
        self.overrides = list(overrides)
        self.folder = None
        self.count = 0

    def __enter__(self):
        if not os.access(self.binary, os.X_OK):
            raise SystemExit("bench: %s is not there; ./dev build makes it" % self.binary)
        self.folder = tempfile.mkdtemp(prefix="tt-bench-")
        self.words = os.path.join(self.folder, "stderr")
        self.env = dict(os.environ, XDG_STATE_HOME=self.folder, TMPDIR=self.folder)
        return self

    def __exit__(self, *_):
        shutil.rmtree(self.folder, ignore_errors=True)

    def start(self, *args, under=()):
        """`under`: a command to run it with. A process group of its own, so that an interrupt here reaches tutti once, from finish()."""
        with open(self.words, "w") as words:
            return subprocess.Popen([*under, self.binary, *args], cwd=ROOT, env=self.env, stdout=subprocess.PIPE, stderr=words,
                                    text=True, start_new_session=True)

    def finish(self, process, timeout=3600):
        """The process's stdout; raises Broken with its last words unless it exits with 0."""
        try:
            out, _ = process.communicate(timeout=timeout)
        except BaseException:
            self.end(process)
            raise
        if process.returncode != 0:
            with open(self.words) as words:
                last = words.read().strip().splitlines()[-3:]
            raise Broken("%s: exit %d: %s" % (" ".join(process.args[1:]), process.returncode, " / ".join(last)))
        return out

    @staticmethod
    def end(process):
        """Asks, waits, and only then kills: `tutti run` takes its replicas with it either way."""
        for number in (signal.SIGTERM, signal.SIGKILL):
            if process.poll() is None:
                os.killpg(process.pid, number)
                try:
                    process.wait(10)
                except subprocess.TimeoutExpired:
                    pass

    def text(self, *args):
        return self.finish(self.start(*args))

    def json(self, *args):
        out = self.text(*args, "--output", "json")
        try:
            return json.loads(out)
        except ValueError:
            raise Broken("%s: not JSON: %.200s" % (" ".join(args), out)) from None

    def start_run(self, config, seed, *sets, under=()):
        """A training run; self.run_dir is its directory."""
        self.count += 1
        self.run_dir = os.path.join(self.folder, "r%d" % self.count)
        args = ["run", config, "--output", "json", "--seed", str(seed), "--run-dir", self.run_dir]
        for setting in (*sets, *self.overrides):
            args += ["--set", setting]
        return self.start(*args, under=under)

    def run(self, config, seed, *sets, greedy=0):
        """The JSON of a finished run, with "greedy" from so many episodes of its final checkpoint."""
        summary = json.loads(self.finish(self.start_run(config, seed, *sets)))
        if greedy:
            final = os.path.join(self.run_dir, "checkpoints", "final.safetensors")
            summary["greedy"] = self.json("eval", final, "--episodes", str(greedy))
        self.forget()
        summary["seed"] = seed
        summary.pop("run_dir", None)
        return summary

    def forget(self):
        shutil.rmtree(self.run_dir, ignore_errors=True)
