#!/usr/bin/env python3
"""A DIJob's coordinator: DI-engine's own CommCoordinator asks the operator for replicas and connects to them.

  coordinator.py COLLECTORS LEARNERS

One JSON object a line says what it sees: {"collectors": [...], "learners": [...], "space": N}, whenever that changes. SIGTERM
ends it with 0. While there is /shared/impatient-coordinator, a replica that does not answer is tried for a second before it is
reported.
"""
import json
import logging
import os
import signal
import sys
import time

import ding_parts

parts = ding_parts.load()
from easydict import EasyDict  # noqa: E402  (an import of DI-engine's own)


def main():
    collectors, learners = int(sys.argv[1]), int(sys.argv[2])
    logging.basicConfig(stream=sys.stderr, level=logging.INFO)
    logging.getLogger("werkzeug").disabled = True
    space = {"collectors": 0}
    cfg = EasyDict(
        host="0.0.0.0", port=int(os.environ["COORDINATOR_PORT"]), collector={}, learner={},
        operator_server=dict(
            init_replicas_request=dict(collectors={"replicas": collectors}, learners={"replicas": learners, "gpus": "0"}),
            collector_target_num=collectors, learner_target_num=learners))
    callbacks = {
        "deal_with_increase_collector": lambda: space.update(collectors=space["collectors"] + 1),
        "deal_with_decrease_collector": lambda: space.update(collectors=space["collectors"] - 1),
    }
    coordinator = parts.CommCoordinator(cfg, callbacks, logging.getLogger("coordinator"))
    signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
    coordinator.start()
    patience_s, said = coordinator._max_retry_second, None
    while True:
        coordinator._max_retry_second = 1 if os.path.exists("/shared/impatient-coordinator") else patience_s
        seen = {
            "collectors": sorted(coordinator._connection_collector),
            "learners": sorted(coordinator._connection_learner),
            "space": space["collectors"],
        }
        if seen != said:
            sys.stdout.write(json.dumps(seen) + "\n")  # in one piece: other threads write, too
            sys.stdout.flush()
            said = seen
        time.sleep(0.1)


if __name__ == "__main__":
    main()
