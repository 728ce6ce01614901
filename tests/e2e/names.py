#!/usr/bin/env python3
"""One name for one quantity: what a run says of itself, by all its mouths, is in the glossary, and where it says; every
setting is there too, and the words of others that the glossary has are answered with ours."""

import glob
import json
import os
import re
import subprocess
import sys
import urllib.request

sys.dont_write_bytecode = True
from rig import TUTTI, check, equal, main, wait_for

GUIDE = os.path.join(os.environ["TT_SOURCE_DIR"], "docs", "guide")
ROLES = {"collector", "learner", "aggregator"}


def s_page(name):
    with open(os.path.join(GUIDE, name), encoding="utf-8") as file:
        return file.read()


def s_words(text):
    return re.findall(r"`([^`\n]+)`", text)


def s_table(heading):
    """The cells of each row below a heading of the glossary."""
    part = s_page("glossary.md").split(f"\n## {heading}\n")[1].split("\n## ")[0]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in part.splitlines() if line.startswith("|")]
    check(len(rows) > 5 and len({len(row) for row in rows}) == 1, f"the table of {heading!r} cannot be read")
    return rows[2:]


def s_places():
    """{name: the letters of where it is met} of the first table."""
    found = {}
    for names, _, where, *_ in s_table("What a run counts and measures"):
        own = {s_words(part)[0]: set(re.findall(r"\b[SHPM]\b", part)) for part in where.split(",") if s_words(part)}
        common = set(re.findall(r"\b[SHPM]\b", where.split(",")[0])) if not s_words(where.split(",")[0]) else set()
        for name in s_words(names):
            check(name not in found, f"the glossary has {name} twice")
            found[name] = own.get(name, common)
            check(found[name], f"the glossary does not say where {name} is met")
    return found


def s_keys(value, found):
    """Every member of a JSON value, but for names of roles."""
    if isinstance(value, dict):
        found.update(set(value) - ROLES)
    for item in value.values() if isinstance(value, dict) else value if isinstance(value, list) else []:
        s_keys(item, found)
    return found


def s_short(name):
    """wait_batch of time/wait_batch_us and of time/learner/wait_batch: a stage is explained once."""
    return re.sub(r"^time/(?:\w+/)?(\w+?)(?:_us)?$", r"\1", name)


def s_ask(run_dir, path):
    served = os.path.join(run_dir, "http.json")
    wait_for(lambda: os.path.exists(served), "HTTP")
    with open(served, encoding="utf-8") as file:
        url = json.load(file)["url"]
    with open(os.path.join(run_dir, "token"), encoding="utf-8") as file:
        token = file.read().strip()
    request = urllib.request.Request(url + path, headers={"Authorization": f"Bearer {token}"})
    with urllib.request.urlopen(request, timeout=30) as answer:
        return answer.read().decode()


def s_rows(run_dir):
    path = os.path.join(run_dir, "metrics.jsonl")
    if not os.path.exists(path):
        return ""
    with open(path, encoding="utf-8") as file:
        return file.read()


def s_told(run_dir):
    rows = s_rows(run_dir)
    return all(f"time/{role}/" in rows for role in ROLES)


def s_said(world):
    """What one run says: {S, H, P, M: names at the top}, every name there is, and TensorBoard's tags."""
    # eight beats are told together, and not before they have lasted half a second
    process, run_dir = world.start_run(world.config(), "stop.env_steps=1G", "checkpoint.every_s=0.5", "net.beat_ms=200",
                                       "net.lease_ms=20000", "learner.replicas=2", "eval.every=2000", "algorithm.vtrace=true")
    wait_for(lambda: s_told(run_dir) and "eval/" in s_rows(run_dir), "where the time of each role goes, and an evaluation")
    status, served = world.status(run_dir), json.loads(s_ask(run_dir, "/status"))
    equal(set(status) - set(served), {"life", "changed"}, "what tutti status says and GET /status does not")
    equal(set(served) - set(status), set(), "what GET /status says and tutti status does not")
    types = dict(re.findall(r"(?m)^# TYPE tutti_(\w+) (\w+)$", s_ask(run_dir, "/metrics")))
    equal({name for name, kind in types.items() if kind == "counter"}, {name for name in types if name.endswith("_total")},
          "what has _total behind")
    metrics = {name.removesuffix("_total") for name in types}
    summary = world.stop(process, run_dir)
    rows = set().union(*(json.loads(line) for line in s_rows(run_dir).splitlines()))
    events = b"".join(open(path, "rb").read() for path in glob.glob(os.path.join(run_dir, "events.*")))
    tags = {tag.decode() for tag in re.findall(rb"(?:charts|losses|eval|time|system)/[A-Za-z_/]+", events)}
    everything = s_keys(status, s_keys(summary, set())) | metrics | rows | tags
    return {"S": set(summary), "H": set(status), "P": metrics, "M": rows}, everything, tags


