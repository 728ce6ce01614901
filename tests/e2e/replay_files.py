#!/usr/bin/env python3
"""A replay in files beside the snapshots: whatever is killed, torn or damaged, and whenever, a run goes on to the bit, or says why not."""

import glob
import json
import os
import random
import shutil
import signal
import struct
import subprocess
import sys

sys.dont_write_bytecode = True
from rig import BATCH, DEADLINE, ENDLESS, PATIENT, TUTTI, check, equal, main, newest_update, steps, wait_for

CAPACITY = 4000
JOB = """\
env: CartPole-v1
num_envs: 8
num_steps: 32
algorithm:
  name: dqn
  batch_size: 32
  learning_starts: 700
  train_every: 32
  epsilon_steps: 5000
  target_every: 640
  n_step: 3
replay: {capacity: 4000, prioritized: PRIORITIZED, beta_steps: 8000}
network: {hidden: [32]}
learner: {shards: 4}
stop: {env_steps: 12k}
"""
OFTEN = "checkpoint.every_s=0.05"


def s_config(world, prioritized=True):
    return world.config(JOB.replace("PRIORITIZED", "true" if prioritized else "false"), name=f"dqn-{prioritized}.yaml")


def s_folder(run_dir):
    return os.path.join(run_dir, "checkpoints")


def s_files(run_dir):
    """The replay's, as they were begun: by era, and in a life by number; a writer that took over comes somewhere in its era."""
    return sorted(glob.glob(os.path.join(s_folder(run_dir), "replay-*.bin")))


def s_writer(path):
    """The process that has written it."""
    return os.path.basename(path).split("-")[2]


def s_size(run_dir):
    size = 0
    for path in s_files(run_dir):
        try:
            size += os.path.getsize(path)
        except FileNotFoundError:
            pass  # swept just now
    return size


def s_await_newer(run_dir, update, process):
    """Until there is a newer one; its update."""
    def look():
        check(process.poll() is None, "the run ended")
        return newest_update(run_dir) > update
    wait_for(look, f"a snapshot after update {update}")
    return newest_update(run_dir)


def s_await_file(run_dir, process):
    """As long as it is little, a replay is in the snapshots themselves."""
    def look():
        check(process.poll() is None, "the run ended")
        return s_files(run_dir)
    wait_for(look, "a file of the replay")


def s_await_moment(run_dir, process, rng):
    """Some moment, often one at which something is being written."""
    kind, folder = rng.randrange(3), s_folder(run_dir)
    newest, size = newest_update(run_dir), s_size(run_dir)

    def look():
        check(process.poll() is None, "the run ended")
        if newest_update(run_dir) <= newest:
            return False
        if kind == 0:
            return True
        if kind == 1:
            return s_size(run_dir) != size
        return glob.glob(os.path.join(folder, "*.tmp")) or newest_update(run_dir) > newest + 300
    wait_for(look, f"moment of kind {kind}")


def s_lives(world, seed, lag, prioritized, learners, lives):
    """Killed as a whole again and again, and once to its end."""
    rng = random.Random(seed)
    config = s_config(world, prioritized)
    sets = [f"lag={lag}", f"learner.replicas={learners}", OFTEN]
    process, run_dir = world.start_run(config, *sets, ENDLESS, name=f"run-{seed}", seed=seed)
    for life in range(lives):
        s_await_moment(run_dir, process, rng)
        world.kill_all(process)
        for path in s_files(run_dir)[-1:]:
            if rng.randrange(2):  # what was on its way when the power went
                with open(path, "ab") as file:
                    file.write(rng.randbytes(rng.randrange(1, 5000)))
        if life + 1 < lives:
            process = world.start("resume", run_dir, "--output", "json")
    end = (newest_update(run_dir) + 30) * BATCH
    resumed = world.resume(run_dir, f"stop.env_steps={end}")
    equal(resumed["life"], lives + 1, "lives")
    equal(resumed["restored_from"]["passed_over"], [], "passed over")
    still = world.train(config, f"lag={lag}", f"stop.env_steps={end}", seed=seed)
    for key in ("weights_sha256", "env_steps", "updates", "episodes", "return_mean"):
        equal(resumed[key], still[key], f"{key} after {lives} kills, seed {seed}, lag {lag}")


