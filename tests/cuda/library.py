#!/usr/bin/env python3
"""tutti-cuda.so as a machine sees it: code for each architecture and PTX of the oldest alone, no NVIDIA library that it or tutti could
not start without, and nobody opens it who did not ask for a card. Without a compiler of CUDA the build says that there is none, and
that is an error where it was asked for.
"""

import os
import re
import subprocess
import tempfile

TUTTI, SOURCE = os.environ["TUTTI"], os.environ["TT_SOURCE_DIR"]
LIBRARY = os.path.join(os.environ["TT_BUILD_DIR"], "bin", "tutti-cuda.so")
ARCHITECTURES = {"sm_80", "sm_89", "sm_90", "sm_100", "sm_120"}


def s_run(*command, **environment):
    return subprocess.run(command, timeout=100, capture_output=True, text=True, env=os.environ | environment)


def s_files(what):
    """Architectures of the files of a kind in the library, one for each source."""
    listed = s_run(os.environ["TT_CUOBJDUMP"], what, LIBRARY)
    assert listed.returncode == 0, listed.stderr
    return re.findall(r"\.(sm_\d+)\.(?:ptx|cubin)$", listed.stdout, re.MULTILINE)


def test_architectures():
    elf, ptx = s_files("-lelf"), s_files("-lptx")
    assert set(elf) == ARCHITECTURES, set(elf)
    assert set(ptx) == {"sm_80"}, set(ptx)
    assert all(elf.count(arch) == len(ptx) for arch in ARCHITECTURES), elf


def test_needs():
    """The runtime is in it, and the driver is looked for by that."""
    for file in (TUTTI, LIBRARY):
        needed = s_run("readelf", "-d", file)
        assert needed.returncode == 0 and "(NEEDED)" in needed.stdout, needed
        assert not re.search(r"\[lib(cuda|cublas|cudnn|nv)", needed.stdout), needed.stdout


def s_opened(device):
    """What the loader says of the files that it looks at."""
    done = s_run(TUTTI, "bench", "update", "--device", device, "--rows", "32", "--seconds", "0.01", LD_DEBUG="files")
    assert "libsodium" in done.stderr, done
    return "tutti-cuda.so" in done.stderr


def test_opened_by_who_asks():
    assert not s_opened("cpu")
    assert s_opened("auto")


def s_configure(folder, *more):
    """Where no compiler of CUDA can be found."""
    path = os.pathsep.join(p for p in os.environ["PATH"].split(os.pathsep) if not os.path.exists(os.path.join(p, "nvcc")))
    hidden = {"PATH": path, "CUDACXX": "", "XDG_CACHE_HOME": os.path.join(folder, "cache")}
    return s_run("cmake", "-S", SOURCE, "-B", os.path.join(folder, "build"), "-G", "Ninja", *more, **hidden)


WORDS = "there is no nvcc (a CUDA toolkit, or tools/install-cuda, brings it)"


def test_no_compiler():
    if os.path.exists("/usr/local/cuda/bin/nvcc"):
        return  # CMake looks there, too
    with tempfile.TemporaryDirectory() as folder:
        done = s_configure(folder)
        assert done.returncode == 0 and f"No tutti-cuda.so: {WORDS}" in done.stdout, done
        done = s_configure(folder, "-DTT_CUDA=ON")
        assert done.returncode and f"TT_CUDA=ON: {WORDS}" in " ".join(done.stderr.split()), done


test_architectures()
test_needs()
test_opened_by_who_asks()
test_no_compiler()
