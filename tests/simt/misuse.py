#!/usr/bin/env python3
"""The simulated card finds who breaks its rules: each case of misuse.cu is one, and those of KEEP are none.

Under a sanitizer it finds more: what another order would have shown (ThreadSanitizer), what stays in the memory that it is next to
(AddressSanitizer)."""

import os
import signal
import subprocess
import unittest

PROGRAM = os.path.join(os.environ["TT_BUILD_DIR"], "tests", "simt", "simt_misuse")
SUM = "2016\n"
KEEP = ("fine", "event", "event-gone", "graph", "warp")  # the rules, all of them
SANITIZE = os.environ.get("TT_SANITIZE", "")
ORDERS = ("forward", "reverse", "random:1", "random:2", "random:3")

# Signals end the program as they would without a sanitizer, and nobody waits for threads at its end: there is one.
QUIET = "handle_segv=0:handle_sigbus=0:handle_abort=0"
OPTIONS = {"ASAN_OPTIONS": QUIET, "TSAN_OPTIONS": QUIET + ":atexit_sleep_ms=0"}


def run(case, **environment):
    options = {name: f"{os.environ.get(name, '')}:{value}" for name, value in OPTIONS.items()}
    return subprocess.run([PROGRAM, case], capture_output=True, text=True, timeout=60, env={**os.environ, **options, **environment})


class Misuse(unittest.TestCase):
    def aborts(self, case, *words):
        ended = run(case)
        self.assertEqual(ended.returncode, -signal.SIGABRT, ended)
        for word in ("simt: ",) + words:
            self.assertIn(word, ended.stderr)

    def test_who_breaks_no_rule_gets_the_sum(self):
        for schedule in ORDERS:
            for streams in ("lazy", "eager"):
                for case in KEEP:
                    ended = run(case, TT_SIMT_SCHEDULE=schedule, TT_SIMT_STREAMS=streams)
                    self.assertEqual((ended.returncode, ended.stdout), (0, SUM), (schedule, streams, case, ended.stderr))

    def test_a_missing_barrier_changes_the_sum(self):
        for schedule in ("forward", "reverse"):
            self.assertNotEqual(run("no-barrier", TT_SIMT_SCHEDULE=schedule).stdout, SUM, schedule)

    def test_a_missing_event_is_seen_by_lazy_streams(self):
        self.assertNotEqual(run("no-event").stdout, SUM)
        self.assertEqual(run("no-event", TT_SIMT_STREAMS="eager").stdout, SUM, "which is why they are lazy")

    def test_barriers(self):
        self.aborts("leave-early", "leave_early", "misuse.cu:", "thread 3 has ended without it")
        self.aborts("two-barriers", "two_barriers", "stands at the barrier of")

    def test_shuffles(self):
        self.aborts("absent-lane", "absent_lane", "for lane 7, which is not there")

    def test_memory(self):
        self.aborts("too-much-shared", "262144 bytes of shared memory")
        if "address" not in SANITIZE:  # which ends before the block does
            self.aborts("beside-an-array", "beside_an_array", "stored behind the shared array of", "misuse.cu:")
            self.aborts("behind-the-launch", "behind_the_launch", "stored behind the launch's shared memory")
        self.aborts("copy-behind", "leaves its device memory")
        self.aborts("freed-twice", "was freed before")
        for case, ends in (("behind-the-end", signal.SIGBUS), ("after-its-end", signal.SIGBUS), ("host-reads", signal.SIGSEGV),
                           ("host-writes", signal.SIGSEGV)):
            self.assertEqual(run(case).returncode, -ends, case)
        self.assertIn("invalid argument", run("pageable").stdout)

    def test_what_nobody_has_written_is_no_number(self):
        for where in range(3):
            self.assertEqual(run(f"unwritten-{where}").stdout, "1\n", where)

    def test_shared_memory_of_a_launch(self):
        self.assertIn("no error", run("launch-asked").stdout)
        for case in ("launch-too-much", "launch-more-than-asked", "launch-far-too-much"):
            self.assertIn("invalid argument", run(case).stdout, case)

    def test_graphs(self):
        for case in ("graph-malloc", "graph-waits"):
            self.assertIn("operation failed due to a previous error during capture", run(case).stdout, case)
        self.assertEqual(run("graph-freed").returncode, -signal.SIGBUS)

    def test_failures_on_request(self):
        self.assertEqual(run("fine", TT_SIMT_FAIL="malloc:1").stdout, "out of memory\n")
        self.assertEqual(run("fine", TT_SIMT_MEMORY="100").stdout, "out of memory\n")
        for case, what in (("fine", "launch:1"), ("fine", "lost:2"), ("graph", "graph:2")):
            self.assertIn("unspecified launch failure", run(case, TT_SIMT_FAIL=what).stdout, what)
        self.assertIn("no kernel image is available", run("fine", TT_SIMT_FAIL="image:1").stdout)


@unittest.skipUnless("thread" in SANITIZE, "is ThreadSanitizer's")
class Races(unittest.TestCase):
    """Each case has an order of threads and streams in which its sum is right."""

    def reports(self, case, *words, schedule="forward", streams="eager"):
        ended = run(case, TT_SIMT_SCHEDULE=schedule, TT_SIMT_STREAMS=streams)
        self.assertEqual((ended.returncode, ended.stdout), (66, SUM), (case, schedule, ended.stderr))
        for word in ("ThreadSanitizer: data race",) + words:
            self.assertIn(word, ended.stderr)

    def test_a_missing_barrier_where_the_sum_is_right(self):
        self.reports("no-barrier-last", "sum_by_the_first", "misuse.cu:", schedule="reverse")

    def test_an_exchange_between_lanes_orders_no_memory(self):
        for schedule in ORDERS:
            self.reports("no-warp", "sum_of_neighbours", schedule=schedule)

    def test_neighbouring_blocks(self):
        self.reports("in-turn", "sum_in_turn")

    def test_a_missing_event_where_streams_are_eager(self):
        self.reports("no-event", "memmove")

    def test_a_host_that_does_not_wait(self):
        for case in ("early-write", "early-read"):
            self.reports(case, "memmove", "s_host_is_early")


@unittest.skipUnless("address" in SANITIZE, "is AddressSanitizer's")
class Overruns(unittest.TestCase):
    def test_memory_of_the_block_and_of_the_card(self):
        for case, kernel in (("beside-an-array",) * 2, ("behind-the-launch",) * 2, ("beside-the-end", "write_at")):
            ended = run(case)
            self.assertNotEqual(ended.returncode, 0, case)
            self.assertIn("AddressSanitizer: use-after-poison", ended.stderr)
            self.assertIn(kernel.replace("-", "_"), ended.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