def test_killed_lag_0(world):
    s_lives(world, 1, 0, True, 1, 5)


def test_killed_lag_1(world):
    s_lives(world, 2, 1, True, 1, 5)


def test_killed_uniform(world):
    s_lives(world, 3, 1, False, 1, 5)


def test_killed_two_learners(world):
    s_lives(world, 4, 1, True, 2, 4)


def test_interrupted(world):
    """SIGINT: all is written before the end, and what was written before is not written again."""
    config = s_config(world)
    process, run_dir = world.start_run(config, OFTEN, ENDLESS, seed=5)
    s_await_file(run_dir, process)
    process.send_signal(signal.SIGINT)
    stopped = world.summary(process, 130)
    files = [os.path.basename(path) for path in s_files(run_dir)]
    check(files, "no file of the replay")
    end = stopped["env_steps"] + 8 * BATCH  # fewer rows than it holds: of those from before some are still there
    resumed = world.resume(run_dir, f"stop.env_steps={end}", "checkpoint.every_s=null")
    kept = [os.path.basename(path) for path in s_files(run_dir)]
    check(set(files) & set(kept), f"none of {files} is of use any more: {kept}")
    check(set(kept) - set(files), f"nothing was written: {kept}")
    still = world.train(config, f"stop.env_steps={end}", seed=5)
    equal(resumed["weights_sha256"], still["weights_sha256"], "weights after SIGINT")


def s_leader(world, run_dir, process, learners):
    """The member, once so many hold the weights."""
    holding = [member for member in world.look(run_dir, process)["members"] if member.get("holds")]
    return len(holding) == learners and next((member for member in holding if member.get("rank") == 0), None)


def test_leader_killed(world):
    """Another learner writes from there on, all of it; then everything goes."""
    config = s_config(world)
    process, run_dir = world.start_run(config, OFTEN, "learner.replicas=2", ENDLESS, seed=6)
    s_await_file(run_dir, process)
    newest = s_await_newer(run_dir, newest_update(run_dir), process)
    theirs = set(map(s_writer, s_files(run_dir)))
    equal(len(theirs), 1, "writers")
    leader = wait_for(lambda: s_leader(world, run_dir, process, 2), "two learners with weights")  # whoever was there first
    os.kill(leader["pid"], signal.SIGKILL)
    wait_for(lambda: set(map(s_writer, s_files(run_dir))) - theirs, "a file of the other learner")
    s_await_newer(run_dir, s_await_newer(run_dir, newest, process), process)
    wait_for(lambda: theirs.isdisjoint(map(s_writer, s_files(run_dir))),
             lambda: f"the end of {theirs}'s: {s_files(run_dir)}")
    world.kill_all(process)
    end = (newest_update(run_dir) + 30) * BATCH
    resumed = world.resume(run_dir, f"stop.env_steps={end}")
    still = world.train(config, f"stop.env_steps={end}", seed=6)
    equal(resumed["weights_sha256"], still["weights_sha256"], "weights")


def test_disk_is_bounded(world):
    """Much more is played than is kept."""
    config = s_config(world)
    process, run_dir = world.start_run(config, OFTEN, ENDLESS, seed=7)
    most, newest = 0, 0
    row = 4 * 4 + 8 + 4 + 2  # observation, action, reward, flags
    bound = 4 * CAPACITY * row * 5 / 4 + 4 * (256 << 10)
    looks = 0
    while looks < 20 or newest * BATCH <= 5 * CAPACITY:
        newest = s_await_newer(run_dir, newest, process)
        most = max(most, s_size(run_dir))
        looks += 1
    equal(process.poll(), None, "the run's end")
    check(most <= bound, f"{most} bytes on disk, at most {bound} expected")
    summary = world.stop(process, run_dir)
    check(len(s_files(run_dir)) <= 20, f"{len(s_files(run_dir))} files are left")
    equal(summary["status"], "stopped", "status")


