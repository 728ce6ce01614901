#!/usr/bin/env python3
"""What each kernel takes of each architecture's cards is what resources.txt says: registers of a thread, bytes of shared memory of a
block, bytes of a thread's stack, threads of a block at most, and the occupancy that is left: of the warps that a multiprocessor can hold,
how many hundredths are there when blocks of so many threads fill it. A kernel that grew is seen here, where a card would only be slower.
After a change that is meant:

    TT_CUDA_VERSION=13.0.88 TT_CUOBJDUMP=cuobjdump TT_BUILD_DIR=build/release tests/cuda/resources.py --write
"""

import difflib
import os
import re
import subprocess
import sys

sys.dont_write_bytecode = True
import launches  # noqa: E402

FILE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "resources.txt")
LIBRARY = os.path.join(os.environ["TT_BUILD_DIR"], "bin", "tutti-cuda.so")
HEAD = ("# nvcc {version}: kernel, architecture, registers, shared memory, stack, threads, occupancy in percent; "
        "written by tests/cuda/resources.py --write\n")

# Of a multiprocessor: warps, blocks, bytes of shared memory (CUDA C++ Programming Guide, technical specifications by compute capability).
# Everywhere: 65,536 registers, given to a warp by 256 and to four warps at a time; shared memory by 128 bytes.
HOLDS = {"sm_80": (64, 32, 164), "sm_89": (48, 24, 100), "sm_90": (64, 32, 228), "sm_100": (64, 32, 228), "sm_120": (48, 24, 100)}
REGISTERS, OF_A_WARP, WARPS_AT_ONCE, SHARED_UNIT, SYSTEM = 65536, 256, 4, 128, 1024  # SYSTEM: what each block takes beside its own


def s_run(*command, text=None):
    return subprocess.run(command, input=text, check=True, timeout=120, capture_output=True, text=True).stdout


def s_name(mangled, plain):
    """File and name. Without arguments; what an anonymous namespace is called hangs on paths."""
    file = re.search(r"_GLOBAL__N__[0-9a-f]{8}_\d+_(\w+?)_cu_", mangled)
    plain = plain.replace("(anonymous namespace)::", "").replace(" ", "").removeprefix("void")
    plain = re.sub(r"<&\(?(\w+)\(.*", r"<\1>", plain)
    return (f"{file.group(1)}." if file else "") + re.match(r"\w+(?:<[^>]*>)?", plain).group(0)


def s_up(number, unit):
    return -(-number // unit) * unit


def occupancy(arch, registers, shared, threads):
    """Percent. shared: the block's own, without what the system takes."""
    warps_held, blocks_held, kilobytes = HOLDS[arch]
    warps = s_up(threads, 32) // 32
    of_a_warp = s_up(registers * 32, OF_A_WARP)
    by_registers = REGISTERS // of_a_warp // WARPS_AT_ONCE * WARPS_AT_ONCE // warps
    by_shared = kilobytes * 1024 // s_up(shared + SYSTEM, SHARED_UNIT)
    return 100 * warps * min(warps_held // warps, blocks_held, by_registers, by_shared) // warps_held


def s_row(kernel, arch, registers, stack, shared):
    """Since sm_90 what is said of shared memory has the system's part in it, where a kernel has any."""
    own = shared - SYSTEM if shared and int(arch[3:]) >= 90 else shared
    threads = launches.threads(kernel)
    return f"{kernel} {arch} {registers} {shared} {stack} {threads} {occupancy(arch, registers, own, threads)}\n"


def s_measured(version):
    """The file's text as the library has it."""
    arch, rows = "", []
    for line in s_run(os.environ["TT_CUOBJDUMP"], "-res-usage", LIBRARY).splitlines():
        if found := re.match(r"arch = (\w+)", line):
            arch = found.group(1)
        elif found := re.match(r" Function (.*):$", line):
            mangled = found.group(1)
        elif found := re.match(r"  REG:(\d+) STACK:(\d+) SHARED:(\d+)", line):
            rows.append((mangled, arch, *map(int, found.groups())))
    plain = s_run("c++filt", text="\n".join(row[0] for row in rows)).splitlines()
    return HEAD.format(version=version) + "".join(sorted({s_row(s_name(row[0], words), *row[1:]) for row, words in zip(rows, plain)}))


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
