"""What both checks of policies.py share: random observations, and what the binary makes of them."""

import json
import os
import re
import subprocess
import sys

import numpy

SOURCE, BUILD = os.environ["TT_SOURCE_DIR"], os.environ["TT_BUILD_DIR"]
ACT = os.path.join(BUILD, "tests", "export", "act")
ROWS, NEAR = 500, 1e-5
LARGE = 10000  # numbers of an observation beyond which, as of stacked screens, there are STEPS rows: each is many products already
STEPS = 100  # rows of an episode, to a recurrent policy
NUMPY = {"multi_binary": "int8", "discrete": "int64", "multi_discrete": "int64"}  # as Gymnasium has them


def config(checkpoint):
    """The resolved config in its metadata, and the metadata."""
    with open(checkpoint, "rb") as file:
        said = json.loads(file.read(int.from_bytes(file.read(8), "little")))["__metadata__"]
    return said["config"], said


def page(first, run, folder):
    """What docs/guide/formats.md shows in Python, the block that begins like that, runs as it stands beside that run, the first of its
    name."""
    with open(os.path.join(SOURCE, "docs", "guide", "formats.md"), encoding="utf-8") as file:
        code = re.search(rf"```python\n({re.escape(first)}.*?)```", file.read(), re.DOTALL)[1]
    os.makedirs(os.path.join(folder, "runs"), exist_ok=True)
    os.symlink(run, os.path.join(folder, "runs", f"{os.path.basename(run)}-1"))
    before = os.getcwd()
    os.chdir(folder)
    names = {}
    exec(compile(code, "formats.md", "exec"), names)
    os.chdir(before)
    return names


def observed(leaves, rng, checkpoint):
    """A batch of what an env may show, leaf by leaf."""
    rows = STEPS if sum(leaf.elements for leaf in leaves) > LARGE else ROWS
    bytes_to = 1 + int(re.search(r"(?m)^  divisor: (\d+)$", config(checkpoint)[0])[1])
    for leaf in leaves:
        shape, kind = (rows, *leaf.shape), leaf.kind
        if leaf.n:
            numbers = numpy.stack([rng.integers(first, first + n, rows) for n, first in zip(leaf.n, leaf.start)], 1).reshape(shape)
        elif kind.startswith("float"):
            numbers = rng.normal(0, 1.5, shape)
        elif kind.startswith("int"):
            numbers = rng.integers(-5, 6, shape)
        else:
            numbers = rng.integers(bytes_to if kind == "uint8" else 2, size=shape)
        yield numbers.astype(NUMPY.get(kind, kind))


def flattened(leaves, values):
    """As gymnasium.spaces.flatten does it."""
    def one(leaf, value):
        value = value.reshape(len(value), -1)
        if not leaf.n:
            return value
        return numpy.concatenate([numpy.eye(n)[value[:, i] - first] for i, (n, first) in enumerate(zip(leaf.n, leaf.start))], 1)
    return numpy.concatenate([one(leaf, value) for leaf, value in zip(leaves, values)], 1).astype(numpy.float32)


def masks(parts, rows, rng, folder):
    """For the discrete elements of an action: at least one choice of each is allowed."""
    choices = [n for part in parts for n in ([2] * part.elements if part.kind == "multi_binary" else part.n)]
    found = numpy.concatenate([numpy.eye(n, dtype=numpy.uint8)[rng.integers(n, size=rows)] for n in choices], 1)
    found |= rng.integers(2, size=found.shape, dtype=numpy.uint8)
    path = os.path.join(folder, "mask")
    found.tofile(path)
    return found, path


def binary(checkpoint, flat, parts, valued, carry, *mask):
    """Heads, values (None without), what is carried on (so many numbers), and actions: an array each part."""
    done = subprocess.run([ACT, checkpoint, str(STEPS), *mask], input=flat.tobytes(), capture_output=True, check=True, timeout=60)
    words = numpy.frombuffer(done.stdout, numpy.int32).reshape(len(flat), -1)
    sizes = [part.elements for part in parts]
    head = words.shape[1] - sum(sizes) - valued - carry
    floats = numpy.ascontiguousarray(words[:, :head + valued + carry]).view(numpy.float32)
    actions, at = [], head + valued + carry
    for part, size in zip(parts, sizes):
        own = words[:, at:at + size]
        discrete = part.n or part.kind == "multi_binary"
        actions.append(own if discrete else numpy.ascontiguousarray(own).view(numpy.float32))
        at += size
    return floats[:, :head], floats[:, head] if valued else None, floats[:, head + valued:], actions


def turns(values, recurrent):
    """What is given at once: all rows; to a recurrent policy a row of each episode, step by step."""
    steps = STEPS if recurrent else 1
    return [[value.reshape(len(value) // steps, steps, *value.shape[1:])[:, step] for value in values] for step in range(steps)]


def in_order(answers):
    """Arrays of each turn as arrays of all rows."""
    stacked = (numpy.stack([numpy.asarray(array) for array in arrays], 1) for arrays in zip(*answers))
    return [array.reshape(array.shape[0] * array.shape[1], *array.shape[2:]) for array in stacked]


def near(what, ours, wanted):
    """Numbers that are the same to rounding, measured by the largest: a dueling head's small ones are differences."""
    ours = numpy.asarray(ours).reshape(wanted.shape)
    worst = float(abs(ours - wanted).max(initial=0) / (1 + abs(wanted).max(initial=0)))
    if not worst <= NEAR:
        sys.exit(f"{what}: differs by {worst}: {ours[:3]} {wanted[:3]}")
    return worst


def same(what, ours, wanted, part, head):
    """Actions; a tie, or nearly one, may fall either way. Who chooses the same for all noise has a head that differs, at least."""
    ours = numpy.asarray(ours).reshape(wanted.shape)
    if wanted.dtype.kind == "f":
        near(what, ours, wanted)
    elif (ours == wanted).mean() < 0.999:
        sys.exit(f"{what}: other actions: {ours[:5]} {wanted[:5]}")
    head = numpy.asarray(head)
    varies = float(numpy.ptp(head, axis=0).max()) > 100 * NEAR * (1 + float(abs(head).max()))
    if len(set(wanted.ravel().tolist())) < 2 and not varies:
        sys.exit(f"{what}: one and the same action whatever is seen: the test would not see a difference")
