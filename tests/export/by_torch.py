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

PAGES = {"cartpole-ppo": "import tutti_load  #", "cartpole-novel-ppo-lstm": "import tutti_load\n"}


def pair(policy, found):
    """What was asked for, and the state for the next step, None of a policy that carries none."""
    return found if policy.state_size else (found, None)


def asked(policy, observation, parts, mask=None, greedy=True):
    """Of all rows: heads, values (of a policy without a critic the heads once more), states that are carried on, and actions, an array
    each part."""
    state, found = None, []
    for *values, allowed in against.turns([*observation, numpy.zeros(len(observation[0])) if mask is None else mask], policy.state_size):
        given, allowed = spaces.build(policy.obs_space, iter(values)), None if mask is None else allowed
        head, after = pair(policy, policy(given, state))
        actions, same = pair(policy, policy.act(given, greedy, allowed, state))
        assert after is None or (torch.equal(after, same) and after.shape == (len(values[0]), policy.state_size)), after.shape
        value = policy.state_value(given, state) if hasattr(policy, "critic") else head
        found.append([head, value, head[:, :0] if after is None else after, *(spaces.pick(actions, part.path) for part in parts)])
        state = after
    head, value, carried, *actions = against.in_order(found)
    return head, value, carried, actions


def one_of(policy, observation):
    """Without a batch it is the same policy; without a state an episode begins."""
    zeros = policy.initial_state(len(observation[0]))
    alone, after = pair(policy, policy.act(spaces.build(policy.obs_space, (value[7] for value in observation)), state=policy.initial_state()))
    batch, all_after = pair(policy, policy.act(spaces.build(policy.obs_space, iter(observation)), state=zeros))
    without, _ = pair(policy, policy.act(spaces.build(policy.obs_space, iter(observation))))
    for part in spaces.leaves(policy.action_space, "action"):
        assert tuple(spaces.pick(alone, part.path).shape) == part.shape, part.name
        assert torch.allclose(spaces.pick(alone, part.path), spaces.pick(batch, part.path)[7], atol=1e-4), part.name
        assert torch.equal(spaces.pick(without, part.path), spaces.pick(batch, part.path)), part.name
    assert after is None or (after.shape == (policy.state_size,) and torch.allclose(after, all_after[7], atol=1e-5))


def check_drawn(policy, observation, parts, mask, best):
    """Not always the most probable action, and never one that is not allowed."""
    if not hasattr(policy, "actor") or policy._means:
        try:
            asked(policy, observation, parts, greedy=False)
        except ValueError:
            return
        sys.exit("a policy of values, or of means alone, has drawn an action")
    drawn = asked(policy, observation, parts, mask, greedy=False)[3]
    pairs = [(ours.reshape(own.shape), own) for ours, own in zip(drawn, best)]
    if all((ours == own).all() for ours, own in pairs):
        sys.exit("what is drawn is always the most probable")
    bit = 0
    for part, (ours, _) in zip(parts, pairs):
        starts, choices = (part.start, part.n) if part.n else ([0] * part.elements, [2] * part.elements)
        for i, (n, first) in enumerate(zip(choices, starts) if mask is not None and ours.dtype.kind == "i" else ()):
            assert mask[numpy.arange(len(mask)), bit + ours[:, i] - first].all(), part.name
            bit += n


def check(run, folder):
    policy, rng = tutti_load.policy(run), numpy.random.default_rng(2)
    path, name = os.path.join(run, "checkpoints", "final.safetensors"), os.path.basename(run)
    parts, leaves = spaces.leaves(policy.action_space, "action"), spaces.leaves(policy.obs_space, "obs")
    assert bool(policy.state_size) == ("  rnn: none\n" not in against.config(path)[0]), name
    observation = list(against.observed(leaves, rng, path))
    flat, valued = against.flattened(leaves, observation), hasattr(policy, "critic")
    head, value, carried, actions = against.binary(path, flat, parts, valued, policy.state_size)
    our_head, our_value, our_carried, _ = asked(policy, observation, parts)
    worst = max(against.near(f"{name}: head", our_head, head), against.near(f"{name}: state", our_carried, carried))
    if valued:
        worst = max(worst, against.near(f"{name}: value", our_value, value))
    tries = [(None, actions)]
    if tutti_load.Checkpoint(path).setting("space", "mask") == "true":
        mask, file = against.masks(parts, len(flat), rng, folder)
        tries.append((mask, against.binary(path, flat, parts, valued, policy.state_size, file)[3]))
    for mask, wanted in tries:
        for part, ours, own in zip(parts, asked(policy, observation, parts, mask)[3], wanted):
            against.same(f"{name}: {part.name}", ours, own, part, head)
    for critic in (getattr(policy, name) for name in ("q1", "q2") if hasattr(policy, name)):
        numbers = sum(part.elements for part in parts)  # SAC's and TD3's: the observation and an action, side by side
        assert critic(torch.zeros(3, policy.actor[0].in_features + numbers)).shape == (3, 1), name
    one_of(policy, observation)
    check_drawn(policy, observation, parts, *tries[-1])
    print(f"torch {name}: {worst:.1e}{', masked' if len(tries) > 1 else ''}{', recurrent' if policy.state_size else ''}")
    return len(tries) > 1


def main():
    print(f"torch {torch.__version__}")
    torch.manual_seed(1)
    with tempfile.TemporaryDirectory() as folder:
        for run in sys.argv[1:]:
            if os.path.basename(run) in PAGES:
                against.page(PAGES[os.path.basename(run)], run, folder)
        masked = [check(run, folder) for run in sys.argv[1:]]
    if any("zoo" in run for run in sys.argv) and not any(masked):
        sys.exit("no policy with a mask was tried")


if __name__ == "__main__":
    main()
