#!/usr/bin/env python3
"""Roles that join by hand over tcp with the job's key: they take part at once, and the weights keep their bits; also when
their line to the coordinator is cut, or goes silent, for longer than a lease."""

import os
import select
import signal
import socket
import sys
import threading

sys.dont_write_bytecode = True
from rig import BATCH, ENDLESS, PATIENT, equal, main, newest_update, steps, wait_for


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


def test_the_line_to_the_coordinator(world):
    """A collector that nobody hears loses its envs after a lease, and has some again when it is heard; it ends when told to."""
    config = world.config()
    sets = ["net.lease_ms=1000", "net.beat_ms=100", "checkpoint.every_s=0.1"]
    process, run_dir = world.start_run(config, *sets, "coordinator.listen=tcp://127.0.0.1:0", ENDLESS, seed=3)
    world.await_steps(run_dir, 1, process)
    line = Line(s_endpoint(world, run_dir))
    role = world.start("collector", "--coordinator", line.endpoint, "--key", os.path.join(run_dir, "key"))
    wait_for(lambda: s_ready(world, run_dir, "collector") == 2, "two collectors in the roster")
    for mode in ("silent", "cut"):
        line.mode = mode
        wait_for(lambda: s_ready(world, run_dir, "collector") == 1, f"a roster without the one whose line is {mode}")
        status = world.await_steps(run_dir, 1, process)
        world.await_steps(run_dir, status["env_steps"] + BATCH, process)
        line.mode = "whole"  # soon: after ten leases it would give up
        wait_for(lambda: s_ready(world, run_dir, "collector") == 2, f"the one whose line was {mode}")
        equal(role.poll(), None, "its exit code meanwhile")
        status = world.await_steps(run_dir, 1, process)
        world.await_steps(run_dir, status["env_steps"] + steps(5_000), process)
    summary = world.stop(process, run_dir)
    world.check_same(summary, config, seed=3, what="with a line that was cut")
    equal(world.finish(role)[0], 0, "its exit code")
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
    members = (world.status(run_dir) or {}).get("members", [])
    return [member for member in members if member["index"] >= 10000]


def test_another_key_stays_outside(world):
    sets = [ENDLESS, "coordinator.listen=tcp://127.0.0.1:0"]
    process, run_dir = world.start_run(world.config(), *sets)
    other, other_dir = world.start_run(world.config(), *sets, name="other")
    world.await_steps(run_dir, 1, process)
    world.await_steps(other_dir, 1, other)
    s_join(world, "collector", run_dir, key=os.path.join(other_dir, "key"))
    s_join(world, "collector", other_dir)  # when this one is in, the first has had its time
    wait_for(lambda: s_by_hand(world, other_dir), "the one with the right key")
    equal(s_by_hand(world, run_dir), [], "members that showed another job's key")
    for at in (run_dir, other_dir):
        equal(world.tutti("stop", at).returncode, 0, "tutti stop")


main(test_a_learner_and_a_collector_join, test_a_replay_is_stored_from_elsewhere, test_the_line_to_the_coordinator, test_another_key_stays_outside)
