"""Started as `python3 DIRECTORY/tutti_env`, with a socket as descriptor 3 and the memory of the rows as 4."""

import json
import os
import struct
import sys

OLDEST = (3, 8)
if sys.version_info[:2] < OLDEST:  # said in words that Python 2 has, too
    text = json.dumps({"status": "NOT_FOUND", "error": "%s is Python %d.%d, and environments of Gymnasium's need %d.%d at least: name another "
                       "interpreter by env.python or TT_PYTHON" % ((sys.executable,) + sys.version_info[:2] + OLDEST)}).encode()
    os.write(3, b"m" + struct.pack("<I", len(text)) + text)
    os._exit(1)

sys.path[0] = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))  # instead of the package's own folder

# What is beside us belongs to an installation: no compiled files there. What the env imports may leave its own.
writes, sys.dont_write_bytecode = sys.dont_write_bytecode, True
from tutti_env import worker  # noqa: E402

sys.dont_write_bytecode = writes
worker.main()
