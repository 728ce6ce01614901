#!/usr/bin/env python3
"""Rounds, as workers see them (tutti_env/turn.py): some processes play, each at its own pace, and this one orders as collector/gym does, by the
same words in memory. Whoever waits sleeps until a byte comes, without a net: an order or an answer that is missed ends the test."""

import mmap
import os
import random
import select
import signal
import socket
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(1, os.path.join(os.environ["TT_SOURCE_DIR"], "python"))
from tutti_env import turn  # noqa: E402

LINE, WORKERS, LOST_S = 64, 3, 30
ASKED, DONE, WORKER_SLEEPS, COLLECTOR_SLEEPS = 0, 2, 4, 5


def check(holds, what):
    if not holds:
        sys.exit(f"FAILED: {what}")


def idle(rng):
    """Nothing, a moment, or longer than anybody stays awake for."""
    until = time.monotonic() + rng.choice([0, 0, 0, 0, 0.00001, 0.0001, 0.0006])
    while time.monotonic() < until:
        pass


class Slow:
    """A clock that is read just before somebody goes to sleep, and takes its time for that."""

    def __init__(self, rng):
        self.rng = rng

    def monotonic_ns(self):
        idle(self.rng)
        return time.monotonic_ns()


def work(ours, memory, number, spin_us):
    """A worker, until nobody is there any more; returns what it has played."""
    rng, played = random.Random(number), []
    turn.time = Slow(rng)
    mine = turn.Turn(ours.fileno(), memory, {"post": LINE * (1 + number), "bell": 0, "spin_us": spin_us})
    while True:
        half = mine.wait()
        if not isinstance(half, int):
            return half, played
        idle(rng)
        played.append(half)
        mine.answer(half)


def worker(ours, memory, number, spin_us, rounds):
    last, played = work(ours, memory, number, spin_us)
    os._exit(0 if last == b"s" and played.count(0) == played.count(1) == rounds // 2 else 1)


class Side:
    """The collector's, of one worker."""

    all = []

    def __init__(self, memory, number, spin_us, rounds):
        self.all.append(self)
        self.post = memory[LINE * (1 + number):LINE * (2 + number)].cast("I")
        self.socket, its = socket.socketpair()
        self.left, self.plays = [rounds // 2, rounds // 2], [False, False]
        self.pid = os.fork()
        if self.pid == 0:
            for side in self.all:
                side.socket.close()
            try:
                worker(its, memory, number, spin_us, rounds)
            finally:
                os._exit(2)
        its.close()

    def ask(self, half):
        self.plays[half] = True
        self.left[half] -= 1
        self.post[ASKED + half] += 1
        os.sched_yield()
        if self.post[WORKER_SLEEPS]:
            self.post[WORKER_SLEEPS] = 0
            self.socket.send(turn.WAKE)

    def is_over(self, half):
        return self.plays[half] and self.post[DONE + half] == self.post[ASKED + half]

    def go_on(self):
        """True: something was over, or begins."""
        moved = False
        for half in (0, 1):
            if self.is_over(half):
                self.plays[half], moved = False, True
            if not self.plays[half] and self.left[half]:
                self.ask(half)
                moved = True
        return moved


def sleep(sides):
    """Until a byte comes of one who plays."""
    playing = [side for side in sides if any(side.plays)]
    for side in playing:
        side.post[COLLECTOR_SLEEPS] = 1
    os.sched_yield()
    if not any(side.is_over(half) for side in playing for half in (0, 1)):
        heard, _, _ = select.select([side.socket for side in playing], [], [], LOST_S)
        check(heard, f"nothing came within {LOST_S} s: {[list(side.post[:6]) for side in sides]}")
        for each in heard:
            check(each.recv(100).strip(turn.WAKE) == b"", "a worker ended or said something else")
    for side in playing:
        side.post[COLLECTOR_SLEEPS] = 0


def play(spin_us, rounds):
    memory = memoryview(mmap.mmap(-1, LINE * (1 + WORKERS)))
    sides = [Side(memory, number, spin_us, rounds) for number in range(WORKERS)]
    rng = random.Random(99)
    while any(any(side.plays) or any(side.left) for side in sides):
        memory[0] = 0
        moved = [side.go_on() for side in sides]
        idle(rng)
        if not any(moved):
            sleep(sides)
    Side.all.clear()
    for side in sides:
        side.socket.send(b"s")
        _, status = os.waitpid(side.pid, 0)
        check(status == 0, f"a worker with spin_us {spin_us} ended with {status}")
    print(f"ok      spin_us {spin_us}: {rounds} rounds of each of {WORKERS}", flush=True)


def test_halves_take_turns():
    """Where both are ordered, that which was not played last is."""
    memory = memoryview(mmap.mmap(-1, LINE * 2))
    post = memory[LINE:2 * LINE].cast("I")
    ours, its = socket.socketpair()
    mine = turn.Turn(its.fileno(), memory, {"post": LINE, "bell": 0, "spin_us": 100})
    post[ASKED] = post[ASKED + 1] = 1
    played = []
    for _ in range(6):
        half = mine.wait()
        mine.answer(half)
        post[ASKED + half] += 1
        played.append(half)
    check(played == [0, 1] * 3, f"played {played}")
    ours.close()
    post[ASKED], post[ASKED + 1] = post[DONE], post[DONE + 1]
    check(mine.wait() == b"", "the end of the socket was not said")
    print("ok      halves take turns", flush=True)


test_halves_take_turns()
try:
    play(300, 3000)
    play(0, 3000)
finally:
    for left in Side.all:
        os.kill(left.pid, signal.SIGKILL)
