#!/bin/sh
# The event file, read by TensorBoard's own reader. TT_TEST_PYTHON: a python that has the package tensorboard (tools/test-venv).
python=${TT_TEST_PYTHON:-python3}
"$python" -c 'import tensorboard' 2>/dev/null || { echo "no tensorboard package in $python: skipped"; exit 77; }
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
TT_EVENTS_DIR=$dir "$TT_BUILD_DIR/tests/coordinator/test_coordinator_tensorboard" || exit 1
"$python" - "$dir" <<'PYTHON'
import sys
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

events = EventAccumulator(sys.argv[1])
events.Reload()
tags = events.Tags()["scalars"]
assert sorted(tags) == ["charts/SPS", "charts/episodic_length", "charts/episodic_return", "losses/policy_loss"], tags
returns = events.Scalars("charts/episodic_return")
assert [r.step for r in returns] == [1000 * i for i in range(1, 101)]
assert [r.value for r in returns] == [float(i) for i in range(1, 101)]
assert [r.wall_time for r in returns] == [1700000000.0 + i for i in range(1, 101)]
losses = events.Scalars("losses/policy_loss")
assert all(abs(r.value - 1 / i) < 1e-7 for i, r in enumerate(losses, 1))
print(len(returns), "events,", len(tags), "names")
PYTHON
