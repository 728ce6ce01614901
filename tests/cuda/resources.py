#!/usr/bin/env python3
"""What each kernel takes of each architecture's cards is what resources.txt says: registers of a thread, bytes of shared memory of a
block, bytes of a thread's stack. A kernel that grew is seen here, where a card would only be slower. After a change that is meant:

    TT_CUDA_VERSION=13.0.88 TT_CUOBJDUMP=cuobjdump TT_BUILD_DIR=build/release tests/cuda/resources.py --write
"""

import difflib
import os
import re
import subprocess
import sys

FILE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "resources.txt")
LIBRARY = os.path.join(os.environ["TT_BUILD_DIR"], "bin", "tutti-cuda.so")
HEAD = "# nvcc {version}: kernel, architecture, registers, shared memory, stack; written by tests/cuda/resources.py --write\n"


def s_run(*command, text=None):
    return subprocess.run(command, input=text, check=True, timeout=120, capture_output=True, text=True).stdout


def s_name(mangled, plain):
    """File and name. Without arguments; what an anonymous namespace is called hangs on paths."""
    file = re.search(r"_GLOBAL__N__[0-9a-f]{8}_\d+_(\w+?)_cu_", mangled)
    plain = plain.replace("(anonymous namespace)::", "").replace(" ", "").removeprefix("void")
    plain = re.sub(r"<&\(?(\w+)\(.*", r"<\1>", plain)
    return (f"{file.group(1)}." if file else "") + re.match(r"\w+(?:<[^>]*>)?", plain).group(0)


def s_measured(version):
    """The file's text as the library has it."""
    arch, rows = "", []
    for line in s_run(os.environ["TT_CUOBJDUMP"], "-res-usage", LIBRARY).splitlines():
        if found := re.match(r"arch = (\w+)", line):
            arch = found.group(1)
        elif found := re.match(r" Function (.*):$", line):
            mangled = found.group(1)
        elif found := re.match(r"  REG:(\d+) STACK:(\d+) SHARED:(\d+)", line):
            registers, stack, shared = found.groups()
            rows.append((mangled, f"{arch} {registers} {shared} {stack}\n"))
    plain = s_run("c++filt", text="\n".join(mangled for mangled, _ in rows)).splitlines()
    lines = sorted({f"{s_name(mangled, words)} {row}" for (mangled, row), words in zip(rows, plain)})
    return HEAD.format(version=version) + "".join(lines)


def main():
    text = s_measured(os.environ["TT_CUDA_VERSION"])
    if sys.argv[1:] == ["--write"]:
        with open(FILE, "w", encoding="utf-8") as out:
            out.write(text)
        return
    with open(FILE, encoding="utf-8") as file:
        wanted = file.read()
    if text != wanted:
        sys.exit("resources.txt is of other kernels:\n" + "".join(difflib.unified_diff(wanted.splitlines(True), text.splitlines(True))))


main()
