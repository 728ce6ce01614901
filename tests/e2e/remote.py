#!/usr/bin/env python3
"""Roles that join by hand over tcp with the job's key: they take part at once, and the weights keep their bits; also when
their line to the coordinator is cut, or goes silent, for longer than a lease."""

import os
import select
import signal
import socket
import sys
import threading
import time

sys.dont_write_bytecode = True
from rig import BATCH, ENDLESS, JOB, PATIENT, check, equal, main, newest_update, silent, steps, wait_for


LEASE_S = 1  # of the run whose line is cut


class Line(threading.Thread):
    """What stands between a role and its coordinator. mode: "whole"; "silent", connections stay and nothing comes through;
    "cut", they end and no new one lasts."""

    def __init__(self, endpoint):
        super().__init__(daemon=True)
        host, _, port = endpoint.removeprefix("tcp://").rpartition(":")
        self.to, self.mode, self.ends = (host, int(port)), "whole", {}
        self.door = socket.create_server(("127.0.0.1", 0))
        self.endpoint = f"tcp://127.0.0.1:{self.door.getsockname()[1]}"
        self.start()

    def close(self, end):
        for one in (end, self.ends.pop(end, None)):
            if one:
                self.ends.pop(one, None)
                one.close()

    def pass_on(self, end):
        try:
            data = end.recv(65536)
            self.ends[end].sendall(data)
        except OSError:
            data = b""
        if not data:
            self.close(end)

    def admit(self):
        near = self.door.accept()[0]
        far = socket.create_connection(self.to)
        self.ends.update({near: far, far: near})

    def run(self):
        while self.mode != "gone":
            heard = select.select([self.door, *(self.ends if self.mode == "whole" else ())], [], [], 0.02)[0]
            for end in heard:
                if end is self.door:
                    self.admit()
                elif end in self.ends:
                    self.pass_on(end)
            while self.mode in ("cut", "gone") and self.ends:
                self.close(next(iter(self.ends)))
        self.door.close()


def s_endpoint(world, run_dir):
    return wait_for(lambda: (world.status(run_dir) or {}).get("listen"), "the endpoint that the run listens on")


def s_join(world, role, run_dir, key=None):
    return world.start(role, "--coordinator", s_endpoint(world, run_dir), "--key", key or os.path.join(run_dir, "key"))


def s_ready(world, run_dir, role):
    return (world.status(run_dir) or {}).get("replicas", {}).get(role, {}).get("ready")


def test_a_learner_and_a_collector_join(world):
    config = world.config()
    listening = ["aggregator.replicas=1", "coordinator.listen=tcp://127.0.0.1:0"]
    process, run_dir = world.start_run(config, *listening, PATIENT, ENDLESS, seed=3)  # who joins waits for no lease: scale.py
    world.await_steps(run_dir, 1, process)
    roles = [s_join(world, "learner", run_dir), s_join(world, "collector", run_dir)]
    wait_for(lambda: s_ready(world, run_dir, "learner") == 2, "two learners in the roster")
    wait_for(lambda: s_ready(world, run_dir, "collector") == 2, "two collectors in the roster")
    status = world.await_steps(run_dir, 1, process)
    world.await_steps(run_dir, status["env_steps"] + steps(20_000), process)
    summary = world.stop(process, run_dir)
    world.check_same(summary, config, seed=3, what="with roles over tcp")
    for role in roles:
        equal(world.finish(role)[0], 0, "exit code of a role that joined")


def s_plays(world, run_dir, role):
    """Is it in the roster?"""
    return any(member["pid"] == role.pid and member["phase"] == "active" for member in world.look(run_dir)["members"])


def s_silences(run_dir, role):
    """How often it was away for a lease."""
    return sum(f"process {role.pid} " in line for line in silent(run_dir))


def s_more(world, process, run_dir, count):
    world.await_steps(run_dir, world.look(run_dir, process)["env_steps"] + count, process)


def s_comes_back(world, process, run_dir, line, role, mode):
    """A collector whose line is so for a while. False: it gave up, for the machine stood still, and so that was for ten leases."""
    wait_for(lambda: s_plays(world, run_dir, role), "the collector that joins")
    begun, line.mode = time.monotonic(), mode
    wait_for(lambda: not s_plays(world, run_dir, role), f"a roster without the one whose line is {mode}")
    s_more(world, process, run_dir, BATCH)
    line.mode = "whole"
    wait_for(lambda: role.poll() is not None or s_plays(world, run_dir, role), f"the one whose line was {mode}")
    if role.poll() is not None:
        away = time.monotonic() - begun
        check(away > 8 * LEASE_S, f"it ended with {role.poll()} after {away:.1f} s, and may give up after ten leases")
        return False
    s_more(world, process, run_dir, steps(5_000))
    return True


