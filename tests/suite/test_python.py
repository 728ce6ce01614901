#!/usr/bin/env python3
"""What Tutti brings in Python is read by the oldest Python that python/tutti_env/__main__.py takes: its syntax, and what came to the library later
and is used easily."""

import ast
import os
import pathlib
import re
import unittest

SOURCE = pathlib.Path(os.environ["TT_SOURCE_DIR"]) / "python"
BEGIN = SOURCE / "tutti_env" / "__main__.py"
LATER = {"cache", "removeprefix", "removesuffix", "unparse", "lcm", "pairwise", "batched", "bit_count", "to_thread", "TaskGroup"}


def later(tree):
    """(line, name) of what Python 3.8 has not."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr in LATER:
            yield node.lineno, node.attr
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr) and {type(node.left), type(node.right)} & {ast.Dict, ast.DictComp}:
            yield node.lineno, "|"
        if isinstance(node, ast.Call) and any(word.arg == "strict" for word in node.keywords) and getattr(node.func, "id", "") == "zip":
            yield node.lineno, "strict"


class Python(unittest.TestCase):
    def test_syntax_and_names(self):
        oldest = tuple(map(int, re.search(r"^OLDEST = \((\d), (\d)\)$", BEGIN.read_text(), re.M).groups()))
        self.assertEqual(oldest, (3, 8))  # LATER goes by it
        files = sorted(SOURCE.rglob("*.py"))
        self.assertGreater(len(files), 10)
        for file in files:
            with self.subTest(file=file):
                self.assertEqual(list(later(ast.parse(file.read_text(), str(file), feature_version=oldest))), [])

    def test_who_is_too_old_can_read_that(self):
        """What says so has no syntax that Python 2.7 and 3.5 lack."""
        tree = ast.parse(BEGIN.read_text())
        for node in ast.walk(tree):
            self.assertNotIsInstance(node, (ast.JoinedStr, ast.AnnAssign, ast.NamedExpr, ast.AsyncFunctionDef, ast.Starred))

    def test_the_test(self):
        for text in ("import functools\n@functools.cache\ndef f(): pass\n", "zip(a, b, strict=True)\n", "{1: 2} | a\n", "'ab'.removeprefix('a')\n"):
            self.assertEqual(len(list(later(ast.parse(text)))), 1, text)
        with self.assertRaises(SyntaxError):
            ast.parse("match a:\n  case 1: pass\n", feature_version=(3, 8))


unittest.main()
