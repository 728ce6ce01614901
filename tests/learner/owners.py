#!/usr/bin/env python3
"""Each part of a learner (struct core in learner/core.h) is written by one file, the one of its type's name: no other file
of the role assigns to it, and none takes its address but to hand it to its owner's functions, or to read."""

import glob
import os
import re
import sys

LEARNER = os.path.join(os.environ["TT_SOURCE_DIR"], "learner")
OWNERS = {"pace": "core", "socks": "learner", "view": "control"}  # by type, where the names differ

WRONG = ["self->at.update++;", "++core->at.update;", "self->core->at.step = 3;", "self->at.seen[self->n] += 1;",
         "position_t *at = &self->at;", "memset(&self->at, 0, 1);", "self->at = (position_t){0};", "f(x, &core->at)"]
RIGHT = ["if (self->at.update == n)", "const position_t *at = &self->at;", "position_begin(&self->at, oldest);",
         "n <= self->at.update;", "x = self->at.update;", "a && self->at.begun", "f(&self->attached)"]


def read(name):
    with open(os.path.join(LEARNER, name), encoding="utf-8") as file:
        return file.read()


def parts(header):
    """[(member, type, owner)]"""
    body = re.search(r"^struct core \{\n(.*?)^\};", header, re.M | re.S)
    if not body:
        sys.exit("learner/core.h has no struct core")
    members = re.findall(r"^    (\w+)_t (\w+);", body.group(1), re.M)
    return [(member, kind, OWNERS.get(kind, kind)) for kind, member in members]


def writes(text, member, kind, owner):
    """The places where a text that is not the owner's writes a part, or could."""
    part = rf"\b(?:self|core|self->core)->{member}\b"
    field = part + r"(?:\.\w+|\[[^\]]*\])*"
    for pattern in (field + r"\s*(?:[-+*/%|&^]|<<|>>)?=(?!=)", field + r"\s*(?:\+\+|--)", r"(?:\+\+|--)" + field):
        yield from re.finditer(pattern, text)
    for match in re.finditer(r"&" + part + r"(?!\.|\[|->)", text):
        before = text[max(0, match.start() - 100):match.start()]
        if not re.search(rf"(?:\b(?:{kind}|{owner})_\w+\(\s*|\bconst {kind}_t \*\w+ = )$", before):
            yield match


def check_itself():
    for line in WRONG:
        if not any(writes(line, "at", "position", "position")):
            sys.exit(f"not seen as a write: {line}")
    for line in RIGHT:
        if any(writes(line, "at", "position", "position")):
            sys.exit(f"seen as a write: {line}")


def main():
    check_itself()
    found = parts(read("core.h"))
    if len(found) < 10:
        sys.exit(f"struct core has only {len(found)} parts: {found}")
    faults = []
    for path in sorted(glob.glob(os.path.join(LEARNER, "*.c"))):
        name, text = os.path.basename(path), read(os.path.basename(path))
        if "learner/core.h" not in text:
            continue
        for member, kind, owner in found:
            if not os.path.exists(os.path.join(LEARNER, f"{owner}.c")):
                faults.append(f"core.h: {member} is a {kind}_t: there is no {owner}.c that owns it")
            elif name != f"{owner}.c":
                faults += [f"{name}:{text.count(chr(10), 0, m.start()) + 1}: {m.group(0)} - {owner}.c alone writes that"
                           for m in writes(text, member, kind, owner)]
    if faults:
        sys.exit("\n".join(faults))
    print(f"{len(found)} parts, one owner each")


if __name__ == "__main__":
    main()
