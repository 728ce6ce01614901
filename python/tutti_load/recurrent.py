"""The layers of network.rnn, which remember: modules of PyTorch, a step at a time."""

import torch

KINDS = {"lstm": torch.nn.LSTM, "gru": torch.nn.GRU}
READERS = ("", "actor", "critic")  # who has one of its own; "": all read the same
NAMES = tuple(f"{reader}_{kind}".lstrip("_") for reader in READERS for kind in KINDS)  # in the order of what is carried


def module(name, own):
    """own: the file's arrays of that tower."""
    units, inputs = own["weight_hh_l0"].shape[1], own["weight_ih_l0"].shape[1]
    return KINDS[name.split("_")[-1]](inputs, units)


def reader(name):
    return name.rpartition("_")[0]


def size(tower):
    """Numbers that it carries: h, and of an LSTM c."""
    return tower.hidden_size * (2 if isinstance(tower, torch.nn.LSTM) else 1)


def step(tower, x, before):
    """What it gives for [rows][inputs], and what it carries on, as `before` is: [rows][size]."""
    carried = [part.contiguous() for part in before.unsqueeze(0).split(tower.hidden_size, 2)]
    out, after = tower(x.unsqueeze(0), tuple(carried) if len(carried) > 1 else carried[0])
    return out[0], torch.cat(after, 2)[0] if isinstance(after, tuple) else after[0]
