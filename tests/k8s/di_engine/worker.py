#!/usr/bin/env python3
"""A DIJob's collector or learner as far as its coordinator's connection goes: DI-engine's own Slave. worker.py collector|learner [HOST]"""
import logging
import os
import signal
import sys
import threading

import ding_parts

parts = ding_parts.load()


class Worker(parts.Slave):
    def _process_task(self, task):
        if task["name"] == "resource":
            return {"gpu": 1, "cpu": 20}
        raise ValueError(task)


def main():
    logging.getLogger("werkzeug").disabled = True
    role = sys.argv[1]
    host = sys.argv[2] if len(sys.argv) > 2 else "0.0.0.0"
    worker = Worker(host, int(os.environ[f"{role.upper()}_PORT"]))
    worker.start()
    signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
    print("serving", flush=True)
    threading.Event().wait()


if __name__ == "__main__":
    main()
