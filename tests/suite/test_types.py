#!/usr/bin/env python3
"""A public type has one meaning: no name of ours (tt_...) is given to two types in the product's headers, for no file could
include both. A struct that is announced in several, and told in one, is one type."""

import re
import unittest

from test_checks import FOLDERS, SOURCE, code_of

DIRECTIVE = re.compile(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", re.M)
POINTER = re.compile(r"\(\s*\*\s*(\w+)\s*\)\s*\(")


def typedefs(text):
    """(name, what it is) of each typedef at a file's top."""
    code = DIRECTIVE.sub(lambda found: re.sub(r"[^\n]", " ", found.group()), code_of(text))
    for found in re.finditer(r"^typedef\b", code, re.M):
        at, depth = found.end(), 0
        while code[at] != ";" or depth:
            depth += {"{": 1, "}": -1}.get(code[at], 0)
            at += 1
        what = " ".join(code[found.end():at].split())
        rest = what[what.rfind("}") + 1:]
        pointer = POINTER.search(rest)
        name = pointer.group(1) if pointer else re.findall(r"\w+", re.sub(r"\[[^]]*\]", "", rest))[-1]
        yield name, what


def faults(headers):
    """headers: (path, text). A name that has two bodies, or stands for two things."""
    known = {}
    for path, text in headers:
        for name, what in typedefs(text):
            before = known.setdefault(name, (path, what))
            if name.startswith("tt_") and before[0] != path and (before[1] != what or "{" in what):
                yield f"{name}: in {before[0]} and in {path}"


class Types(unittest.TestCase):
    def test_product(self):
        headers = [(path.relative_to(SOURCE), path.read_text("utf-8")) for folder in FOLDERS
                   for path in sorted((SOURCE / folder).rglob("*.h"))]
        self.assertGreater(sum(1 for _, text in headers for _ in typedefs(text)), 300)
        found = list(faults(headers))
        if found:
            self.fail("\n".join(["one of them gets another name:", *found]))

    def test_names(self):
        for text, name in (("typedef struct {\n    int x[2];\n} tt_a_t;", "tt_a_t"), ("typedef struct tt_b tt_b_t;", "tt_b_t"),
                           ("typedef enum { TT_X, TT_Y } tt_c_t;", "tt_c_t"), ("typedef float tt_d_t[4];", "tt_d_t"),
                           ("typedef tt_status_t (*tt_e_fn)(void *ctx, int (*f)(int));", "tt_e_fn"),
                           ("typedef struct { union { int a; } u; } tt_f_t; /* tt_g_t; */", "tt_f_t")):
            self.assertEqual([found for found, _ in typedefs(text)], [name], text)
        self.assertEqual(list(typedefs("#define A(x) \\\n  typedef int x; \\\n  y\n// typedef int tt_z_t;\n")), [])

    def test_faults(self):
        body, other, announced = "typedef struct {\n int x;\n} tt_a_t;", "typedef enum { TT_B } tt_a_t;", "typedef struct tt_a tt_a_t;"
        self.assertEqual(list(faults([("1.h", body), ("2.h", other)])), ["tt_a_t: in 1.h and in 2.h"])
        self.assertEqual(list(faults([("1.h", body), ("2.h", body)])), ["tt_a_t: in 1.h and in 2.h"])
        self.assertEqual(list(faults([("1.h", announced), ("2.h", announced)])), [])
        self.assertEqual(list(faults([("1.h", announced), ("2.h", "typedef struct tt_b tt_a_t;")])), ["tt_a_t: in 1.h and in 2.h"])
        self.assertEqual(list(faults([("1.h", body.replace("tt_", "")), ("2.h", other.replace("tt_", ""))])), [])  # a module's own


if __name__ == "__main__":
    unittest.main()
