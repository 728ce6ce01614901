#!/usr/bin/env python3
"""Not a test: has Helm built for the one that asks for it, while others run: two minutes of a core, once."""

import sys

sys.dont_write_bytecode = True
import build_programs
import cluster

if "helm" not in (cluster.programs() or {}):
    build_programs.main("helm")
