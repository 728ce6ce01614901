#!/usr/bin/env python3
"""What the page says of Weights & Biases, typed, with W&B itself (offline): all that a run says gets there, while it goes on and after a resume."""

import glob
import json
import math
import os
import re
import shlex
import shutil
import struct
import subprocess
import sys

sys.dont_write_bytecode = True
SOURCE = os.environ["TT_SOURCE_DIR"]
sys.path += [os.path.join(SOURCE, "tests"), os.path.join(SOURCE, "tests/e2e")]
import pythons  # noqa: E402

pythons.run_with("venv-wandb", "wandb", "yaml")
import transcript  # noqa: E402
import yaml  # noqa: E402
from rig import BATCH, DEADLINE, ENDLESS, check, equal, main, wait_for  # noqa: E402
from wandb.proto import wandb_internal_pb2 as protocol  # noqa: E402

BLOCK, HEAD, WHOLE, FIRST, LAST = 32768, 7, 1, 2, 4  # of LevelDB's log format, in which W&B writes


def s_command():
    """As the page has it, but for the interpreter."""
    (install, track), (upload,) = transcript.blocks("Weights & Biases", "formats.md")
    equal(install, "pip install wandb", "the first command")
    check(upload.startswith("wandb sync "), upload)
    words = shlex.split(track.partition("#")[0])
    equal(words[:2], ["python3", "docs/examples/track/wandb_run.py"], "the command")
    return [sys.executable, os.path.join(SOURCE, words[1])], words[3:]


def s_records(path):
    """W&B's records in a file of its own."""
    with open(path, "rb") as file:
        data = file.read()
    equal(data[:4], b":W&B", "the file's first bytes")
    whole, at = b"", HEAD
    while at + HEAD <= len(data):
        room = BLOCK - at % BLOCK
        if room < HEAD:
            at += room
            continue
        _, size, kind = struct.unpack("<IHB", data[at:at + HEAD])
        whole = (b"" if kind in (WHOLE, FIRST) else whole) + data[at + HEAD:at + HEAD + size]
        at += HEAD + size
        if kind in (WHOLE, LAST):
            record = protocol.Record()
            record.ParseFromString(whole)
            yield record


def s_items(items):
    """{name: value}; a name with a dot or a slash is of one part."""
    return {item.key or "/".join(item.nested_key): json.loads(item.value_json) for item in items}


class Tracked:
    """What W&B has of a run."""

    def __init__(self, folder):
        (path,) = glob.glob(os.path.join(folder, "wandb", "offline-run-*", "*.wandb"))
        self.rows, self.summary, self.config, self.name = {}, {}, {}, None
        for record in s_records(path):
            kind = record.WhichOneof("record_type")
            if kind == "run":
                self.name, self.project = record.run.display_name, record.run.project
                self.config = {name: value for name, value in s_items(record.run.config.update).items() if name != "_wandb"}
            elif kind == "history":
                row = s_items(record.history.item)
                self.rows[row.pop("_step")] = {name: value for name, value in row.items() if name[0] != "_"}
            elif kind == "summary":
                self.summary.update(s_items(record.summary.update))


def s_start(world, run_dir, folder):
    os.mkdir(folder)
    (python, *script), options = s_command()
    with open(os.path.join(folder, "said"), "w", encoding="utf-8") as said:
        return subprocess.Popen([python, *script, run_dir, *options], cwd=folder, stdout=said, stderr=subprocess.STDOUT,
                                env=dict(world.env, WANDB_MODE="offline", WANDB_SILENT="true"))


def s_await_end(process, folder):
    code = process.wait(DEADLINE)
    with open(os.path.join(folder, "said"), encoding="utf-8") as said:
        equal(code, 0, said.read())
    return Tracked(folder)


def s_check_all(tracked, run_dir):
    """Each line of metrics.jsonl at its env steps, the resolved config, and the summary."""
    with open(os.path.join(run_dir, "metrics.jsonl"), encoding="utf-8") as file:
        lines = [json.loads(line) for line in file]
    wanted = {line["env_steps"]: {name: value for name, value in line.items() if value is not None and name != "env_steps"} for line in lines}
    equal(sorted(tracked.rows), sorted(wanted), "env steps")
    for step, row in wanted.items():
        equal(tracked.rows[step], row, f"at {step}")
    with open(os.path.join(run_dir, "config.yaml"), encoding="utf-8") as file:
        equal(tracked.config, yaml.safe_load(file), "the config")
    with open(os.path.join(run_dir, "summary.json"), encoding="utf-8") as file:
        summary = json.load(file)
    for name in ("status", "weights_sha256", "env_steps"):
        equal(tracked.summary[name], summary[name], name)
    check(math.isclose(tracked.summary["return_mean"], summary["return_mean"], rel_tol=1e-8), tracked.summary)  # W&B has nine digits of it


def test_beside_a_run(world):
    """It ends when the run does, and has all that the run wrote; a look at it takes nothing from the run."""
    process, run_dir = world.start_run(world.config(), ENDLESS, seed=3)
    world.await_steps(run_dir, 1, process)
    folder = os.path.join(world.path, "tracked")
    track = s_start(world, run_dir, folder)
    written = lambda: [path for path in glob.glob(os.path.join(folder, "wandb/*/*.wandb")) if os.path.getsize(path) > 2 * BLOCK]
    wait_for(lambda: written() or track.poll() is not None, "some of it in W&B's file")
    check(track.poll() is None, "it ended before the run")
    world.stop(process, run_dir)
    tracked = s_await_end(track, folder)
    equal((tracked.name, tracked.project), (os.path.basename(run_dir), "cartpole"), "name and project")
    s_check_all(tracked, run_dir)


def test_a_run_that_has_ended(world):
    summary = world.train(world.config(), f"stop.env_steps={20 * BATCH}")
    folder = os.path.join(world.path, "tracked")
    s_check_all(s_await_end(s_start(world, summary["run_dir"], folder), folder), summary["run_dir"])


def test_a_copy(world):
    """Files alone, without the lock of who ran it."""
    summary = world.train(world.config(), f"stop.env_steps={4 * BATCH}")
    copy, folder = os.path.join(world.path, "copy"), os.path.join(world.path, "tracked")
    os.mkdir(copy)
    for name in ("config.yaml", "metrics.jsonl", "summary.json"):
        shutil.copy(os.path.join(summary["run_dir"], name), copy)
    s_check_all(s_await_end(s_start(world, copy, folder), folder), copy)


def test_no_run(world):
    folder = os.path.join(world.path, "tracked")
    process = s_start(world, world.path, folder)
    equal(process.wait(DEADLINE), 1, "exit code")
    with open(os.path.join(folder, "said"), encoding="utf-8") as said:
        text = said.read()
    check(re.fullmatch(rf"{re.escape(world.path)}: there is no run of Tutti's .*\n", text), text)


if __name__ == "__main__":
    main(test_beside_a_run, test_a_run_that_has_ended, test_a_copy, test_no_run)
