#!/usr/bin/env python3
"""The simulated card finds who breaks its rules: each case of misuse.cu is one, and "fine", "event", "event-gone" and "graph" are none."""

import os
import signal
import subprocess
import unittest

PROGRAM = os.path.join(os.environ["TT_BUILD_DIR"], "tests", "simt", "simt_misuse")
SUM = "2016\n"


def run(case, **environment):
    return subprocess.run([PROGRAM, case], capture_output=True, text=True, timeout=60, env={**os.environ, **environment})


class Misuse(unittest.TestCase):
    def aborts(self, case, *words):
        ended = run(case)
        self.assertEqual(ended.returncode, -signal.SIGABRT, ended)
        for word in ("simt: ",) + words:
            self.assertIn(word, ended.stderr)

    def test_who_breaks_no_rule_gets_the_sum(self):
        for schedule in ("forward", "reverse", "random:1", "random:2"):
            for streams in ("lazy", "eager"):
                for case in ("fine", "event", "event-gone", "graph"):
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
        self.aborts("copy-behind", "leaves its device memory")
        self.aborts("freed-twice", "was freed before")
        for case, ends in (("behind-the-end", signal.SIGBUS), ("after-its-end", signal.SIGBUS), ("host-reads", signal.SIGSEGV)):
            self.assertEqual(run(case).returncode, -ends, case)
        self.assertIn("invalid argument", run("pageable").stdout)

    def test_graphs(self):
        for case in ("graph-malloc", "graph-waits"):
            self.assertIn("operation failed due to a previous error during capture", run(case).stdout, case)
        self.assertEqual(run("graph-freed").returncode, -signal.SIGBUS)

    def test_failures_on_request(self):
        self.assertEqual(run("fine", TT_SIMT_FAIL="malloc:1").stdout, "out of memory\n")
        self.assertEqual(run("fine", TT_SIMT_MEMORY="100").stdout, "out of memory\n")
        for case, what in (("fine", "launch:1"), ("fine", "lost:2"), ("graph", "graph:2")):
            self.assertIn("unspecified launch failure", run(case, TT_SIMT_FAIL=what).stdout, what)


if __name__ == "__main__":
    unittest.main(verbosity=2)
