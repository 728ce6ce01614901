#!/usr/bin/env python3
"""The module map of docs/architecture.md is what the source is: no folder includes another than its row says, what a row says by name is
included, and what the map says of all of them together (no two folders include each other, roles neither) is so."""

import re
import unittest

from test_unused import FOLDERS, SOURCE

INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]+"([^"]+)"', re.M)
ENDS = {".c", ".h", ".cu", ".def"}
ROLES = {"aggregator", "collector", "coordinator", "learner"}
ANY = {"all", "nothing of ours"}  # words that name no folder
TABLE_OF_KINDS = "; the table: each kind"  # k8s/front/fronts.def, which the build reads


def rows(page):
    """{folder: the words of its "may include"} of the rows whose folder has source of the product."""
    found = {}
    for line in page.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split(" | ")]
        name = re.match(r"\|? ?`([^`]+)`", line)
        if name and len(cells) == 3 and name.group(1).split("/")[0] in FOLDERS and cells[2].strip(" |") != "-":
            words = cells[2].strip(" |").replace(TABLE_OF_KINDS, "")
            found[name.group(1).rstrip("/")] = [word.strip() for word in words.split(",")]
    return found


def folder_of(path, folders):
    """The one it is in, the innermost; None."""
    return max((folder for folder in folders if path.startswith(folder + "/")), key=len, default=None)


def includes(files, folders):
    """files: (path, text). {folder: {another: a file that includes it}}, and paths that are in no folder of the map."""
    found, strays = {folder: {} for folder in folders}, []
    for path, text in files:
        here = folder_of(path, folders)
        if not here:
            strays.append(path)
            continue
        for included in INCLUDE.findall(text):
            there = folder_of(included, folders)
            if there and there != here:
                found[here].setdefault(there, path)
    return found, strays


def is_said(folder, word, other):
    """The row of `folder` lets it include `other` by that word: "common", "k8s/api", or "nn" of a folder in common."""
    return other in (word, f"common/{word}") or (word == "common" and other.startswith("common/")) or word == "all"


def faults(page, files):
    table = rows(page)
    found, strays = includes(files, table)
    yield from (f"{path}: no row has its folder" for path in strays)
    for folder, words in table.items():
        for other, path in found[folder].items():
            if not any(is_said(folder, word, other) for word in words):
                yield f"{folder} includes {other} ({path}), and its row does not say so"
            if folder in found[other]:
                yield f"{folder} and {other} include each other ({path}, {found[other][folder]})"
            if folder in ROLES and other in ROLES:
                yield f"{folder}, a role, includes {other}, another ({path})"
        for word in words:
            if word not in ANY and not any(is_said(folder, word, other) for other in found[folder]):
                yield f"{folder} does not include {word}, and its row says so"


class Map(unittest.TestCase):
    def test_product(self):
        files = [(str(path.relative_to(SOURCE)), path.read_text("utf-8")) for folder in FOLDERS
                 for path in sorted((SOURCE / folder).rglob("*")) if path.suffix in ENDS]
        page = (SOURCE / "docs" / "architecture.md").read_text("utf-8")
        self.assertGreater(len(rows(page)), 20)
        found = sorted(set(faults(page, files)))
        if found:
            self.fail("\n".join(["docs/architecture.md, module map:", *found]))

    def test_faults(self):
        page = "| path | what | may include |\n|---|---|---|\n| `common/base` | a, b | nothing of ours |\n| `common/nn` | c | base |\n" \
               "| `learner/` | d | common |\n| `collector/` | e | common, task |\n| `task/` | f | all |\n| `docs/` | g | - |\n"
        base, used = ("common/base/a.c", ""), ("common/nn/a.c", '#include "common/base/a.h"\n')
        roles = [("learner/a.c", '#include "common/nn/a.h"\n'), ("collector/a.c", '#include "common/nn/a.h"\n#include "task/a.h"\n')]
        whole = [base, used, *roles]
        self.assertEqual(list(faults(page, whole)), [])
        for more, fault in (
                (("learner/b.c", '#  include "task/a.h"\n'), "learner includes task (learner/b.c), and its row does not say so"),
                (("common/b/b.c", ""), "common/b/b.c: no row has its folder"),
                (("task/b.c", '#include "collector/a.h"\n'), "task and collector include each other (task/b.c, collector/a.c)"),
                (("learner/b.c", '#include "collector/a.h"\n'), "learner, a role, includes collector, another (learner/b.c)"),
                (("common/base/b.c", '#include "common/nn/a.h"\n'),
                 "common/base includes common/nn (common/base/b.c), and its row does not say so")):
            self.assertIn(fault, list(faults(page, [*whole, more])))
        self.assertEqual(list(faults(page, [base, *roles])), ["common/nn does not include base, and its row says so"])
        self.assertEqual(list(faults(page, [*whole, ("learner/b.c", '// #include "task/a.h"\n#include <task/a.h>\n')])), [])


if __name__ == "__main__":
    unittest.main()
