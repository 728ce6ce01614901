#!/usr/bin/env python3
"""What the pages say exists: every relative link and anchor, every `tutti COMMAND` with its options, every config key,
every file of the source that a page names. And every page can be reached from README.md."""

import os
import re
import subprocess
import sys

TUTTI = os.environ["TUTTI"]
SOURCE = os.environ["TT_SOURCE_DIR"]
SKIPPED = {".git", "build", "runs", ".venvs", "node_modules"}

# Named in running text without being a command: `tutti COMMAND --help` and the like.
PLACEHOLDERS = {"COMMAND"}
# First words of dotted names that are config keys when they stand in code.
SECTIONS = ("algorithm", "network", "normalize", "collector", "learner", "aggregator", "stop", "checkpoint", "net", "coordinator",
            "replay")
# Dotted names of these shapes are files, tests or calls, not keys.
NOT_KEYS = re.compile(r"\.(c|h|py|sh|md|def|yaml|json|log|lock|db|so)$|\(|\*")
# Examples of mistakes: the page shows how they are reported.
MISTAKES = {"learner.shard"}
FOLDERS = ("aggregator", "bench", "cli", "collector", "common", "configs", "controller", "coordinator", "docs", "elasticdl", "k8s",
           "learner", "task", "tests", "tools")
# Pages whose dotted names are a DIJob's fields, not config keys.
DIJOB_PAGES = re.compile(r"(k8s|kubernetes|dijob|pods)[\w-]*\.md$")


def pages():
    for folder, folders, files in os.walk(SOURCE):
        folders[:] = [name for name in folders if name not in SKIPPED]
        for name in files:
            if name.endswith(".md"):
                yield os.path.join(folder, name)


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def tutti(*args):
    done = subprocess.run([TUTTI, *args], capture_output=True, text=True, timeout=30, check=False)
    if done.returncode != 0:
        sys.exit(f"tutti {' '.join(args)}: exit {done.returncode}: {done.stderr}")
    return done.stdout


def code_of(text):
    """Blocks and `inline` pieces, where commands and keys stand; prose is left out."""
    fenced = re.findall(r"^```[^\n]*\n(.*?)^```", text, re.M | re.S)
    rest = re.sub(r"^```.*?^```", "", text, flags=re.M | re.S)
    indented = re.findall(r"^(?: {4}|\t)[^\n]*", rest, re.M)
    inline = re.findall(r"`([^`\n]+(?:\n[^`\n]+)?)`", rest)
    return [*fenced, *indented, *inline]


def anchors(text):
    found = set()
    for line in re.sub(r"^```.*?^```", "", text, flags=re.M | re.S).splitlines():
        if line.startswith("#"):
            words = re.sub(r"[^\w\- ]", "", line.lstrip("#").strip().lower())
            found.add(words.replace(" ", "-"))
    return found


def links(path, text):
    """(as written, file, heading) of each relative link."""
    prose = re.sub(r"^```.*?^```", "", text, flags=re.M | re.S)
    for target in re.findall(r"\]\(([^)\s]+)\)", prose):
        if re.match(r"[a-z]+:", target):
            continue
        name, _, anchor = target.partition("#")
        yield target, os.path.normpath(os.path.join(os.path.dirname(path), name)) if name else path, anchor


def check_links(path, text):
    for target, full, anchor in links(path, text):
        if not os.path.exists(full):
            yield f"links to {target}, which is not there"
        elif anchor and full.endswith(".md") and anchor not in anchors(read(full)):
            yield f"links to {target}, which has no such heading"


class Commands:
    def __init__(self):
        overview = tutti("help")
        self.options = {}
        for name in re.findall(r"^  ([a-z]+)  +\S", overview, re.M):
            said = tutti("help", name)
            below = re.search(r"^(?:commands|benchmarks):\n((?:  .*\n)+)", said, re.M)
            for word in re.findall(r"^  ([a-z]+)  +\S", below.group(1), re.M) if below else []:
                said += tutti("help", name, word)
            self.options[name] = set(re.findall(r"(?<![\w-])(--?[A-Za-z][\w-]*)", said)) | {"--help", "-h"}

    def check(self, piece):
        piece = piece.replace("\\\n", " ")
        for line in re.split(r"\n(?!\s*--)", piece):
            for match in re.finditer(r"(?:^|[\s`(>$]|bin/)tutti ((?:[A-Za-z]+\|)*[A-Za-z]+)(?=[\s`.,;)]|$)([^\n`#]*)", line):
                for name in match.group(1).split("|"):
                    if name in PLACEHOLDERS:
                        continue
                    if name not in self.options:
                        yield f"names 'tutti {name}', which is no command"
                        continue
                    for option in re.findall(r"(?<=\s)(--?[A-Za-z][\w-]*)", re.split(r"[|;&]", match.group(2))[0]):
                        if option not in self.options[name]:
                            yield f"says 'tutti {name} {option}', an option that is not there"


class Keys:
    def __init__(self):
        listing = tutti("config")
        self.known = set(re.findall(r"^([a-z]\w*(?:\.\w+)*)  +\S", listing, re.M))
        self.sections = {key.rsplit(".", 1)[0] for key in self.known if "." in key}

    def check(self, piece):
        for match in re.finditer(r"(?<![\w./'-])((?:%s)\.[a-z_0-9]+)(?![\w(/-]|\.[a-z])" % "|".join(SECTIONS), piece):
            key = match.group(1)
            if not NOT_KEYS.search(key) and key not in self.known and key not in MISTAKES:
                yield f"names the key {key}, which `tutti config` does not list"


def check_files(piece):
    """`learner/learner.c` and the like; `*`, <placeholders> and shell variables are not looked at."""
    for name in re.findall(r"(?<![\w./<$-])((?:%s)/[\w./-]+\.(?:c|h|def|py|sh|md|yaml|supp))(?![\w*<])" % "|".join(FOLDERS), piece):
        if not os.path.exists(os.path.join(SOURCE, name)):
            yield f"names the file {name}, which is not there"


def reachable(start):
    seen, todo = set(), [os.path.normpath(start)]
    while todo:
        path = todo.pop()
        if path in seen or not path.endswith(".md") or not os.path.exists(path):
            continue
        seen.add(path)
        todo += [full for _, full, _ in links(path, read(path))]
    return seen


def complaints(path, commands, keys):
    text = read(path)
    yield from check_links(path, text)
    changelog = os.path.basename(path) == "CHANGELOG.md"  # tells of what was, too
    for piece in [] if changelog else code_of(text):
        yield from commands.check(piece)
        if not DIJOB_PAGES.search(path):
            yield from keys.check(piece)
        yield from check_files(piece)


def main():
    commands, keys = Commands(), Keys()
    assert len(commands.options) > 10 and len(keys.known) > 20, "tutti help or tutti config could not be read"
    failed = 0
    count = 0
    reached = reachable(os.path.join(SOURCE, "README.md"))
    for path in sorted(pages()):
        count += 1
        lost = [] if os.path.normpath(path) in reached else ["cannot be reached from README.md"]
        for complaint in lost + sorted(set(complaints(path, commands, keys))):
            print(f"{os.path.relpath(path, SOURCE)} {complaint}")
            failed += 1
    print(f"{count} pages, {failed} complaints")
    sys.exit(1 if failed else 0)


main()
