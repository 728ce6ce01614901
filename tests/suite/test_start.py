#!/usr/bin/env python3
"""What every start pays for, whatever is done: memory that each thread gets, and that is cleared before it begins."""

import os
import re
import subprocess
import unittest

EACH_THREAD = 65536  # bytes; a run starts some twenty threads before its first step, and each byte of it is written for each


class Start(unittest.TestCase):
    def test_a_thread_is_given_little_memory(self):
        headers = subprocess.run(["readelf", "-lW", os.environ["TUTTI"]], capture_output=True, text=True, check=True).stdout
        segment = re.search(r"^\s*TLS(?:\s+0x[0-9a-f]+){4}\s+(0x[0-9a-f]+)", headers, re.MULTILINE)
        self.assertIsNotNone(segment, headers)
        self.assertLessEqual(int(segment.group(1), 16), EACH_THREAD, "a large _Thread_local variable?")


if __name__ == "__main__":
    unittest.main(verbosity=2)
