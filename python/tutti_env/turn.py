"""Whose turn it is: rounds, ordered and answered by counters in the memory that the worker shares with its collector (collector/gym/turn.h, rows.h),
without a system call where both are awake.

Who waits looks for a moment: to be woken costs more than the steps of many an env. Whoever else wants the core gets it meanwhile. Then it says
that it sleeps, looks once more, and waits for a byte, which the other one writes who finds it asleep. Between saying and looking, and between
counting and asking who sleeps, a fence must stand, or the two could miss each other: sched_yield is one, in the kernel, and there is no cheaper
one in Python.
"""

import os
import time

WAKE = b"w"  # there is something to be looked at; collector/gym/worker.c
IN_ORDER = os.uname().machine in ("x86_64", "i686")  # there, what is written first is seen first


class Turn:
    def __init__(self, socket, memory, spec):
        post = memory[spec["post"]:spec["post"] + 24].cast("I")  # gym_post_t
        self.asked, self.done, self.sleeps, self.awaited = post[0:2], post[2:4], post[4:5], post[5:6]
        self.socket, self.spin_ns, self.last = socket, spec["spin_us"] * 1000, 1
        self.come = memory[spec["bell"]:spec["bell"] + 4].cast("I")  # gym_bell_t; 1: the collector may wait for this core
        self.give_way = os.sched_yield

    def _look(self):
        """The half of which a round is ordered, the one that was not played last where both are; None: neither is for so long."""
        asked, done, first, second = self.asked, self.done, 1 - self.last, self.last
        until = time.monotonic_ns() + self.spin_ns
        while asked[first] == done[first]:
            if asked[second] != done[second]:
                return second
            if time.monotonic_ns() >= until:
                return None
            os.sched_yield()
        return first

    def _sleep(self):
        """The byte that ends it."""
        self.sleeps[0] = 1
        os.sched_yield()
        byte = WAKE if self.asked != self.done else os.read(self.socket, 1)
        self.sleeps[0] = 0
        return byte

    def wait(self):
        """The half to be played; or a byte that came over the socket, b"" = nobody is there any more."""
        while True:
            half = self._look()
            if half is not None:
                self.last = half
                if not IN_ORDER:
                    os.sched_yield()
                return half
            byte = self._sleep()
            if byte != WAKE:
                return byte

    def answer(self, half):
        """It has been played."""
        if not IN_ORDER:
            os.sched_yield()
        self.done[half] = self.asked[half]
        self.come[0] = 1
        os.sched_yield()
        if self.awaited[0]:
            self.awaited[0] = 0
            os.write(self.socket, WAKE)