def s_said_by_dqn(world):
    """What metrics.jsonl has of a run with a replay, each of which is explained where DQN's are or among everybody's."""
    config = world.config("env: CartPole-v1\nnum_envs: 4\nnum_steps: 32\nalgorithm: {name: dqn, learning_starts: 256, epsilon_steps: 1000}\n"
                          "replay: {capacity: 2000, prioritized: true}\nnetwork: {hidden: [16]}\nstop: {env_steps: 2k}\n", name="dqn.yaml")
    summary = world.train(config, seed=1)
    rows = [json.loads(line) for line in s_rows(summary["run_dir"]).splitlines()]
    said = set().union(*rows)
    check({"losses/td_loss", "replay/sampled", "rollout/exploration_rate", "charts/optimizer_steps"} <= said, f"{sorted(said)}")
    last = rows[-1]
    equal(last["replay/sampled"], 32 * last["charts/optimizer_steps"], "units that were drawn, by steps of 32")
    return said


def s_said_by(world, name):
    config = world.config(f"env: Pendulum-v1\nnum_envs: 4\nnum_steps: 32\nalgorithm: {{name: {name}, batch_size: 32, train_every: 8}}\n"
                          "replay: {capacity: 2000}\nnetwork: {hidden: [16]}\nstop: {env_steps: 2k}\n", name=f"{name}.yaml")
    rows = [json.loads(line) for line in s_rows(world.train(config, seed=1)["run_dir"]).splitlines()]
    said = set().union(*rows)
    check({"losses/critic_loss", "losses/actor_loss", "replay/sampled"} <= said, f"{sorted(said)}")
    if name == "sac":
        check(abs(rows[-1]["losses/entropy_coef"] - 1) > 1e-3, f"the entropy's weight is not tuned: {rows[-1]}")
    return said


def test_every_name_is_explained(world):
    tops, everything, tags = s_said(world)
    check(len(everything) > 50 and len(tags) > 10, f"too little was said: {sorted(everything)}")
    formats = s_page("formats.md")
    known = {s_short(word) for word in s_words(s_page("glossary.md")) + s_words(formats)}
    equal(sorted(name for name in everything if s_short(name) not in known), [],
          "names that neither glossary.md nor formats.md has")
    equal(sorted(name for name in s_said_by_dqn(world) if s_short(name) not in known), [], "names of DQN's")
    for whose in ("sac", "td3"):
        equal(sorted(name for name in s_said_by(world, whose) if s_short(name) not in known), [], f"names of {whose}'s")
    for name, places in s_places().items():
        said = {place for place, names in tops.items() if name in names or
                (place == "P" and f"{name}_desired" in names)}
        equal(said, places, f"where {name} is met")


def test_every_setting_is_there(world):
    listing = json.loads(world.tutti("config", "--output", "json").stdout)
    keys = {field["key"] for table in listing.values() for field in table}
    check(len(keys) > 50, f"{sorted(keys)}")
    named = [key for row in s_table("Settings") for cell in (row[0], row[-1]) for key in s_words(cell) if key in keys]
    equal(sorted(keys - set(named)), [], "settings that the glossary has not")
    first = [key for row in s_table("Settings") for key in s_words(row[0])]
    equal(sorted(first), sorted(set(first)), "settings of the first column")
    equal([key for key in first if key not in keys], [], "settings that there are not")


def test_every_word_of_others_is_answered(world):
    said = 0
    for ours, *others, _ in s_table("Settings"):
        for word in {word for cell in others for word in s_words(cell)}:
            done = subprocess.run([TUTTI, "check", "cartpole-ppo", "--set", f"other.{word}=1"], cwd=world.path, env=world.env,
                                  capture_output=True, text=True, timeout=60, check=False)
            equal(done.returncode, 78, f"{word}: {done.stderr}")
            check(any(f"'{key}'" in done.stderr for key in s_words(ours)), f"{word} is answered with {done.stderr}")
            said += 1
    check(said > 80, f"only {said} words")


main(test_every_name_is_explained, test_every_setting_is_there, test_every_word_of_others_is_answered)
