#!/usr/bin/env python3
"""mutate.py [--all | --sample N] [--seed S] [--jobs N] [-k TEXT] - is there a test for each barrier, bound and wait of the CUDA backend?

mutations.txt names them. One at a time each is taken out of a copy, which is compiled (-O1) and linked with the build's other objects, and the test
that the list names must turn red. A barrier, bound or wait that no line names is an error, and so is a line that names nothing.
Without arguments a sample is tried, by a seed that is printed; -k: those whose text has TEXT."""

import argparse
import collections
import concurrent.futures
import functools
import json
import os
import random
import re
import shlex
import subprocess
import sys
import tempfile
import time

SOURCE = os.environ["TT_SOURCE_DIR"]
BUILD = os.environ["TT_BUILD_DIR"]
BACKEND = "common/nn/cuda"
LIST = os.path.join(SOURCE, "tests/simt/mutations.txt")
SAMPLE = 5
NONE = "no mutant:"  # nothing was tried
DEADLINE_S = 120  # of a test that takes seconds: a mutant that never ends is found as well

Mutant = collections.namedtuple("Mutant", "file unit test order old at new why")


def fail(text):
    print(f"mutate: {text}", file=sys.stderr)
    sys.exit(1)


# ---- what there is to be named -------------------------------------------------------------------------------------------


def without_comments(text):
    """Of the same length, so that a place is a place of the source."""
    blank = lambda found: re.sub(r"[^\n]", " ", found[0])
    text = re.sub(r"/\*.*?\*/", blank, text, flags=re.S)
    return re.sub(r"(?m)^[ \t]*#(.*\\\n)*.*$", blank, text)  # nor macros


def closing(text, at):
    """The parenthesis that ends the one at `at`."""
    depth = 0
    for end in range(at, len(text)):
        depth += {"(": 1, ")": -1}.get(text[end], 0)
        if depth == 0:
            return end
    return len(text)


def own_comparisons(text):
    """Places of the comparisons by which loops end: of a head the first one. A further one is a bound as any other."""
    own = set()
    for head in re.finditer(r"\b(for|while) \(", text):
        condition = text[head.end() - 1 : closing(text, head.end() - 1)]
        found = re.search(r" (<|>|<=|>=) ", condition)
        if found:
            own.add(head.end() - 1 + found.start())
    return own


def sites(path):
    """(place, word) of each: in kernels barriers and comparisons, in the host's part waits."""
    text = without_comments(read(path))
    if path.endswith(".c"):
        return [(found.start(), found[0]) for found in re.finditer(r"cuda(StreamSynchronize|EventSynchronize|StreamWaitEvent)\b", text)]
    own = own_comparisons(text)
    pattern = r"__syncthreads|__syncwarp| (<|>|<=|>=) "
    return [(found.start(), found[0].strip()) for found in re.finditer(pattern, text) if found.start() not in own]


def kernel_files():
    kernels = os.path.join(SOURCE, BACKEND, "kernels")
    return sorted(f"kernels/{name}" for name in os.listdir(kernels)) + ["loss.cuh"]


def host_files():
    return sorted(name for name in os.listdir(os.path.join(SOURCE, BACKEND)) if name.endswith(".c"))


def read(file):
    with open(os.path.join(SOURCE, BACKEND, file), encoding="utf-8") as of:
        return of.read()


# ---- the list ------------------------------------------------------------------------------------------------------------


def place(text, old, number, where):
    """Of the number-th `old`; without a number there is one."""
    at = [found.start() for found in re.finditer(re.escape(old), text)]
    if not at or len(at) < number or (number == 0 and len(at) > 1):
        fail(f"{where}: '{old}' is there {len(at)} times; say which one as '2: {old}'" if at else f"{where}: '{old}' is not there any more")
    return at[max(number - 1, 0)]


def replacement(old, where):
    """What is left of it: a barrier of nothing, and a bound that everything is within."""
    if "__sync" in old:
        return "(void)0"
    if "cudaStreamSynchronize" in old:
        return "cudaSuccess"
    words = re.findall(r" (<|<=|>|>=) ", old)
    if len(words) != 1:
        fail(f"{where}: '{old}' has {len(words)} comparisons; say what becomes of it: OLD -> NEW")
    return "true" if words[0][0] == "<" else "false"


