#!/usr/bin/env python3
"""The guide's page about tasks, typed: the files of its two tutorials are written, their commands run as they stand, one after the other."""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.environ["TT_SOURCE_DIR"], "tests", "task"))
sys.path.append(os.path.join(os.environ["TT_SOURCE_DIR"], "tests"))
import taskrig  # noqa: E402
import transcript  # noqa: E402

SOURCE, TUTTI = os.environ["TT_SOURCE_DIR"], os.environ["TUTTI"]
SECTIONS = {"A first task": (3, 11), "A sweep of Tutti's configs": (1, 6)}  # how many files and commands each has

s_page = transcript.Transcript("transcript-tasks-local.md", "A session with tasks on one machine", """\
The commands of [tasks.md](tasks.md#a-first-task) for one machine and what they print, written down by
`tests/docs/tasks_page.py --record docs/guide`. The programs and files are the page's.""", [
    (r"\b(job_configId_|cpu:)\d+", r"\1N"), (r"(?:^user\.me\.\S+ job_configId_N .*\n)+", transcript.any_order),
    (r"-?\b\d+\.\d+\b", "NUMBER"), (r"\bruns/\S+-\d+\b", "RUN")])


def steps(text):
    """("file", name, text) and ("command", line) in their order."""
    for block, line in re.findall(r"^```python\n(.*?)^```|^    (\S[^\n]*)$", text, re.M | re.S):
        if block:
            yield "file", re.match(r"# (\S+)\n", block).group(1), block
        else:
            yield "command", line


def shown(said, folder):
    """As if somebody called `me` had typed it, in a folder of theirs; columns stay as wide."""
    me, pad = re.escape(taskrig.USER), " " * max(len(taskrig.USER) - 2, 0)
    said = re.sub(rf"^{me} ( *user\.){me}(\.\S+)", rf"me{pad} \1me\2{pad}", said, flags=re.M)
    return re.sub(rf"(?<=user\.){me}(?=\.)", "me", said).replace(os.path.realpath(folder), "/home/me/tunings").replace(folder, "/home/me/tunings")


def type_section(title, text, folder, env):
    count, tasks = [0, 0], {}
    for kind, first, *rest in steps(text):
        count[kind == "command"] += 1
        if kind == "file":
            with open(os.path.join(folder, first), "w", encoding="utf-8") as file:
                file.write(rest[0])
            continue
        done = subprocess.run(first, shell=True, cwd=folder, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=250, check=False)
        print(f"$ {first}\n{done.stdout}{done.stderr}", flush=True)
        s_page.typed(first, shown(done.stdout + done.stderr, folder))
        if done.returncode != 0:
            sys.exit(f"exit {done.returncode}: {first}")
        if first == "tutti task list":
            said = subprocess.run([TUTTI, "task", "list", "--output", "json"], env=env, capture_output=True, text=True, timeout=30, check=True).stdout
            tasks.update({row["taskname"]: (row["status"], row["done"]) for row in json.loads(said)})
        if first.startswith("python3 best.py") and not re.fullmatch(r"20 results; init \d is right 0\.[6-9]\d+ of the time\n", done.stdout):
            sys.exit(f"not what was promised: {done.stdout}")
        if first.startswith("grep return_mean") and len(done.stdout.splitlines()) != 3:
            sys.exit(f"not three runs: {done.stdout}")
    if tuple(count) != SECTIONS[title]:
        sys.exit(f"{title}: {count} files and commands, {SECTIONS[title]} were expected")
    return tasks


def main():
    with open(os.path.join(SOURCE, "docs", "guide", "tasks.md"), encoding="utf-8") as file:
        page = file.read()
    sections = dict(zip(*[iter(re.split(r"^## (.*)\n", page, flags=re.M)[1:])] * 2))
    folder = tempfile.mkdtemp(prefix="tt-tasks-page-")
    env = dict(os.environ, XDG_STATE_HOME=os.path.join(folder, "state"), USER=taskrig.USER, PATH=os.path.dirname(TUTTI) + ":" + os.environ["PATH"])
    ends = {}
    try:
        record = transcript.record_folder()
        for title in SECTIONS:
            s_page.say(f"## {title}")
            ends.update(type_section(title, sections[title], folder, env))
        if ends != {taskrig.name("my_task"): ("done", 20), taskrig.name("rate_sweep"): ("done", 3)}:
            sys.exit(f"tasks ended as {ends}")
        if os.path.exists(os.path.join(folder, taskrig.name("my_task"))) or len(os.listdir(os.path.join(folder, "configs"))) != 20:
            sys.exit("delete --remove took too little, or too much")
        transcript.finish(record, s_page)
    finally:
        shutil.rmtree(folder)


main()
