#!/usr/bin/env python3
"""Record what PyTorch makes of pictures that are padded with their edges and cropped, as tests/learner/test_shift.c reads it.

    python3 -m venv /tmp/venv && /tmp/venv/bin/pip install torch numpy safetensors
    /tmp/venv/bin/python tests/golden/torch/record_shift.py      # writes shift.safetensors

For each of the cases below: <case>.from and <case>.to, uint8 [rows][channels][height][width], and <case>.by, int32 [rows][2]: where a crop
begins, (y, x), less the pad. All corners are among them, and no shift at all."""
import os
import sys

import numpy as np
import torch
from safetensors.numpy import save_file

CASES = {"small": (3, 5, 7, 2), "wide": (1, 4, 11, 3), "drq": (4, 9, 9, 4), "far": (2, 4, 4, 3)}  # channels, height, width, pad


def shifted(picture, pad, y, x):
    """As DrQ has it: nn.ReplicationPad2d(pad), and a crop of the first size."""
    _, height, width = picture.shape
    padded = torch.nn.functional.pad(picture[None], (pad, pad, pad, pad), mode="replicate")[0]
    return padded[:, pad + y:pad + y + height, pad + x:pad + x + width]


def main():
    draws, out = np.random.default_rng(5), {}
    for name, (channels, height, width, pad) in CASES.items():
        by = [(0, 0), (-pad, -pad), (-pad, pad), (pad, -pad), (pad, pad), (0, pad), (-pad, 0), *draws.integers(-pad, pad + 1, (5, 2)).tolist()]
        pictures = draws.integers(0, 256, (len(by), channels, height, width)).astype(np.float32)
        made = [shifted(torch.from_numpy(picture), pad, y, x).numpy() for picture, (y, x) in zip(pictures, by)]
        out.update({f"{name}.from": pictures.astype(np.uint8), f"{name}.to": np.stack(made).astype(np.uint8), f"{name}.by": np.array(by, np.int32)})
    path = os.path.join(os.path.dirname(os.path.abspath(sys.argv[0])), "shift.safetensors")
    save_file(out, path, metadata={"torch": torch.__version__, "seed": "5", "script": "record_shift.py"})
    print(path, len(out), "arrays", os.path.getsize(path), "bytes")


main()
