#!/usr/bin/env python3
"""A DIJob's collector or learner as far as its coordinator's connection goes: DI-engine's own Slave.

  worker.py collector|learner [HOST]

The one that finds and removes /shared/deaf never serves.
"""
import contextlib
import logging
import os
import sys
import threading

import ding_parts

parts = ding_parts.load()


class Worker(parts.Slave):
    def _process_task(self, task):
        if task["name"] == "resource":
            return {"gpu": 1, "cpu": 20}
        raise ValueError(task)


def deaf():
    with contextlib.suppress(FileNotFoundError):
        os.unlink("/shared/deaf")
        return True
    return False


def main():
    if deaf():
        threading.Event().wait()
    logging.getLogger("werkzeug").disabled = True
    role = sys.argv[1]
    host = sys.argv[2] if len(sys.argv) > 2 else "0.0.0.0"
    port = int(os.environ[f"{role.upper()}_PORT"])
    for gpu in range(int(os.environ.get("LOCAL_WORLD_SIZE", "1"))):  # a ddp learner has a process, and a port, a GPU
        Worker(host, port + gpu).start()
    print("serving", flush=True)
    threading.Event().wait()


if __name__ == "__main__":
    main()
