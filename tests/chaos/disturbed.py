"""disturbed - what the seeded tests share: runs at each lag that somebody disturbs, and how they end."""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "e2e"))
from rig import check, equal  # noqa: E402

COUNTED = ("env_steps", "updates")
SAME = (*COUNTED, "weights_sha256", "episodes", "return_mean")  # at lag 0 and 1


def check_like(summary, still, lag):
    """A run ended as one that was left alone: nothing lost, nothing twice, and at lag 0 and 1 with its bits."""
    equal(summary["status"], "succeeded", "status")
    for key in SAME if lag <= 1 else COUNTED:
        equal(summary[key], still[key], key)
    check(summary["lag_max"] <= lag, f"lag_max {summary['lag_max']}")
    equal(summary["transitions"]["trained"], still["transitions"]["trained"], "trained")
    for key in ("duplicated", "lost"):
        equal(summary["transitions"][key], 0, key)


def silent(run_dir):
    """Has somebody been away for a lease? That may have been the machine, once: what should not come of it is then asked of another run."""
    with open(os.path.join(run_dir, "logs", "coordinator-0.log"), encoding="utf-8") as file:
        return "not a word for" in file.read()


def at_lags(play):
    """test_lag_0 and test_lag_1, with CHAOS_ALL test_lag_3 too: each is play(world, lag). The soak has lag 3, which promises no bits;
    tests/e2e/lag.py has its short form."""
    def of(lag):
        def test(world):
            play(world, lag)
        test.__name__ = f"test_lag_{lag}"
        return test
    return [of(lag) for lag in (0, 1, *([3] if os.environ.get("CHAOS_ALL") else []))]


def tests_of_lags(disturb, sets, seed, runs):
    """Of each lag so many runs, each of them disturb(world, seed, lag, still). sets(lag): the settings of all of them."""
    def play(world, lag):
        still = world.train(world.config(), *sets(lag), seed=7)
        for run in range(runs):
            disturb(world, seed + run, lag, still)
    return at_lags(play)