def s_arrays(path):
    """What a snapshot holds, by name."""
    with open(path, "rb") as file:
        data = file.read()
    size = 8 + int.from_bytes(data[:8], "little")
    header = json.loads(data[8:size])
    return {name: data[size + item["data_offsets"][0]:size + item["data_offsets"][1]] for name, item in header.items() if "data_offsets" in item}


def s_last_piece(path):
    """File, offset and bytes of the last piece that a snapshot refers to."""
    arrays = s_arrays(path)
    number, offset, count, _, _ = struct.unpack("<5q", arrays["tutti.replay.pieces"][-40:])
    return arrays["tutti.replay.files"][64 * number:64 * number + 64].rstrip(b"\0").decode(), offset, count


def s_all_refer(run_dir):
    """Has no snapshot that could be gone on from, the best one neither, its whole replay in itself?"""
    try:
        return all(s_arrays(path).get("tutti.replay.pieces") for path in glob.glob(os.path.join(s_folder(run_dir), "*.safetensors")))
    except FileNotFoundError:
        return False  # swept just now


def s_killed_run(world, name, seed):
    """A run that was killed when it had a few snapshots, which all refer to files."""
    process, run_dir = world.start_run(s_config(world), OFTEN, "checkpoint.keep=5", PATIENT, ENDLESS, name=name, seed=seed)
    s_await_file(run_dir, process)
    newest = newest_update(run_dir)
    for _ in range(4):
        newest = s_await_newer(run_dir, newest, process)
    wait_for(lambda: s_all_refer(run_dir), "no snapshot with all of its replay")
    world.kill_all(process)
    return run_dir


def s_spoil(path):
    with open(path, "r+b") as file:
        bytes_ = bytearray(file.read())
        for i in range(0, len(bytes_), 7):
            bytes_[i] ^= 1
        file.seek(0)
        file.write(bytes_)


def test_newest_damaged(world):
    """What only the newest refers to is torn: the one before is taken, and it is said."""
    run_dir = s_killed_run(world, "run", 8)
    newest = f"{newest_update(run_dir):08}.safetensors"
    file, offset, count = s_last_piece(os.path.join(s_folder(run_dir), newest))
    os.truncate(os.path.join(s_folder(run_dir), file), offset + count - 1)
    end = (newest_update(run_dir) + 30) * BATCH
    resumed = world.resume(run_dir, f"stop.env_steps={end}", "checkpoint.every_s=null")
    passed = resumed["restored_from"]["passed_over"]
    equal([item["snapshot"] for item in passed], [f"checkpoints/{newest}"], "passed over")
    check("damaged" in passed[0]["reason"] and file in passed[0]["reason"], f"reason: {passed}")
    equal(resumed["rolled_back"], 1, "rolled back: by the kill, not by choosing again")
    still = world.train(s_config(world), f"stop.env_steps={end}", seed=8)
    equal(resumed["weights_sha256"], still["weights_sha256"], "weights")


