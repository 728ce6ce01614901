"""transcript_rig - what tests share that type the guide's commands at a cluster: a prompt, and terminals beside it. Pages, their commands and
transcripts: ../transcript.py."""

import os
import re
import signal
import sys

import cluster
from cluster import check, wait_for

SOURCE = os.environ.get("TT_SOURCE_DIR") or os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
TUTTI = os.environ.get("TUTTI", "tutti")
sys.path.append(os.path.join(SOURCE, "tests"))
import transcript  # noqa: E402
from transcript import Transcript, blocks, commands, programs, section  # noqa: E402, F401, for the scripts


# What kubectl says now and then of a message that comes when it has closed its streams; what they had for it is printed.
LATE = r"^E\d{4} [\d:.]+ +\d+ websocket\.go:\d+\] Unknown stream id \d+, discarding message\n"


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
        complaints = re.sub(LATE, "", done.stderr, flags=re.M)
        self.typed(command, done.stdout + complaints)
        check(done.returncode == 0 or not check_code, f"{command}: exit {done.returncode}: {done.stdout}{done.stderr}")
        return done.stdout + (complaints if errors else "")

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


def s_noted(test, passed):
    def noted(k8s):
        test(k8s)
        passed.append(test)
    noted.__name__ = test.__name__
    return noted


def main(pages, *tests, **options):
    """cluster.main, and a last test that compares the pages with what has come out; with `--record FOLDER` they are written there instead, be
    the tests passed or not."""
    folder, passed = transcript.record_folder(), []

    def test_transcripts():
        if len(passed) < len(tests):
            raise cluster.Skipped("a test has failed, so that there is no whole session to compare")
        old = transcript.aged(*pages)
        check(not old, old)

    try:
        cluster.main(*(s_noted(test, passed) for test in tests), *(() if folder else (test_transcripts,)), **options)
    finally:
        for page in pages if folder else ():
            page.write(folder)
