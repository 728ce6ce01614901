"""Spaces in words, as configs and checkpoints have them: "{image: uint8[8, 8], speed: float32}"."""

import math
import re

DTYPES = ("float32", "float64", "uint8", "int32", "int64", "bool")
KINDS = ("multi_discrete", "multi_binary", "discrete") + DTYPES
TOKEN = re.compile(r"\s*([A-Za-z0-9_-]+|[{}()\[\]:,])")


class Leaf:
    """path: keys and numbers that lead to it; name: its column's, "obs.image"; n, start: choices of each element and the first."""

    def __init__(self, kind, shape, n, start):
        self.kind, self.shape, self.n, self.start, self.path, self.name = kind, shape, n, start, (), ""

    @property
    def elements(self):
        return math.prod(self.shape)

    @property
    def floats(self):
        """Its numbers are floats, which a normaliser knows."""
        return self.kind.startswith("float")

    @property
    def numbers(self):
        """How many a network reads, one-hot choices among them."""
        return sum(self.n) if self.n else self.elements


class _Reader:
    def __init__(self, words):
        self.words, self.tokens = words, TOKEN.findall(words)
        if "".join(self.tokens) != re.sub(r"\s", "", words):
            raise ValueError(f"a space in unknown words: {words}")
        self.at = 0

    def next(self):
        return self.tokens[self.at] if self.at < len(self.tokens) else ""

    def take(self, *wanted):
        token = self.next()
        if wanted and token not in wanted:
            raise ValueError(f"a space in unknown words: {wanted[0]} expected at {''.join(self.tokens[self.at:])!r} of {self.words}")
        self.at += 1
        return token

    def many(self, read, end):
        found = [read()]
        while self.take(",", end) == ",":
            found.append(read())
        return found

    def number(self):
        return int(self.take())

    def space(self):
        if self.next() == "{":
            self.take()
            return dict(self.many(self.pair, "}"))
        if self.next() == "(":
            self.take()
            return tuple(self.many(self.space, ")"))
        return self.leaf(self.take(*KINDS))

    def pair(self):
        key = self.take()
        self.take(":")
        return key, self.space()

    def leaf(self, kind):
        shape, n, start = [], [], []
        if self.next() == "[":
            self.take()
            shape = self.many(self.number, "]")
        if kind in ("discrete", "multi_discrete"):
            n, start = self.choices()
            shape = shape or ([] if kind == "discrete" else [len(n)])
        return Leaf(kind, tuple(shape), n, start)

    def choices(self):
        n, start, into = [], [], None
        self.take("(")
        into = n
        while True:
            if self.next() == "from":
                self.take()
                into = start
            into.append(self.number())
            if self.take(",", ")") == ")":
                return n, start or [0] * len(n)


def parse(words):
    """A leaf, or a dict or tuple of spaces."""
    reader = _Reader(words)
    space = reader.space()
    if reader.next():
        raise ValueError(f"a space in unknown words: {words}")
    return space


def leaves(space, name, path=()):
    """All of them in order, with their names and paths."""
    if isinstance(space, Leaf):
        space.name, space.path = name, path
        return [space]
    parts = space.items() if isinstance(space, dict) else enumerate(space)
    return [leaf for key, part in parts for leaf in leaves(part, f"{name}.{key}", (*path, key))]


def stacked(leaves, frames):
    """Of observations that show so many frames, oldest first: every leaf has one more axis in front."""
    for leaf in leaves if frames > 1 else []:
        leaf.shape, leaf.n, leaf.start = (frames, *leaf.shape), leaf.n * frames, leaf.start * frames
    return leaves


def pick(value, path):
    """What a path leads to in an observation."""
    for key in path:
        value = value[key]
    return value


def build(space, values):
    """A structure like the space's, of the leaves' values in order (an iterator)."""
    if isinstance(space, Leaf):
        return next(values)
    if isinstance(space, dict):
        return {key: build(part, values) for key, part in space.items()}
    return tuple(build(part, values) for part in space)