def test_all_damaged(world):
    """Then the run is not begun anew, and a user is told what can be done; done twice, it has the same bits."""
    run_dir = s_killed_run(world, "run", 9)
    files = s_files(run_dir)
    for path in files:
        s_spoil(path)
    end = f"stop.env_steps={(newest_update(run_dir) + 30) * BATCH}"
    refused = world.tutti("resume", run_dir, "--set", end)
    check(refused.returncode == 65, f"exit {refused.returncode}: {refused.stderr}")
    said = refused.stdout + refused.stderr
    check("no snapshot is whole" in said and "replay.save=false" in said, f"said: {said}")
    copy = os.path.join(world.path, "copy")
    shutil.copytree(run_dir, copy, symlinks=True)
    one = world.resume(run_dir, end, "replay.save=false")
    other = world.resume(copy, end, "replay.save=false")
    equal(one["weights_sha256"], other["weights_sha256"], "weights with an empty replay")
    # what an older snapshot refers to stays for as long as that can be gone on from
    process = world.start("resume", run_dir, "--output", "json", "--set", ENDLESS, "--set", OFTEN, "--set", "replay.save=false")
    for _ in range(2):
        s_await_newer(run_dir, newest_update(run_dir), process)
    wait_for(lambda: not s_files(run_dir), f"the end of files of a replay that is not saved any more: {s_files(run_dir)}")
    equal(world.stop(process, run_dir)["status"], "stopped", "status")


def test_not_saved(world):
    config = s_config(world)
    process, run_dir = world.start_run(config, OFTEN, "replay.save=false", ENDLESS, seed=10)
    s_await_newer(run_dir, newest_update(run_dir), process)
    world.kill_all(process)
    equal(s_files(run_dir), [], "files of the replay")
    end = f"stop.env_steps={(newest_update(run_dir) + 30) * BATCH}"
    done = world.tutti("resume", run_dir, "--set", end)
    equal(done.returncode, 0, done.stderr)
    check("the replay begins empty" in done.stdout + done.stderr, f"not said: {done.stdout}{done.stderr}")


def test_no_room_at_the_end(world):
    """The weights are there all the same, and what could be gone on from still can be: the end of the life before."""
    if os.geteuid() != 0 or not shutil.which("unshare") or \
            subprocess.run(["unshare", "-m", "true"], capture_output=True, check=False).returncode != 0:
        print("        needs root and a mount namespace: left out", flush=True)
        return
    run_dir = os.path.join(world.path, "m", "run")
    script = ('mkdir m && mount -t tmpfs -o size=64m tmpfs m && "$0" run "$1" --run-dir m/run --set stop.env_steps=3k && '
              'head -c 52M /dev/zero > m/others && for steps in 4k 5k; do "$0" resume m/run --set stop.env_steps=$steps && '
              '"$0" eval m/run -n 2 || exit 1; done; "$0" run "$1" --quiet --run-dir m/other --set stop.env_steps=2k && '
              '"$0" resume m/other --quiet --set stop.env_steps=3k && cat m/other/logs/coordinator-0.log && rm m/others && "$0" resume m/run --output json --set stop.env_steps=6k')
    done = subprocess.run(["unshare", "-m", "sh", "-c", script, TUTTI, s_config(world)], env=world.env, cwd=world.path, capture_output=True,
                          text=True, timeout=DEADLINE, stdin=subprocess.DEVNULL, check=False)
    said = done.stdout + done.stderr
    equal(done.returncode, 0, f"exit code; {said}")
    for steps_ in (4000, 5000):
        check(f"final.safetensors  CartPole-v1, version {steps_ // BATCH}\n" in said, f"no evaluation after {steps_} steps: {said}")
    equal(said.count("final.safetensors has the weights alone, and no run goes on from it: "), 4, f"how often that was said in {said}")
    check("there is no snapshot to go on from: the run begins anew" in said, f"not said of another run without a snapshot: {said}")
    began = json.loads(done.stdout.splitlines()[-1])["restored_from"]
    equal((began["updates"], began["passed_over"]), (3000 // BATCH, []), "where the last life began")
    check(not os.path.exists(run_dir), "it is outside its mount")


main(test_killed_lag_0, test_killed_lag_1, test_killed_uniform, test_killed_two_learners, test_interrupted, test_leader_killed,
     test_disk_is_bounded, test_newest_damaged, test_all_damaged, test_not_saved, test_no_room_at_the_end)