def read_list():
    """Sections '== FILE: TEST [ORDER]', '== FILE of UNIT: ...'; lines '[N: ]OLD[ -> NEW][ @ ORDER][ ~ why it may stay green, or is no bound]'."""
    mutants, head = [], None
    for number, line in enumerate(open(LIST, encoding="utf-8"), 1):
        line, where = line.rstrip("\n"), f"mutations.txt:{number}"
        if not line or line.startswith("#"):
            continue
        if line.startswith("=="):
            head = re.fullmatch(r"== (\S+?)(?: of (\S+))?: (\S+)(?: (\S+))?", line) or fail(f"{where}: a section is '== FILE: TEST [ORDER]'")
            continue
        rest, _, why = line.partition(" ~ ")
        rest, _, other = rest.partition(" @ ")
        old, arrow, new = rest.partition(" -> ")
        nth = re.match(r"(\d+): ", old)
        old = old[nth.end() :] if nth else old
        file, unit, test, order = head.groups()
        at = place(read(file), old, int(nth[1]) if nth else 0, where)
        if not arrow:
            new = None if why else replacement(old, where)
        mutants.append(Mutant(file, unit or file, test, other or order, old, at, new, why))
    return mutants


def check_complete(mutants):
    missing = []
    for file in kernel_files() + host_files():
        named = [(m.at, m.at + len(m.old)) for m in mutants if m.file == file]
        text = read(file)
        for at, word in sites(file):
            if not any(begin <= at < end for begin, end in named):
                line = text.count("\n", 0, at) + 1
                missing.append(f"{BACKEND}/{file}:{line}: {word}: {text.splitlines()[line - 1].strip()}")
    if missing:
        fail("mutations.txt names no test for\n" + "\n".join(missing))


# ---- one mutant ----------------------------------------------------------------------------------------------------------


@functools.cache
def command_of(target):
    """How ninja makes it."""
    said = subprocess.run(["ninja", "-C", BUILD, "-t", "commands", "-s", target], capture_output=True, text=True, timeout=60)
    if said.returncode or not said.stdout:
        fail(f"ninja does not say how {target} is made: {said.stderr}")
    return said.stdout.strip()


class Build:
    """What the build's own objects and programs are made by."""

    def __init__(self):
        with open(os.path.join(BUILD, "compile_commands.json"), encoding="utf-8") as of:
            self.commands = {entry["output"] if "output" in entry else self.output(entry): entry for entry in json.load(of)}

    @staticmethod
    def output(entry):
        words = shlex.split(entry["command"])
        return words[words.index("-o") + 1]

    def object(self, unit):
        stem = os.path.basename(unit).split(".")[0]
        suffix = f"tt_card_host.dir/{unit}.o" if of_host(unit) else f"tt_card_kernels.dir/cc/{stem}.cc.o"
        return next((name for name in self.commands if name.endswith(suffix)), None) or fail(f"the build has no object of {unit}")

    def compile(self, mutant, folder, out):
        copy = os.path.join(folder, BACKEND, mutant.file)
        os.makedirs(os.path.dirname(copy))
        text = read(mutant.file)
        with open(copy, "w", encoding="utf-8") as of:
            of.write(text[: mutant.at] + mutant.new + text[mutant.at + len(mutant.old) :])
        wanted = copy if mutant.unit == mutant.file else os.path.join(SOURCE, unit_path(mutant.unit))
        main = os.path.join(folder, "mutant.c" if of_host(mutant.unit) else "mutant.cc")
        with open(main, "w", encoding="utf-8") as of:
            of.write(f'#include "{wanted}"\n')
        words = shlex.split(self.commands[self.object(mutant.unit)]["command"])
        compiler = next(i for i, word in enumerate(words) if word.startswith("-"))
        keep = [word for word in words[compiler:] if word != "-Werror"]
        keep[keep.index("-o") + 1] = out
        keep[keep.index("-c") + 1] = main
        return subprocess.run([words[compiler - 1], f"-I{folder}"] + keep + ["-O1", "-w"], capture_output=True, text=True, cwd=BUILD, timeout=300)

    def link(self, mutant, target, obj, out):
        command = command_of(target).replace(self.object(mutant.unit), obj)
        if obj not in command:
            fail(f"{target} has no {mutant.unit}")
        return subprocess.run(re.sub(r" -o \S+", f" -o {out}", command, count=1), shell=True, capture_output=True, text=True, cwd=BUILD, timeout=300)


