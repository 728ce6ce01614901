"""transcript - what tests share that type the guide's commands as a person does, on this machine or at a cluster: the commands of a page, and a
transcript, which is a page of the guide with what was typed and what it printed. For scripts in the folders beside this file, as pythons.py is.

A transcript is written anew by `--record FOLDER` and compared in every other run of its test, but for what is another each time (times, ages,
random names); a page that has grown old is a failed test, with what differs and the command that records it."""

import difflib
import os
import re
import sys

SOURCE = os.environ.get("TT_SOURCE_DIR") or os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
GUIDE = os.path.join(SOURCE, "docs/guide")
AGE = r"\d+(?:ms|[smhd])(?:\d+[smh])?"
# What no two sessions have in common: (pattern, what stands for it).
VARIES = [
    (r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z", "TIME"), (r"\b\d\d:\d\d:\d\d\b", "TIME"),
    (r"\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b", "UID"), (r"\b[0-9a-f]{16,}\b", "HASH"),
    (r"\b\d+\.\d+\.\d+\.\d+\b(?::\d{5}\b)?", "ADDRESS"), (r"(?<=^  Resource Version: ) *\d+", "NUMBER"),
    (r" \(x\d+ over " + AGE + r"\)", ""), (r"(?<=\s)" + AGE + r"(?=\s|$)", "AGE"),
    (r"-[bcdfghjklmnpqrstvwxz2456789]{5}(?![a-z0-9-])", "-RANDOM"), (r"-[bcdfghjklmnpqrstvwxz2456789]{10}(?![a-z0-9-])", "-HASH"),
    (r"(?<=\S) {2,}", " "), (r" +$", ""),  # columns are as wide as what is in them
]
PROGRESS = r"^Waiting for deployment .*\n"  # as many as there was time for
LATE = r"^.*(?:waiting for the environment|did not end within its grace).*\n?"  # what a busy machine makes necessary to say


# --- a page of the guide

def section(heading, page):
    with open(os.path.join(GUIDE, page), encoding="utf-8") as file:
        found = re.search(rf"^## {re.escape(heading)}\n(.*?)(?=^## |\Z)", file.read(), re.M | re.S)
    assert found, f"{page} has a section '{heading}'"
    return found[1]


def blocks(heading, page):
    """The commands below a heading, a list of lines for each indented block."""
    outside = re.sub(r"^```.*?^```\n", "", section(heading, page), flags=re.M | re.S)
    found = re.findall(r"(?:^    .*\n)+", outside, re.M)
    assert found, f"'{heading}' has commands"
    return [[line[4:] for line in block.splitlines()] for block in found]


def commands(lines):
    """One by one; a here-document is one with the line that begins it, as is what follows a pipe at a line's end."""
    lines = list(lines)
    while lines:
        one = [lines.pop(0)]
        while "<<'EOF'" in one[0] and one[-1] != "EOF":
            one.append(lines.pop(0))
        while one[-1].endswith("|"):
            one.append(lines.pop(0))
        yield "\n".join(one)


def programs(heading, page):
    """{name: text} of the programs below a heading, each a block whose first line is a comment, its name."""
    found = re.findall(r"^```python\n(.*?)^```", section(heading, page), re.M | re.S)
    return {re.match(r"# (\S+)\n", text)[1]: text for text in found}


# --- a transcript

class Transcript:
    """A page: words, and commands with what they printed. varies: what else two sessions need not have in common, as VARIES."""

    def __init__(self, name, title, words, varies=()):
        self.name, self.head, self.said, self.varies = name, f"# {title}\n\n{words}\n", [], list(varies)

    def say(self, text):
        self.said.append((text,))

    def typed(self, command, output):
        self.said.append((re.sub(r" {2,}# .*", "", command), output))

    def text(self):
        out, fenced = [self.head], False
        for first, *output in self.said:
            if output:
                out.append(("" if fenced else "```console\n") + f"$ {first}\n{output[0].rstrip()}".rstrip() + "\n")
            else:
                out.append(("```\n" if fenced else "") + f"\n{first}\n\n")
            fenced = bool(output)
        return "".join(out) + "```\n"

    def write(self, folder):
        if self.said:
            with open(os.path.join(folder, self.name), "w", encoding="utf-8") as file:
                file.write(self.text())

    def differences(self):
        """Between the guide's page and what came out now, as a diff; empty where there are none."""
        path = os.path.join(GUIDE, self.name)
        there = ""
        if os.path.exists(path):
            with open(path, encoding="utf-8") as file:
                there = file.read()
        pages = (masked(text, self.varies).splitlines() for text in (there, self.text()))
        return "\n".join(difflib.unified_diff(*pages, f"docs/guide/{self.name}", "what came out now", lineterm=""))


def s_same_events(match):
    """They come in any order, and alike ones as one from some number on."""
    lines = {line.replace("(combined from similar events): ", "") for line in match[2].splitlines()}
    return match[1] + "".join(sorted(line + "\n" for line in lines))


def masked(text, varies=()):
    """A page without what no two sessions have in common. Only commands and what they printed are touched, not the words between."""
    def session(match):
        block = re.sub(f"{PROGRESS}|{LATE}", "", match[0], flags=re.M)
        for pattern, instead in [*varies, *VARIES]:
            block = re.sub(pattern, instead, block, flags=re.M)
        return re.sub(r"^(Events:\n(?: .*\n){2})((?: .*\n)+)", s_same_events, block, flags=re.M)
    return re.sub(r"^```console\n.*?^```\n", session, text, flags=re.M | re.S)


# --- a script that records or compares

def record_folder():
    """Of `--record FOLDER`, which are taken off the command line; None."""
    if sys.argv[1:2] != ["--record"]:
        return None
    folder = os.path.abspath(sys.argv[2])
    del sys.argv[1:3]
    return folder


def aged(*pages):
    """Which of them have grown old, how, and how to record them anew; "" if none."""
    found = [text for text in (page.differences() for page in pages) if text]
    settings = [f"{name}={os.environ[name]}" for name in ("TUTTI", "TT_SOURCE_DIR", "TT_BUILD_DIR", "TT_PYTHON") if name in os.environ]
    again = " ".join([*settings, "python3", os.path.relpath(sys.argv[0], SOURCE), "--record docs/guide"])
    return found and "the guide shows what is not so any more:\n" + "\n".join(found) + f"\n\nIf it is to be so, record it anew, in {SOURCE}:\n  {again}\n"


def finish(folder, *pages):
    """The end of a script: folder is record_folder()'s answer."""
    for page in pages if folder else ():
        page.write(folder)
    old = not folder and aged(*pages)
    if old:
        sys.exit(f"FAILED: {old}")


def any_order(match):
    """For VARIES: lines of which each session has other ones first, and some a second time."""
    return "".join(sorted(set(match[0].splitlines(keepends=True))))