def test_the_line_to_the_coordinator(world):
    """A collector that nobody hears loses its envs after a lease, and has some again when it is heard; it ends when told to."""
    config = world.config()
    sets = [f"net.lease_ms={1000 * LEASE_S}", "net.beat_ms=100", "checkpoint.every_s=0.1"]
    process, run_dir = world.start_run(config, *sets, "coordinator.listen=tcp://127.0.0.1:0", ENDLESS, seed=3)
    world.await_steps(run_dir, 1, process)
    line = Line(s_endpoint(world, run_dir))

    def join():
        line.mode = "whole"
        return world.start("collector", "--coordinator", line.endpoint, "--key", os.path.join(run_dir, "key"))
    role = join()
    for mode in ("silent", "cut"):
        while not s_comes_back(world, process, run_dir, line, role, mode):
            role = join()
    before = s_silences(run_dir, role)
    wait_for(lambda: s_plays(world, run_dir, role), "the collector, also if it was held up meanwhile")
    summary = world.stop(process, run_dir)
    world.check_same(summary, config, seed=3, what="with a line that was cut")
    code = world.finish(role)[0]  # who is out again hears nothing of the end
    check(code == 0 or s_silences(run_dir, role) > before, f"its exit code is {code}, and it was heard all along")
    line.mode = "gone"
    line.join()


REPLAY = """\
env: CartPole-v1
num_envs: 8
num_steps: 32
algorithm: {name: dqn, learning_starts: 700, train_every: 32, epsilon_steps: 5000, target_every: 640}
replay: {capacity: 4000, prioritized: true, beta_steps: 8000}
network: {hidden: [32]}
learner: {shards: 4}
stop: {env_steps: 12k}
"""


def test_a_replay_is_stored_from_elsewhere(world):
    """A learner without the run directory leads, and then everything is gone: its snapshot has the replay, and is gone on from."""
    config = world.config(REPLAY)
    sets = ["aggregator.replicas=1", "coordinator.listen=tcp://127.0.0.1:0", "checkpoint.every_s=0.2", "collector.replicas=2"]
    process, run_dir = world.start_run(config, *sets, ENDLESS, seed=3)
    world.await_steps(run_dir, 1, process)
    s_join(world, "learner", run_dir)
    wait_for(lambda: s_ready(world, run_dir, "learner") == 2, "two learners in the roster")
    os.kill(world.replica("learner", 0), signal.SIGKILL)
    status = world.await_steps(run_dir, 1, process)
    folder = os.path.join(run_dir, "checkpoints")
    wait_for(lambda: newest_update(run_dir) * BATCH > status["env_steps"], "a snapshot of the one who leads now")
    world.kill_all(process)
    equal([name for name in os.listdir(folder) if name.startswith("replay-")], [], "files of the replay")
    end = f"stop.env_steps={(newest_update(run_dir) + 30) * BATCH}"
    resumed = world.resume(run_dir, end)
    still = world.train(config, end, seed=3)
    equal(resumed["weights_sha256"], still["weights_sha256"], "weights")


def s_by_hand(world, run_dir):
    """Members that nobody but we started: their numbers begin at 10000."""
    return [member for member in world.look(run_dir)["members"] if member["index"] >= 10000]


def test_another_key_stays_outside(world):
    """The two runs play slowly, and leave the cores to others for as long as the stranger asks."""
    slowly, sets = {"CATCH_QUICK": "0"}, [ENDLESS, "coordinator.listen=tcp://127.0.0.1:0"]
    config = world.config(JOB.replace("CartPole-v1", os.path.join(os.environ["TT_BUILD_DIR"], "tests", "collector", "plugins", "catch.so")))
    process, run_dir = world.start_run(config, *sets, env=slowly)
    other, other_dir = world.start_run(config, *sets, name="other", env=slowly)
    world.await_steps(run_dir, 1, process)
    world.await_steps(other_dir, 1, other)
    stranger = s_join(world, "collector", run_dir, key=os.path.join(other_dir, "key"))
    s_join(world, "collector", other_dir)
    wait_for(lambda: s_by_hand(world, other_dir), "the one with the right key")
    code, _, said = world.finish(stranger)  # it has asked for half a minute
    check(code != 0 and "no answer to HELLO" in said and "is this its key?" in said, f"exit code {code}: {said}")
    equal(s_by_hand(world, run_dir), [], "members that showed another job's key")
    with open(os.path.join(run_dir, "logs", "coordinator-0.log"), encoding="utf-8") as file:
        check("collector/10000" not in file.read(), "another job's key was let in")
    for at in (run_dir, other_dir):
        equal(world.tutti("stop", at).returncode, 0, "tutti stop")


main(test_a_learner_and_a_collector_join, test_a_replay_is_stored_from_elsewhere, test_the_line_to_the_coordinator, test_another_key_stays_outside)
