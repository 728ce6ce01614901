#!/usr/bin/env python3
"""Promise 5: the same config and seed give the same weights, whatever the number of collectors, learners and threads and
whatever the processor's instructions."""

import sys

sys.dont_write_bytecode = True
from rig import BATCH, SANITIZED, check, equal, main, supported

LENGTH = (f"stop.env_steps={16 * BATCH}",) if SANITIZED else ()  # a wrong bit is wrong ever after; that none comes late says release
SHAPES = [(1, 1), (2, 2), (3, 4), (1, 3)]


def s_train(world, config, lag, seed, *sets, env=None):
    return world.train(config, f"lag={lag}", *LENGTH, *sets, seed=seed, env=env)


def s_matrix(world, lag):
    config = world.config()
    first = s_train(world, config, lag, 7)
    for collectors, learners in SHAPES[1:]:
        other = s_train(world, config, lag, 7, f"collector.replicas={collectors}", f"learner.replicas={learners}")
        for key in ("weights_sha256", "env_steps", "updates", "episodes", "return_mean"):
            equal(other[key], first[key], f"{key} with {collectors} collectors, {learners} learners, lag {lag}")
    two = s_train(world, config, lag, 7, "learner.threads=2")
    equal(two["weights_sha256"], first["weights_sha256"], f"weights with 2 threads, lag {lag}")
    equal(first["lag_max"], lag, "largest lag")
    for cpu, flag in (("portable", None), ("avx2", "avx2"), ("avx512", "avx512f")):
        if flag and not supported(flag) or SANITIZED and not flag:
            print(f"        no {cpu} here, or too slow: left out", flush=True)
            continue
        other = s_train(world, config, lag, 7, env={"TT_CPU": cpu})
        equal(other["weights_sha256"], first["weights_sha256"], f"weights with TT_CPU={cpu}, lag {lag}")
    check(s_train(world, config, lag, 8)["weights_sha256"] != first["weights_sha256"], "two seeds gave the same weights")


def test_lag_0(world):
    s_matrix(world, 0)


def test_lag_1(world):
    s_matrix(world, 1)


def test_shared_trunk(world):
    config = world.config()
    first = s_train(world, config, 1, 7, "network.shared=true")
    for collectors, learners in SHAPES[1:3]:
        other = s_train(world, config, 1, 7, "network.shared=true", f"collector.replicas={collectors}",
                        f"learner.replicas={learners}", "learner.threads=2")
        equal(other["weights_sha256"], first["weights_sha256"],
              f"weights of a shared trunk with {collectors} collectors, {learners} learners")
    check(s_train(world, config, 1, 7)["weights_sha256"] != first["weights_sha256"], "sharing a trunk changes nothing")


main(test_lag_0, test_lag_1, test_shared_trunk)
