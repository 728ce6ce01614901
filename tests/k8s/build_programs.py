#!/usr/bin/env python3
"""Not a test: has the programs of the tests' Kubernetes built where that can be done, before the tests that need them."""

import os
import shutil
import subprocess
import sys

sys.dont_write_bytecode = True
import cluster


def main(*which):
    """All without which there is no cluster, or one that is named beside them."""
    if os.geteuid() != 0:
        print("SKIP: a cluster of its own needs Linux and root")
        sys.exit(77)
    if not shutil.which("go"):
        print("SKIP: no Go compiler (tools/install-deps --ci)")
        sys.exit(77)
    build = os.path.join(os.path.dirname(cluster.__file__), "cluster", "build")
    sys.exit(subprocess.run([build, *which], check=False).returncode)


if __name__ == "__main__" and not cluster.programs():
    main()
