#!/usr/bin/env python3
"""A DIJob's aggregator: DI-engine's own LearnerAggregator asks the operator for its learners, connects to them, and reports those
that cannot be reached.

One JSON object a line says whom it is connected to: {"learners": [...]}, whenever that changes. While there is
/shared/impatient-aggregator, a learner that does not answer is tried for a second before it is reported.
"""
import json
import logging
import os
import socket
import sys
import threading
import time

import ding_parts

parts = ding_parts.load()
from easydict import EasyDict  # noqa: E402  (an import of DI-engine's own)


def free_port():
    with socket.socket() as probe:
        probe.bind(("", 0))
        return probe.getsockname()[1]


def main():
    logging.basicConfig(stream=sys.stderr, level=logging.INFO)
    logging.getLogger("werkzeug").disabled = True
    slave = {"host": "0.0.0.0", "port": int(os.environ["AGGREGATOR_PORT"])}
    aggregator = parts.LearnerAggregator(EasyDict(slave=slave, master={"host": "0.0.0.0", "port": free_port()}, learner={}))
    patience_s, said = aggregator._max_retry_second, None
    starting = threading.Thread(target=aggregator.start, daemon=True)
    starting.start()
    while True:
        # its start() turns in a circle till its patience is over, long after it has what it waits for
        started = starting.is_alive() and getattr(aggregator, "_init_conn_flag", False)
        aggregator._max_retry_second = 1 if started or os.path.exists("/shared/impatient-aggregator") else patience_s
        seen = {"learners": sorted(aggregator._learner_connection)}
        if seen != said:
            sys.stdout.write(json.dumps(seen) + "\n")  # in one piece: other threads write, too
            sys.stdout.flush()
            said = seen
        time.sleep(0.1)


if __name__ == "__main__":
    main()
