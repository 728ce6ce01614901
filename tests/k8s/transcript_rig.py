"""transcript_rig - what tests share that type the guide's commands as a person does: the commands of a page, a prompt, and a transcript, which
is a page of the guide with what was typed and what it printed."""

import os
import re
import signal
import sys

import cluster
from cluster import check, wait_for

SOURCE = os.environ.get("TT_SOURCE_DIR") or os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
TUTTI = os.environ.get("TUTTI", "tutti")


# --- a page of the guide

def section(heading, page):
    with open(os.path.join(SOURCE, "docs/guide", page), encoding="utf-8") as file:
        found = re.search(rf"^## {re.escape(heading)}\n(.*?)(?=^## |\Z)", file.read(), re.M | re.S)
    check(found, f"{page} has a section '{heading}'")
    return found[1]


def blocks(heading, page):
    """The commands below a heading, a list of lines for each indented block."""
    outside = re.sub(r"^```.*?^```\n", "", section(heading, page), flags=re.M | re.S)
    found = re.findall(r"(?:^    .*\n)+", outside, re.M)
    check(found, f"'{heading}' has commands")
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
    """A page: words, and commands with what they printed."""

    def __init__(self, name, title, words):
        self.name, self.head, self.said = name, f"# {title}\n\n{words}\n", []

    def say(self, text):
        self.said.append((text,))

    def typed(self, command, output):
        self.said.append((re.sub(r" {2,}# .*", "", command), output))

    def write(self, folder):
        with open(os.path.join(folder, self.name), "w", encoding="utf-8") as file:
            file.write(self.head)
            fenced = False
            for first, *output in self.said:
                if output:
                    file.write(("" if fenced else "```console\n") + f"$ {first}\n{output[0].rstrip()}".rstrip() + "\n")
                else:
                    file.write(("```\n" if fenced else "") + f"\n{first}\n\n")
                fenced = bool(output)
            file.write("```\n")


class Prompt:
    """A shell in a folder, which the page knows as `shown`, in the cluster's network; it finds kubectl, tutti and Helm. What is typed goes into
    the transcript if there is one."""

    def __init__(self, k8s, folder, page=None, env=None, shown=None):
        self.k8s, self.folder, self.page, self.env, self.shown = k8s, folder, page, env, shown or folder
        found = (k8s.programs["kubectl"], os.path.abspath(TUTTI), k8s.programs.get("helm", ""))
        self.path = ":".join(dict.fromkeys(os.path.dirname(program) for program in found if program))

    def line(self, command):
        """What at a terminal goes without saying: there curl draws no meter."""
        return ["bash", "-c", f'PATH={self.path}:$PATH; curl() {{ command curl -sS "$@"; }}; cd {self.folder} && {command}']

    def typed(self, command, output):
        if self.page:
            self.page.typed(command, output.replace(self.folder, self.shown))

    def type(self, command, check_code=True, errors=True, deadline=cluster.DEADLINE):
        """What it prints; what goes to stderr after the rest, unless errors=False."""
        done = self.k8s.run_in(self.line(command), check=False, deadline=deadline, env=self.env)
        self.typed(command, done.stdout + done.stderr)
        check(done.returncode == 0 or not check_code, f"{command}: exit {done.returncode}: {done.stdout}{done.stderr}")
        return done.stdout + (done.stderr if errors else "")

    def follow(self, lines, *steps):
        """Types the lines of a page. Each has its step: (how it begins, a pattern that what it prints has, what is waited for before the next
        is typed or nothing). Returns what they printed."""
        lines = list(commands(lines))
        check(len(lines) == len(steps), f"{len(steps)} commands were expected: {lines}")
        said = []
        for line, (begins, pattern, *then) in zip(lines, steps):
            check(line.startswith(begins), f"{begins}: {line}")
            said.append(self.type(line))
            check(re.search(pattern, said[-1], re.M), f"{line} is to print {pattern}: {said[-1]}")
            for await_it in then:
                await_it()
        return said


class Terminal:
    """A command that goes on in a terminal of its own."""

    def __init__(self, prompt, command):
        self.prompt, self.command = prompt, command
        self.path = prompt.k8s.files.path(f"terminal-{id(self)}")
        with open(self.path, "wb") as file:
            self.process = prompt.k8s.exec_in(prompt.line("exec " + command), env=prompt.env, stdout=file, stderr=file)

    def text(self):
        with open(self.path, encoding="utf-8") as file:
            return file.read()

    def until(self, words):
        wait_for(lambda: words in self.text() or self.process.poll() is not None, lambda: f"'{words}' of {self.command}: {self.text()}")
        check(words in self.text(), f"{self.command} ended before '{words}': {self.text()}")

    def write(self):
        """Into the transcript: what it has printed by now."""
        self.prompt.typed(self.command, self.text())

    def end(self, interrupt=False):
        """(exit code, what it printed); interrupt: by Ctrl-C."""
        if interrupt:
            self.process.send_signal(signal.SIGINT)
        return self.process.wait(cluster.DEADLINE), self.text()


def main(pages, *tests, **options):
    """cluster.main, and with `--record FOLDER` the pages are written there, be the tests passed or not."""
    folder = None
    if sys.argv[1:2] == ["--record"]:
        folder = os.path.abspath(sys.argv[2])
        del sys.argv[1:3]
    try:
        cluster.main(*tests, **options)
    finally:
        for page in pages if folder else ():
            page.write(folder)
