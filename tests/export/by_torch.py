#!/usr/bin/env python3
"""RUN...: tutti_load's policies against the binary. For policies.py."""

import os
import sys
import tempfile

sys.dont_write_bytecode = True
import numpy
import torch
import against

sys.path.insert(0, os.path.join(against.SOURCE, "python"))
import tutti_load
from tutti_load import spaces


def one_of(policy, observation, actions):
    """Without a batch it is the same policy."""
    single = policy.act(spaces.build(policy.obs_space, (value[7] for value in observation)))
    for part, batch in zip(spaces.leaves(policy.action_space, "action"), actions):
        assert tuple(spaces.pick(single, part.path).shape) == part.shape, part.name
        assert torch.allclose(spaces.pick(single, part.path), spaces.pick(batch, part.path)[7], atol=1e-4), part.name


def check_drawn(policy, given, parts, mask, best):
    """Not always the most probable action, and never one that is not allowed."""
    if not hasattr(policy, "actor"):
        try:
            policy.act(given, greedy=False)
        except ValueError:
            return
        sys.exit("a policy of values has drawn an action")
    drawn = policy.act(given, greedy=False, mask=mask)
    pairs = [(numpy.asarray(spaces.pick(drawn, part.path)).reshape(own.shape), own) for part, own in zip(parts, best)]
    if all((ours == own).all() for ours, own in pairs):
        sys.exit("what is drawn is always the most probable")
    bit = 0
    for part, (ours, _) in zip(parts, pairs):
        starts, choices = (part.start, part.n) if part.n else ([0] * part.elements, [2] * part.elements)
        for i, (n, first) in enumerate(zip(choices, starts) if mask is not None and ours.dtype.kind == "i" else ()):
            assert mask[numpy.arange(against.ROWS), bit + ours[:, i] - first].all(), part.name
            bit += n


def check(run, folder):
    policy, rng = tutti_load.policy(run), numpy.random.default_rng(2)
    path, name = os.path.join(run, "checkpoints", "final.safetensors"), os.path.basename(run)
    parts, leaves = spaces.leaves(policy.action_space, "action"), spaces.leaves(policy.obs_space, "obs")
    observation = list(against.observed(leaves, rng, path))
    flat, valued = against.flattened(leaves, observation), hasattr(policy, "critic")
    given = spaces.build(policy.obs_space, iter(observation))
    head, value, actions = against.binary(path, flat, parts, valued)
    worst = against.near(f"{name}: head", policy(given), head)
    if valued:
        worst = max(worst, against.near(f"{name}: value", policy.state_value(given), value))
    tries = [(None, actions)]
    if tutti_load.Checkpoint(path).setting("space", "mask") == "true":
        mask, file = against.masks(parts, rng, folder)
        tries.append((mask, against.binary(path, flat, parts, valued, file)[2]))
    for mask, wanted in tries:
        ours = policy.act(given, mask=mask)
        for part, own in zip(parts, wanted):
            against.same(f"{name}: {part.name}", spaces.pick(ours, part.path), own, part, head)
    one_of(policy, observation, [policy.act(given)] * len(parts))
    check_drawn(policy, given, parts, *tries[-1])
    print(f"torch {name}: {worst:.1e}{', masked' if len(tries) > 1 else ''}")
    return len(tries) > 1


def main():
    print(f"torch {torch.__version__}")
    torch.manual_seed(1)
    with tempfile.TemporaryDirectory() as folder:
        for run in sys.argv[1:]:
            if os.path.basename(run) == "cartpole-ppo":
                against.page("import tutti_load", run, folder)
        masked = [check(run, folder) for run in sys.argv[1:]]
    if any("zoo" in run for run in sys.argv) and not any(masked):
        sys.exit("no policy with a mask was tried")


if __name__ == "__main__":
    main()
