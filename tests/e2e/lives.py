#!/usr/bin/env python3
"""The lives of a run: what a resume goes on from when files are damaged or lost, what it may change, and what is kept."""

import contextlib
import json
import os
import re
import shutil
import signal
import sys
import urllib.request

sys.dont_write_bytecode = True
from rig import BATCH, ENDLESS, JOB, PATIENT, SOURCE, check, equal, main, stands_still, steps, wait_for

MORE = max(steps(20_000), 10_000)  # after resume; so many have a hundred episodes
DATA, NO_INPUT, USAGE, CONFIG, IO = 65, 66, 64, 78, 74


def s_checkpoints(run_dir):
    """Paths in the run directory of the numbered snapshots, newest first."""
    names = os.listdir(os.path.join(run_dir, "checkpoints"))
    return [os.path.join("checkpoints", name) for name in sorted(names, reverse=True)
            if name[0].isdigit() and name.endswith(".safetensors")]


def s_update(path):
    return int(os.path.basename(path).partition(".")[0])


def s_flip(path):
    """One bit of a weight: in the middle of the file."""
    with open(path, "r+b") as file:
        file.seek(os.path.getsize(path) // 2)
        byte = file.read(1)[0]
        file.seek(-1, os.SEEK_CUR)
        file.write(bytes([byte ^ 1]))


def s_killed_run(world, config, *sets, seed=21):
    """A run with several snapshots, killed."""
    process, run_dir = world.start_run(config, "checkpoint.every_s=0.05", PATIENT, ENDLESS, *sets, seed=seed)
    world.await_snapshot(run_dir, process)
    wait_for(lambda: len(s_checkpoints(run_dir)) >= 3, "three snapshots")
    world.kill_all(process)
    return run_dir


def s_same(world, config, resumed, *sets, seed=21):
    still = world.train(config, *sets, f"stop.env_steps={resumed['updates'] * BATCH + BATCH}", seed=seed)
    for key in ("weights_sha256", "updates", "episodes", "return_mean"):
        equal(resumed[key], still[key], f"{key}, {sets}")


def s_damaged(world, lag):
    """The newest snapshot has one wrong bit: the one before it is taken, and both are named."""
    config = world.config()
    run_dir = s_killed_run(world, config, f"lag={lag}")
    newest, older = s_checkpoints(run_dir)[:2]
    s_flip(os.path.join(run_dir, newest))
    done = world.tutti("eval", os.path.join(run_dir, newest))
    equal(done.returncode, DATA, f"eval of a damaged snapshot: {done.stderr}")
    check("damaged" in done.stderr and newest in done.stderr, done.stderr)
    end = s_update(newest) * BATCH + MORE
    resumed = world.resume(run_dir, f"stop.env_steps={end}")
    equal(resumed["status"], "succeeded", "status")
    story = resumed["restored_from"]
    equal((story["snapshot"], story["updates"]), (older, s_update(older)), "restored_from")
    equal([bad["snapshot"] for bad in story["passed_over"]], [newest], "passed over")
    equal(resumed["rolled_back"], 1, "rolled_back")
    s_same(world, config, resumed, f"lag={lag}")


def test_a_damaged_snapshot_lag_0(world):
    s_damaged(world, 0)


def test_a_damaged_snapshot_lag_1(world):
    s_damaged(world, 1)


def s_lost(world, lag, how):
    """The journal is lost, whole or in part: the newest snapshot is adopted."""
    config = world.config()
    run_dir = s_killed_run(world, config, f"lag={lag}")
    newest = s_checkpoints(run_dir)[0]
    parts = ["journal.db-wal", "journal.db-shm"] + ([] if how == "no log" else ["journal.db"])
    for name in parts:
        os.unlink(os.path.join(run_dir, name))
    if how == "empty":
        with open(os.path.join(run_dir, "journal.db"), "wb"):
            pass
    resumed = world.resume(run_dir, f"stop.env_steps={s_update(newest) * BATCH + MORE}")
    story = resumed["restored_from"]
    equal((story["snapshot"], story["adopted"], story["passed_over"]), (newest, True, []), f"restored_from, {how}")
    with open(os.path.join(run_dir, "metrics.jsonl"), encoding="utf-8") as file:
        lines = [json.loads(line) for line in file]
    equal(lines[-1]["updates"], resumed["updates"], "the newest line of metrics.jsonl")
    s_same(world, config, resumed, f"lag={lag}")


def test_no_journal_lag_0(world):
    s_lost(world, 0, "gone")


def test_no_journal_lag_1(world):
    s_lost(world, 1, "gone")


def s_lose_journal(run_dir):
    for name in ("journal.db", "journal.db-wal", "journal.db-shm"):
        os.unlink(os.path.join(run_dir, name))


def test_no_journal_of_a_solved_run(world):
    """When it was solved is in the snapshot, too; how long that took, of a life that left nothing else, is not known."""
    config = os.path.join(SOURCE, "configs", "cartpole-ppo.yaml")
    batch = 16 * 64  # of that config
    sets = ["stop.return_mean=null", "algorithm.anneal=none", "seed=1"]
    process, run_dir = world.start_run(config, ENDLESS, "checkpoint.every_s=0.05", *sets)

    def solved():
        status = world.status(run_dir) or {}
        return status.get("solved_at_s") and status
    snapshots = wait_for(solved, "a solution")["snapshots"]
    after = wait_for(lambda: (world.status(run_dir) or {}).get("snapshots", 0) > snapshots + 1 and world.status(run_dir), "a snapshot behind it")
    world.kill_all(process)
    s_lose_journal(run_dir)
    end = s_update(s_checkpoints(run_dir)[0]) * batch + MORE  # it went on until it was dead
    resumed = world.resume(run_dir, f"stop.env_steps={end}")
    still = world.train(config, *sets, f"stop.env_steps={after['env_steps']}")
    check(still["solved_at_steps"], "not solved")
    equal((resumed["solved_at_steps"], resumed["solved_at_s"]), (still["solved_at_steps"], None), "when it was solved")


def test_an_empty_journal(world):
    s_lost(world, 1, "empty")


def test_a_journal_without_its_log(world):
    s_lost(world, 0, "no log")


def test_nothing_whole_is_refused(world):
    run_dir = s_killed_run(world, world.config())
    folder = os.path.join(run_dir, "checkpoints")
    names = [name for name in os.listdir(folder) if name.endswith(".safetensors")]  # and not what was being written
    for name in {os.stat(os.path.join(folder, name)).st_ino: name for name in names}.values():
        s_flip(os.path.join(folder, name))
    s_lose_journal(run_dir)
    done = world.tutti("resume", run_dir)
    equal(done.returncode, DATA, done.stderr)
    check("no snapshot is whole" in done.stderr and "damaged" in done.stderr, done.stderr)


def test_snapshots_that_cannot_be_read(world):
    """They are not "none": the run begins from version 0 neither without its journal nor with it, and the folder is named."""
    run_dir = s_killed_run(world, world.config())
    folder = os.path.join(run_dir, "checkpoints")
    os.rename(folder, folder + ".away")
    os.symlink("checkpoints", folder)  # whoever opens it is refused, root too
    with open(os.path.join(run_dir, "metrics.jsonl"), encoding="utf-8") as file:
        before = file.read()
    for lost in (False, True):
        if lost:
            s_lose_journal(run_dir)
        done = world.tutti("resume", run_dir)
        equal(done.returncode, IO, f"journal lost: {lost}: {done.stderr}")
        for words in (folder, "cannot be read", "Too many levels of symbolic links", "try again"):
            check(words in done.stderr, f"'{words}' is not in {done.stderr}")
    with open(os.path.join(run_dir, "metrics.jsonl"), encoding="utf-8") as file:
        equal(file.read(), before, "metrics.jsonl")
    os.unlink(folder)
    os.rename(folder + ".away", folder)
    newest = s_checkpoints(run_dir)[0]
    resumed = world.resume(run_dir, f"stop.env_steps={s_update(newest) * BATCH + MORE}")
    equal(resumed["restored_from"]["snapshot"], newest, "snapshot")


def test_all_is_lost(world):
    """Neither journal nor snapshots of a run that had trained: it begins anew, and says so where it runs and when it ends."""
    run_dir = s_killed_run(world, world.config())
    s_lose_journal(run_dir)
    shutil.rmtree(os.path.join(run_dir, "checkpoints"))
    done = world.tutti("resume", run_dir, "--set", f"stop.env_steps={MORE}")
    equal(done.returncode, 0, done.stderr)
    check("warning: there is no snapshot to go on from: the run begins anew" in done.stdout, done.stdout)
    check("  there was no snapshot to go on from: it began anew, with version 0" in done.stdout, done.stdout)
    with open(os.path.join(run_dir, "summary.json"), encoding="utf-8") as file:
        story = json.load(file)["restored_from"]
    equal(story, {"snapshot": None, "updates": 0, "adopted": False, "passed_over": []}, "restored_from")
    fresh = world.train(world.config(), f"stop.env_steps={MORE}", seed=21)
    equal(fresh["restored_from"], None, "restored_from of a run that begins")


def test_a_run_without_its_config(world):
    """What is missing is named, and not what is looked for instead."""
    summary = world.train(world.config(), f"stop.env_steps={MORE}")
    os.unlink(os.path.join(summary["run_dir"], "config.yaml"))
    done = world.tutti("resume", summary["run_dir"])
    equal(done.returncode, NO_INPUT, done.stderr)
    check("config.yaml" in done.stderr, done.stderr)


def s_taken(world, run_dir, command):
    """How a command ended that wants the run's weights, and its stderr; what it wrote is gone."""
    words = {"eval": ["--episodes", "1"], "export": ["--onnx", "policy.onnx"], "fetch": ["-o", "weights.safetensors"]}[command]
    done = world.tutti(command, run_dir, *words)
    for name in ("policy.onnx", "weights.safetensors"):
        with contextlib.suppress(FileNotFoundError):
            os.unlink(os.path.join(world.path, name))
    return done.returncode, done.stderr


def test_a_damaged_final_snapshot(world):
    """eval, export and fetch take the one before it, and name both; the best, which is asked for, has none before it."""
    summary = world.train(world.config(), "checkpoint.every_s=0.05", "checkpoint.keep=3", f"stop.env_steps={8 * MORE}")
    run_dir = summary["run_dir"]
    folder = os.path.join(run_dir, "checkpoints")
    newest, older = [os.path.basename(path) for path in s_checkpoints(run_dir)[:2]]
    for command in ("eval", "export", "fetch"):
        code, said = s_taken(world, run_dir, command)
        check(code == 0 and "passed over" not in said and "is taken" not in said, f"{command}, all whole: {said}")
    final = os.path.join(folder, "final.safetensors")
    if os.stat(final).st_ino == os.stat(os.path.join(folder, "best.safetensors")).st_ino:
        os.unlink(os.path.join(folder, "best.safetensors"))  # else the same bits are damaged
    s_flip(final)
    for command in ("eval", "export", "fetch"):
        code, said = s_taken(world, run_dir, command)
        equal(code, 0, f"{command}: {said}")
        equal(said.count("final.safetensors is passed over: damaged"), 1, f"{command}: {said}")
        check(f"{newest}, its newest that is whole, is taken" in said, f"{command}: {said}")
    s_flip(os.path.join(folder, newest))
    code, said = s_taken(world, run_dir, "eval")
    equal(code, 0, said)
    for words in ("final.safetensors is passed over", f"{newest} is passed over", f"{older}, its newest that is whole, is taken"):
        check(words in said, f"'{words}' is not in {said}")
    for name in os.listdir(folder):
        if name not in ("final.safetensors", newest):
            os.unlink(os.path.join(folder, name))
    for command in ("eval", "export", "fetch"):
        code, said = s_taken(world, run_dir, command)
        check(code == DATA and "no snapshot is whole" in said and "damaged" in said, f"{command}: {code}, {said}")
    os.unlink(os.path.join(folder, newest))
    code, said = s_taken(world, run_dir, "eval")
    check(code == DATA and "final.safetensors" in said and "damaged" in said, f"{code}, {said}")


def s_edit(run_dir, old, new):
    path = os.path.join(run_dir, "config.yaml")
    with open(path, encoding="utf-8") as file:
        text = file.read()
    equal(text.count(old), 1, f"'{old}' in {path}")
    with open(path, "w", encoding="utf-8") as file:
        file.write(text.replace(old, new))


def test_an_edited_config_is_refused(world):
    """By name, with both values, wherever the edit is compared from: the history, or, without one, the snapshot."""
    run_dir = s_killed_run(world, world.config())
    cases = [("seed: 21", "seed: 22", "seed"), ("num_envs: 8", "num_envs: 16", "num_envs"),
             ("env: CartPole-v1", "env: Acrobot-v1", "env"), ("hidden: [64, 64]", "hidden: [64]", "network.hidden"),
             ("learning_rate: 0.001", "learning_rate: 0.002", "algorithm.learning_rate")]
    for lost in (None, "history.jsonl"):
        if lost:
            os.unlink(os.path.join(run_dir, lost))
        for old, new, key in cases:
            s_edit(run_dir, old, new)
            done = world.tutti("resume", run_dir)
            s_edit(run_dir, new, old)
            equal(done.returncode, CONFIG, f"{new}: {done.stderr}")
            for word in (key + ":", old.partition(": ")[2], new.partition(": ")[2], "config.yaml:"):
                check(word in done.stderr, f"{new}: '{word}' is not in {done.stderr}")
    done = world.tutti("resume", run_dir, "--set", "seed=5")
    equal(done.returncode, CONFIG, done.stderr)
    check("--set: seed: the run has 21, now it is 5" in done.stderr, done.stderr)
    s_edit(run_dir, "threads: 1", "threads: 2")  # how the run is run may change
    world.resume(run_dir, f"stop.env_steps={s_update(s_checkpoints(run_dir)[0]) * BATCH + MORE}")


def test_arguments_are_kept(world):
    """What the environment was made with decides the result: it is kept, and compared name by name."""
    job = JOB.replace("env: CartPole-v1", "env: {id: Pendulum-v1, args: {g: 9.81}}")
    config = world.config(job)
    run_dir = s_killed_run(world, config)
    cases = [("g: 9.81", "g: 9.5", ("env.args.g: ", "9.81", "9.5", "config.yaml:")),
             ("g: 9.81", "g: 9.81\n    G: 1", ("env.args.G: ", "config.yaml:")),
             ("  args:\n    g: 9.81\n", "", ("env.args.g: the run has 9.81, now it is none",))]
    for old, new, words in cases:
        with open(os.path.join(run_dir, "config.yaml"), encoding="utf-8") as file:
            before = file.read()
        s_edit(run_dir, old, new)
        done = world.tutti("resume", run_dir)
        with open(os.path.join(run_dir, "config.yaml"), "w", encoding="utf-8") as file:
            file.write(before)
        equal(done.returncode, CONFIG, f"{new!r}: {done.stderr}")
        for word in words:
            check(word in done.stderr, f"{new!r}: '{word}' is not in {done.stderr}")
    for value, now in (("2", "2"), ("null", "none")):
        done = world.tutti("resume", run_dir, "--set", f"env.args.g={value}")
        equal(done.returncode, CONFIG, done.stderr)
        check(f"env.args.g: the run has 9.81, now it is {now}" in done.stderr, done.stderr)
    resumed = world.resume(run_dir, f"stop.env_steps={s_update(s_checkpoints(run_dir)[0]) * BATCH + MORE}")
    s_same(world, config, resumed)
    end = f"stop.env_steps={10 * BATCH}"
    heavy, usual = world.train(config, end), world.train(world.config(JOB.replace("CartPole-v1", "Pendulum-v1")), end)
    check(heavy["weights_sha256"] != usual["weights_sha256"], "gravity decides nothing")


def s_judged(world, g):
    """Weights nobody trained, and what eval says of them, under so much gravity."""
    job = world.config(JOB.replace("env: CartPole-v1", f"env: {{id: Pendulum-v1, args: {{g: {g}}}}}"))
    summary = world.train(job, f"stop.env_steps={BATCH}", seed=1)
    done = world.tutti("eval", summary["run_dir"], "--episodes", "3", "--output", "json")
    equal(done.returncode, 0, done.stderr)
    return summary["weights_sha256"], json.loads(done.stdout)["return_mean"]


def test_eval_plays_with_the_arguments(world):
    light, heavy = s_judged(world, 1), s_judged(world, 30)
    equal(light[0], heavy[0], "weights that gravity has not touched")
    check(light[1] != heavy[1], f"gravity makes no difference to eval: {light}")


def s_with_numbers(text):
    """A resolved config as it was when spaces were numbers."""
    for old, new in (('obs: "float32[4]"', "obs: 4"), ('action: "discrete(2)"', "actions: 2\n  action_dims: 1"), ("  mask: false\n", "")):
        equal(text.count(old), 1, f"'{old}' in a resolved config")
        text = text.replace(old, new)
    return text


def test_spaces_that_were_numbers(world):
    """A run of a version before columns, with a history: no person's edit, so nothing is said of it."""
    config = world.config()
    run_dir = s_killed_run(world, config)
    path = os.path.join(run_dir, "config.yaml")
    with open(path, encoding="utf-8") as file:
        text = file.read()
    with open(path, "w", encoding="utf-8") as file:
        file.write(s_with_numbers(text))
    path = os.path.join(run_dir, "history.jsonl")
    with open(path, encoding="utf-8") as file:
        lines = [json.loads(line) for line in file]
    with open(path, "w", encoding="utf-8") as file:
        for line in lines:
            file.write(json.dumps({**line, **({"config": s_with_numbers(line["config"])} if "config" in line else {})}) + "\n")
    resumed = world.resume(run_dir, f"stop.env_steps={s_update(s_checkpoints(run_dir)[0]) * BATCH + MORE}")
    equal([change["key"] for change in resumed["changed"]], ["stop.env_steps"], "changed")
    s_same(world, config, resumed)
    with open(os.path.join(run_dir, "config.yaml"), encoding="utf-8") as file:
        check('obs: "float32[4]"' in file.read(), "its config is not brought up to date")


def test_set_is_recorded(world):
    """In the config, the history, the summary; and the next resume does not take it for an edit."""
    run_dir = s_killed_run(world, world.config())
    end = s_update(s_checkpoints(run_dir)[0]) * BATCH + MORE
    first = world.resume(run_dir, f"stop.env_steps={end}", "algorithm.learning_rate=5e-4")
    equal((first["status"], first["life"]), ("succeeded", 2), "the second life")
    wanted = [{"key": "algorithm.learning_rate", "from": "0.001", "to": "0.0005"},
              {"key": "stop.env_steps", "from": "1000000000", "to": str(end)}]
    equal(sorted(first["changed"], key=lambda change: change["key"]), wanted, "changed")
    text = world.tutti("status", run_dir).stdout
    check("algorithm.learning_rate 0.001 -> 0.0005" in text and "life 2" in text, text)
    second = world.resume(run_dir, f"stop.env_steps={end + MORE}")
    equal((second["life"], [change["key"] for change in second["changed"]]), (3, ["stop.env_steps"]), "the third life")
    with open(os.path.join(run_dir, "config.yaml"), encoding="utf-8") as file:
        text = file.read()
    check("learning_rate: 0.0005" in text and f"env_steps: {end + MORE}" in text, text)
    with open(os.path.join(run_dir, "history.jsonl"), encoding="utf-8") as file:
        lines = [json.loads(line) for line in file]
    equal([(line["event"], line["life"]) for line in lines],
          [("began", 1), ("began", 2), ("ended", 2), ("began", 3), ("ended", 3)], "history")
    equal([line["summary"]["env_steps"] for line in lines if "summary" in line],
          [first["env_steps"], second["env_steps"]], "summaries in the history")


def test_replicas_may_change(world):
    """By --set, over what was scaled to before; a resume without it keeps that."""
    process, run_dir = world.start_run(world.config(), ENDLESS, seed=7)
    world.await_steps(run_dir, 1, process)
    equal(world.tutti("scale", run_dir, "collector=3").returncode, 0, "scale")
    world.stop(process, run_dir)
    for sets, collectors in (((), 3), (("collector.replicas=2",), 2), ((), 2)):
        again = world.start("resume", run_dir, "--output", "json", *[word for item in sets for word in ("--set", item)])

        def look():
            count = ((world.status(run_dir) or {}).get("replicas") or {}).get("collector", {})
            return (count.get("desired"), count.get("ready")) == (collectors, collectors)
        wait_for(look, f"{collectors} collectors")
        world.stop(again, run_dir)


def test_a_run_that_succeeded(world):
    """It goes on to another end only, and keeps its summary; what it says of speed is of the life that says it."""
    config = world.config()
    first = world.train(config, PATIENT, f"stop.env_steps={MORE}", seed=5)
    run_dir = first["run_dir"]
    with open(os.path.join(run_dir, "summary.json"), encoding="utf-8") as file:
        kept = file.read()
    for sets, words in (((), "has succeeded"), (("stop.env_steps=1024",), "stop.env_steps is reached already"),
                        (("stop.env_steps=10M", "stop.return_mean=-5"), "stop.return_mean is reached already"),
                        (("algorithm.learning_rate=1e-4",), "has succeeded")):
        args = [word for item in sets for word in ("--set", item)]
        done = world.tutti("resume", run_dir, *args)
        equal(done.returncode, USAGE, f"{sets}: {done.stderr}")
        check(words in done.stderr, f"{sets}: {done.stderr}")
        with open(os.path.join(run_dir, "summary.json"), encoding="utf-8") as file:
            equal(file.read(), kept, f"summary.json after {sets}")
    second = world.resume(run_dir, f"stop.env_steps={first['env_steps'] + 4 * BATCH}")
    equal(second["rolled_back"], 0, "rolled_back")
    equal(second["restored_from"]["snapshot"], "checkpoints/final.safetensors", "snapshot")
    equal(second["env_steps"], first["env_steps"] + 4 * BATCH, "env_steps")
    with open(os.path.join(run_dir, "history.jsonl"), encoding="utf-8") as file:
        ended = [json.loads(line)["summary"] for line in file if '"ended"' in line]
    equal([summary["weights_sha256"] for summary in ended], [first["weights_sha256"], second["weights_sha256"]], "history")
    still = world.train(config, f"stop.env_steps={second['env_steps']}", seed=5)
    equal(second["weights_sha256"], still["weights_sha256"], "weights")
    s_speed(world, run_dir, second)


def s_speed(world, run_dir, before):
    """The coordinator's own figures are of one moment: steps since the snapshot over the time since the first of them. It is a collector
    that tells of that one, and the learners that tell of the end: who hears of it too late has no figures, and is asked in another life."""
    lives = [before]

    def told():
        process = world.start("resume", run_dir, "--set", ENDLESS, "--output", "json")
        world.await_steps(run_dir, lives[-1]["env_steps"] + 20 * BATCH, process)
        lives.append(world.stop(process, run_dir))
        with open(os.path.join(run_dir, "result.json"), encoding="utf-8") as file:
            result = json.load(file)
        return result["first_step_s"] and result
    result = wait_for(told, "a life whose first step was told before its end")
    before, summary = lives[-2:]
    lived = summary["env_steps"] - before["updates"] * BATCH
    counted = result["sps"] * (result["wall_s"] - result["first_step_s"])
    check(abs(counted - lived) < 1, f"sps counts {counted} steps, this life had {lived}")
    with open(os.path.join(run_dir, "metrics.jsonl"), encoding="utf-8") as file:
        newest = [json.loads(line) for line in file][-1]
    check(0 < newest["wall_s"] < summary["wall_s"], f"wall_s {newest['wall_s']} is not of a life of {summary['wall_s']} s")


def test_a_life_that_was_killed_has_no_summary(world):
    """That of the life before is history, and not how the run ended."""
    first = world.train(world.config(), f"stop.env_steps={MORE}", seed=6)
    run_dir = first["run_dir"]
    process = world.start("resume", run_dir, "--set", ENDLESS, "--output", "json")
    world.await_steps(run_dir, first["env_steps"] + BATCH, process)
    world.kill_all(process)
    text = world.tutti("status", run_dir).stdout
    check("killed" in text, text)
    with open(os.path.join(run_dir, "history.jsonl"), encoding="utf-8") as file:
        check(first["weights_sha256"] in file.read(), "the first life's summary")


DQN = """\
env: CartPole-v1
num_envs: 8
num_steps: 32
algorithm: {name: dqn, batch_size: 32, learning_starts: 700, train_every: 32, epsilon_steps: 5000}
replay: {capacity: 4000}
network: {hidden: [32]}
"""


def s_metric(run_dir, url, name):
    with open(os.path.join(run_dir, "token"), encoding="utf-8") as file:
        request = urllib.request.Request(f"{url}/metrics", headers={"Authorization": f"Bearer {file.read().strip()}"})
    with urllib.request.urlopen(request, timeout=60) as answer:
        return float(re.search(rf"(?m)^tutti_{name} (\S+)$", answer.read().decode()).group(1))


@contextlib.contextmanager
def s_standing_still(pid):
    """Makes no folder anew, and no file in it, between two steps of ours."""
    os.kill(pid, signal.SIGSTOP)
    try:
        wait_for(lambda: stands_still(pid), f"process {pid} to stand still")
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


def s_no_snapshots(world, job):
    """While none can be made the run goes on, says so whenever it is asked, but not in its log each time."""
    process, run_dir = world.start_run(world.config(job), "checkpoint.every_s=0.02", PATIENT, ENDLESS)
    world.await_snapshot(run_dir, process)
    equal(world.look(run_dir, process)["snapshot_failure"], None, "failure while all is well")
    folder, learner = os.path.join(run_dir, "checkpoints"), world.replica("learner", 0)
    with s_standing_still(learner):
        os.rename(folder, folder + ".away")
        with open(folder, "w", encoding="utf-8"):
            pass

    def failing():
        status = world.look(run_dir, process)
        return status["snapshot_failures"] >= 10 and status["http"] and status
    status = wait_for(failing, "ten snapshots that fail")
    failure = status["snapshot_failure"]
    check("checkpoints" in failure["reason"], failure["reason"])
    check(0 < failure["since_s"] < status["wall_s"] and failure["failures"] >= 10, str(failure))
    check("no snapshot could be made for" in world.tutti("status", run_dir).stdout, "tutti status does not say it")
    check(s_metric(run_dir, status["http"], "snapshot_failures_total") >= 10, "the counter")
    with open(os.path.join(run_dir, "logs", "learner-0.log"), encoding="utf-8") as file:
        said = file.read().count("no checkpoint: ")
    check(1 <= said <= 3, f"said {said} times of {failure['failures']}")
    with s_standing_still(learner):
        os.unlink(folder)
        os.rename(folder + ".away", folder)
    wait_for(lambda: world.look(run_dir, process)["snapshot_failure"] is None, "a snapshot again")
    check("no snapshot could be made" not in world.tutti("status", run_dir).stdout, "tutti status still says it")
    world.stop(process, run_dir)


def test_no_snapshots(world):
    s_no_snapshots(world, JOB)


def test_no_snapshots_with_a_replay(world):
    s_no_snapshots(world, DQN)


main(test_a_damaged_snapshot_lag_0, test_a_damaged_snapshot_lag_1, test_no_journal_lag_0, test_no_journal_lag_1,
     test_no_journal_of_a_solved_run, test_an_empty_journal, test_a_journal_without_its_log,
     test_nothing_whole_is_refused, test_snapshots_that_cannot_be_read, test_all_is_lost, test_a_damaged_final_snapshot, test_a_run_without_its_config, test_an_edited_config_is_refused,
     test_arguments_are_kept, test_eval_plays_with_the_arguments, test_spaces_that_were_numbers, test_set_is_recorded,
     test_replicas_may_change, test_a_run_that_succeeded, test_a_life_that_was_killed_has_no_summary,
     test_no_snapshots, test_no_snapshots_with_a_replay)
