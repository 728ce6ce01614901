#!/usr/bin/env python3
"""The kind of job of docs/guide/add-a-front-end.md, built from the page's own text (tutti_front, see CMakeLists.txt), on this machine:
its job runs, who fails is made anew up to the limit, and what is wrong with a manifest is said. The operator: tests/k8s/test_front.py."""

import json
import os
import re
import subprocess
import sys
import tempfile

TUTTI = os.path.join(os.environ["TT_BUILD_DIR"], "tests/k8s/front/tutti_front")


def page():
    """The job and what a cluster needs, as the page has them."""
    with open(os.path.join(os.environ["TT_SOURCE_DIR"], "docs/guide/add-a-front-end.md"), encoding="utf-8") as file:
        job, cluster = re.findall(r"^```yaml\n(.*?)^```", file.read(), re.M | re.S)
    return job, cluster


class Folder:
    """Where the job works, in place of the page's /tmp/squares."""

    def __init__(self, path):
        self.path, self.count = path, 0
        self.env = dict(os.environ, XDG_STATE_HOME=os.path.join(path, "state"))

    def job(self, **numbers):
        """The manifest's path, with other numbers than the page's, and a new folder to work in."""
        self.count += 1
        text, self.work = page()[0], os.path.join(self.path, f"squares-{self.count}")
        text = text.replace("/tmp/squares", self.work)
        for key, value in numbers.items():
            text = re.sub(rf"^  {key}: .*$", f"  {key}: {value}", text, count=1, flags=re.M)
        with open(self.work + ".yaml", "w", encoding="utf-8") as file:
            file.write(text)
        return self.work + ".yaml"

    def tutti(self, code, *args):
        done = subprocess.run([TUTTI, *args], env=self.env, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=90, check=False)
        print(f"$ tutti {' '.join(args)}\n{done.stdout}{done.stderr}", flush=True)
        if done.returncode != code:
            sys.exit(f"exit {done.returncode}, not {code}: {args}")
        return done.stdout + done.stderr

    def run(self, code, **numbers):
        """The status at the end."""
        manifest = self.job(**numbers)
        self.tutti(code, "run", manifest, "--run-dir", self.work + ".run")
        with open(os.path.join(self.work + ".run", "job.json"), encoding="utf-8") as file:
            return json.load(file)["status"]

    def squares(self):
        found = {}
        for name in filter(str.isdigit, os.listdir(self.work)):
            with open(os.path.join(self.work, name), encoding="utf-8") as file:
                found[name] = file.read().strip()
        return found


def check(condition, *words):
    if not condition:
        sys.exit(f"FAILED: {words}")


def test_it_runs(folder):
    check("the IndexedJob can be run" in folder.tutti(0, "check", folder.job()), "it is refused")
    status = folder.run(0)
    check(status["phase"] == "Succeeded" and status["restarts"] == 1 and status["succeeded"] == 3 and status["active"] == 0, status)
    check(folder.squares() == {"0": "0", "1": "1", "2": "4"}, folder.squares())


def test_the_limit(folder):
    status = folder.run(3, backoffLimit=0)
    check(status["phase"] == "Failed" and status["reason"] == "BackoffLimitExceeded" and status["restarts"] == 0, status)
    check("squares-1 ended with exit code 3: no luck" in status["conditions"][0]["message"], status)
    check("1" not in folder.squares(), folder.squares())


def test_what_is_wrong_is_said(folder):
    check("spec.completions: expected a number from 1 to 1000" in folder.tutti(78, "check", folder.job(completions=0)), "0 places")
    manifest = folder.job()
    with open(manifest, encoding="utf-8") as file:
        text = file.read()
    for right, wrong, words in (("completions:", "completion:", "IndexedJobSpec has no field 'completion'; did you mean 'completions'?"),
                                ("name: main", "name: other", "expected one named main"), ("command:", "comand:", "did you mean 'command'?")):
        check(text.count(right) == 1, "the page's job has no longer one", right)
        with open(manifest, "w", encoding="utf-8") as file:
            file.write(text.replace(right, wrong))
        check(words in folder.tutti(78, "check", manifest), words)


def main():
    for test in (test_it_runs, test_the_limit, test_what_is_wrong_is_said):
        with tempfile.TemporaryDirectory(prefix="tt-front-") as path:
            test(Folder(path))


if __name__ == "__main__":
    main()
