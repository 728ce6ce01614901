#!/usr/bin/env python3
"""Not a test: has the programs of the tests' Kubernetes built where that can be done, before the tests that need them."""

import os
import shutil
import subprocess
import sys

sys.dont_write_bytecode = True
import cluster

if not cluster.programs():
    if os.geteuid() != 0:
        print("SKIP: a cluster of its own needs Linux and root")
        sys.exit(77)
    if not shutil.which("go"):
        print("SKIP: no Go compiler (tools/install-deps --ci)")
        sys.exit(77)
    sys.exit(subprocess.run([os.path.join(os.path.dirname(cluster.__file__), "cluster", "build")], check=False).returncode)
