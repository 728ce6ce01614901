"""A server of tutti's as a user starts it, questions to it over HTTP, and what is left of it in the process table."""
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

TUTTI = os.environ["TUTTI"]
DEADLINE = 30 * (4 if os.environ.get("TT_SANITIZE") else 1)


def wait(what, condition, seconds=DEADLINE):
    """The condition's first true value; it is looked at again and again, and what it waited for is named when the time is over."""
    end = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > end:
            raise AssertionError(f"waited {seconds} s for {what}")
        time.sleep(0.01)


def ask(url, body=None, token=None, method=None):
    """(code, text)"""
    head = {"Authorization": f"Bearer {token}"} if token else {}
    request = urllib.request.Request(url, data=body, headers=head, method=method)
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(request, timeout=DEADLINE) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as refused:
        return refused.code, refused.read().decode()


def processes(mark):
    """Ids of the processes whose environment has this text: NAME=value. Zombies have none."""
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                if mark.encode() in (entry / "environ").read_bytes().split(b"\0"):
                    found.append(int(entry.name))
            except OSError:
                pass
    return found


class Server:
    """`tutti pod-agent --announce DIR ...`, `tutti master --run-dir DIR ...`: it serves when this returns. Everything it starts is found by self.mark."""

    count = 0
    all = []

    def __init__(self, folder, command, *args, **env):
        Server.count += 1
        Server.all.append(self)
        self.folder = pathlib.Path(folder)
        self.mark = f"TEST_MARK={os.getpid()}-{Server.count}"
        name, value = self.mark.split("=")
        agent = command == "pod-agent"
        self.run = self.folder / f"run-{Server.count}"
        if agent:
            self.run.mkdir()
        self.log = open(self.folder / f"{command}-{Server.count}.txt", "w+")
        self.process = subprocess.Popen(
            [TUTTI, command, "--listen", "127.0.0.1:0", "--announce" if agent else "--run-dir", str(self.run), *map(str, args)],
            stdout=self.log, stderr=subprocess.STDOUT, cwd=folder, env={**os.environ, name: value, **env})
        file = self.run / ("agent.json" if agent else "master.json")
        wait(f"{command} to serve", lambda: file.exists() or self.process.poll() is not None)
        assert file.exists(), f"{command} ended with {self.process.returncode}: {self.said()}"
        told = json.loads(file.read_text())
        self.url, self.pid = told["url"], told["pid"]

    def said(self):
        return pathlib.Path(self.log.name).read_text()

    def get(self, path, **more):
        return ask(self.url + path, **more)

    def json(self, path, **more):
        code, text = self.get(path, **more)
        assert code == 200, (path, code, text)
        return json.loads(text)

    def end(self, number=signal.SIGTERM):
        """Its exit code, once nothing of it is left."""
        if self.process.poll() is None:
            self.process.send_signal(number)
        code = self.process.wait(DEADLINE)
        wait(f"the last of {self.mark} to end", lambda: not processes(self.mark))
        return code

    def kill_all(self):
        self.log.close()
        for pid in processes(self.mark):
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        self.process.wait()


def main(tests):
    """Each test gets an empty folder."""
    only = sys.argv[1:]
    for test in tests:
        if only and test.__name__ not in only:
            continue
        folder = tempfile.mkdtemp(prefix="tutti-elasticdl-")
        begun = time.monotonic()
        try:
            test(pathlib.Path(folder))
        finally:
            for server in Server.all: # of a test that failed
                server.kill_all()
            shutil.rmtree(folder, ignore_errors=True)
        print(f"{test.__name__}: ok, {time.monotonic() - begun:.2f} s", flush=True)
