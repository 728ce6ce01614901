"""short - runs of a second or two, and the binary under a limit on the size of files: for the scripts of this folder."""

import os
import resource
import subprocess

TUTTI = os.environ["TUTTI"]


def tutti(*words, limit=None):
    """What it says and how it ends. limit: bytes of a file that it writes."""
    def lower():
        if limit is not None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
    return subprocess.run([TUTTI, *words], capture_output=True, text=True, timeout=100, preexec_fn=lower)


def cartpole(run_dir, *more):
    """A run that has ended, with its checkpoints. more: settings."""
    settings = [word for setting in ("stop.env_steps=3000", "stop.return_mean=null", *more) for word in ("--set", setting)]
    subprocess.run([TUTTI, "run", "CartPole-v1", "--run-dir", run_dir, "--quiet", *settings], check=True, stdout=subprocess.DEVNULL,
                   timeout=60)
