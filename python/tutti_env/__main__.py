"""Started as `python3 DIRECTORY/tutti_env`, with a socket as descriptor 3 and the memory of the rows as 4."""

import os
import sys

sys.path[0] = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))  # instead of the package's own folder

# What is beside us belongs to an installation: no compiled files there. What the env imports may leave its own.
writes, sys.dont_write_bytecode = sys.dont_write_bytecode, True
from tutti_env import worker  # noqa: E402

sys.dont_write_bytecode = writes
worker.main()
