#!/usr/bin/env python3
"""wandb_run.py RUN_DIR [--project NAME] [--name NAME] [--id ID] - a run of Tutti's in Weights & Biases, while it trains or when it has ended.

It reads what every run writes: config.yaml, metrics.jsonl, and summary.json at the end; the run knows nothing of it and does not wait for it. W&B's step
is the number of env steps. With the --id of an earlier time that one is gone on with, after `tutti resume` say: steps that it has already are left out."""

import argparse
import fcntl
import json
import os
import sys
import time

import wandb
import yaml

LOOK_S = 1.0


def is_live(run_dir):
    """Who runs it holds its lock; a directory without one is nobody's any more, a copy say."""
    try:
        with open(os.path.join(run_dir, "lock"), "rb") as lock:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except FileNotFoundError:
        return False
    except PermissionError:  # another user's: its sockets are there while it is run
        return os.path.lexists(os.path.join(run_dir, "sock"))
    return False


def rows(run_dir):
    """The lines of metrics.jsonl, also those that are still to come. A line that has no end yet is read when it has."""
    path = os.path.join(run_dir, "metrics.jsonl")
    read = 0
    while True:
        live = is_live(run_dir)  # asked first: what comes last is read
        if os.path.exists(path):
            with open(path, "rb") as file:
                file.seek(read)
                for line in file:
                    if line.endswith(b"\n"):
                        read += len(line)
                        yield json.loads(line)
        if not live:
            return
        time.sleep(LOOK_S)


def track(run_dir, run):
    """Every number once. After a run has gone back to a snapshot W&B keeps what it had of the steps that come again."""
    reached = run.step
    for row in rows(run_dir):
        if row["env_steps"] > reached:
            reached = row["env_steps"]
            run.log({name: value for name, value in row.items() if value is not None and name != "env_steps"}, step=reached)
    path = os.path.join(run_dir, "summary.json")
    if os.path.exists(path):
        with open(path, encoding="utf-8") as file:
            run.summary.update({name: value for name, value in json.load(file).items() if value is not None})


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run_dir")
    parser.add_argument("--project", default="tutti")
    parser.add_argument("--name", help="of the run there (default: its directory's)")
    parser.add_argument("--id", help="of a run there that is to go on (default: a new one)")
    args = parser.parse_args()
    if not os.path.exists(os.path.join(args.run_dir, "config.yaml")):
        sys.exit(f"{args.run_dir}: there is no run of Tutti's (config.yaml)")
    with open(os.path.join(args.run_dir, "config.yaml"), encoding="utf-8") as file:
        config = yaml.safe_load(file)
    name = args.name or os.path.basename(os.path.abspath(args.run_dir))
    with wandb.init(project=args.project, name=name, id=args.id, resume="allow", config=config) as run:
        track(args.run_dir, run)


if __name__ == "__main__":
    main()