def of_host(unit):
    return unit in host_files()


def unit_path(unit):
    return os.path.join(BACKEND, unit) if os.path.exists(os.path.join(SOURCE, BACKEND, unit)) else unit


def red(program, environment):
    """How the test fails; None if it passes. The first failure is enough."""
    test = subprocess.Popen([program], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", env={**os.environ, **environment})
    try:
        waiting = concurrent.futures.ThreadPoolExecutor(1)
        failed = waiting.submit(lambda: any("[  FAILED  ]" in line for line in test.stdout))
        if failed.result(DEADLINE_S):
            return "red"
        return f"ended with {test.wait(DEADLINE_S)}" if test.wait(DEADLINE_S) else None
    except (concurrent.futures.TimeoutError, subprocess.TimeoutExpired):
        return "never ended"
    finally:
        test.kill()
        test.wait()
        waiting.shutdown()


def try_one(build, mutant):
    """What became of it, in a word or two; None: nobody noticed."""
    with tempfile.TemporaryDirectory(prefix="tt-mutant-") as folder:
        obj = os.path.join(folder, "mutant.o")
        made = build.compile(mutant, folder, obj)
        if made.returncode:
            return f"{NONE} does not compile: {made.stderr[:2000]}"
        environment = {"TT_SIMT_STREAMS" if mutant.order == "eager" else "TT_SIMT_SCHEDULE": mutant.order} if mutant.order else {}
        if mutant.test.startswith("nn."):  # it loads the backend as a library
            target, out = "bin/tutti-cuda-sim.so", os.path.join(folder, "tutti-cuda-sim.so")
            program = os.path.join(BUILD, f"tests/nn/test_{mutant.test.replace('.', '_')}")
            environment["LD_LIBRARY_PATH"] = folder
        else:
            target = f"tests/cuda/test_cuda_{mutant.test}"
            program = out = os.path.join(folder, "test")
        linked = build.link(mutant, target, obj, out)
        if linked.returncode:
            return f"{NONE} cannot be linked: {linked.stderr[:2000]}"
        return red(program, environment)


@functools.cache
def sanitizer():
    """Of the build; by the name that a reason has."""
    with open(os.path.join(BUILD, "CMakeCache.txt"), encoding="utf-8") as of:
        wish = re.search(r"(?m)^TT_SANITIZE:\w+=(.*)$", of.read())[1]
    return "AddressSanitizer" if "address" in wish else "ThreadSanitizer" if "thread" in wish else None


def stays_green(mutant):
    return bool(mutant.why) and not (sanitizer() and sanitizer() in mutant.why)


def try_all(mutants, jobs):
    build, wrong, begin = Build(), [], time.monotonic()
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        for mutant, how in zip(mutants, pool.map(lambda m: try_one(build, m), mutants)):
            good = bool(how) != stays_green(mutant) and not (how or "").startswith(NONE)
            order = f" {mutant.order}" if mutant.order else ""
            print(f"{'ok  ' if good else 'BAD '} {mutant.file}: {mutant.old} -> {mutant.new}: {mutant.test}{order}: {how or 'green'}", flush=True)
            if not good:
                wrong.append(mutant)
    killed = sum(not stays_green(m) for m in mutants) - sum(not stays_green(m) for m in wrong)
    print(f"{len(mutants)} mutants: {killed} killed, {len(mutants) - killed - len(wrong)} green for the reason given, {len(wrong)} wrong; {time.monotonic() - begin:.0f} s")
    if wrong:
        fail("a test is missing for what no test missed, or a line of mutations.txt is out of date")


def main():
    wish = argparse.ArgumentParser()
    wish.add_argument("--all", action="store_true")
    wish.add_argument("--sample", type=int, default=SAMPLE)
    wish.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 31))
    wish.add_argument("--jobs", type=int, default=1)
    wish.add_argument("-k", default="")
    wish = wish.parse_args()
    named = read_list()
    check_complete(named)
    mutants = [m for m in named if m.new is not None and wish.k in f"{m.file}: {m.old}"]
    if not wish.all and not wish.k:
        print(f"seed {wish.seed}: {wish.sample} of {len(mutants)}; again: --seed {wish.seed}")
        mutants = random.Random(wish.seed).sample(mutants, min(wish.sample, len(mutants)))
    try_all(mutants, wish.jobs)


if __name__ == "__main__":
    main()
