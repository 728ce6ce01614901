#!/usr/bin/env python3
"""TT_CHECK and TT_DCHECK look and change nothing: no assignment in them, and no call but of functions that only look. What
must happen stands on a line of its own, where a reader sees it and no build leaves it out."""

import os
import pathlib
import re
import unittest

SOURCE = pathlib.Path(os.environ["TT_SOURCE_DIR"])
FOLDERS = ("aggregator", "cli", "collector", "common", "controller", "coordinator", "elasticdl", "k8s", "learner", "local", "task")
# They only look. A new one that does is added here; one that does more gives its result to a variable first.
LOOKS = {"TT_COUNT", "pthread_equal", "pthread_self", "sizeof", "tt_sock_receives", "tt_tree_shards_ok"}
CHANGES = re.compile(r"\+\+|--|(?<![=!<>])=(?!=)|<<=|>>=")
CALL = re.compile(r"\b([A-Za-z_]\w*)\s*\(")
# What is no code: comments, texts and characters.
NO_CODE = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])+\'', re.S)


def code_of(text):
    """The text with what is no code blanked out, line for line and column for column."""
    return NO_CODE.sub(lambda found: re.sub(r"[^\n]", " ", found.group()), text)


def checks(code):
    """(line, expression) of every check but the macros' own definitions."""
    for found in re.finditer(r"^[^#\n]*?\bTT_D?CHECK\(", code, re.M):
        at, depth = found.end(), 1
        while depth:
            depth += {"(": 1, ")": -1}.get(code[at], 0)
            at += 1
        yield code.count("\n", 0, found.end()) + 1, code[found.end():at - 1]


def faults(text):
    for line, expression in checks(code_of(text)):
        if CHANGES.search(expression):
            yield line, "assigns"
        for name in CALL.findall(expression):
            if name not in LOOKS:
                yield line, f"calls {name}"


class Checks(unittest.TestCase):
    def test_product(self):
        found = [f"{path.relative_to(SOURCE)}:{line}: TT_CHECK {what}" for folder in FOLDERS
                 for path in sorted((SOURCE / folder).rglob("*.[ch]")) for line, what in faults(path.read_text("utf-8"))]
        if found:
            self.fail("\n".join(["its result goes into a variable first:", *found]))

    def test_faults(self):
        for text, what in (("    TT_CHECK(open(&x) == 0);", ["calls open"]), ("if (a) TT_CHECK(x = 1);", ["assigns"]),
                           ("TT_CHECK(x++ < 3);", ["assigns"]), ("TT_DCHECK(self->fn(x));", ["calls fn"]),
                           ("TT_CHECK(a &&\n    (x |= 1));", ["assigns"]), ("TT_CHECK(x <<= 1);", ["assigns"])):
            self.assertEqual([found for _, found in faults(text)], what, text)

    def test_looks(self):
        for text in ("TT_CHECK(a == b && c != d && e <= f && g >= h);", "TT_CHECK(i < TT_COUNT(x)); /* open(x) */",
                     "TT_CHECK((uint32_t)role < ROLES && *p == '=');", '#define TT_CHECK(x) ((x) ? f(1) : g(2))',
                     "x = f(1);\nTT_CHECK(x);\ny = g(2);", 's = "TT_CHECK(f(1))";'):
            self.assertEqual(list(faults(text)), [], text)


if __name__ == "__main__":
    unittest.main()
