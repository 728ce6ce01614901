"""elf - programs and shared libraries of this machine: what is asked of its tools."""

import os
import re
import subprocess
import sys

# Loaded by name where it is there, and not worth its 36 MB: `tutti bench kernels` compares with it.
LEFT_OUT = {"libopenblas.so.0"}


def fail(text):
    sys.exit(f"build: {text}")


def output_of(*argv, said=None, env=None):
    """said: what it reads."""
    done = subprocess.run(argv, capture_output=True, text=True, check=False, input=said, env={**os.environ, "LC_ALL": "C", **(env or {})})
    if done.returncode != 0:
        fail(f"{' '.join(argv[:8])}: {done.stderr.strip() or done.stdout.strip()}")
    return done.stdout


def is_elf(path):
    with open(path, "rb") as file:
        return file.read(4) == b"\x7fELF"


def _paths(listing):
    """Paths of all shared libraries in what ldd says, the dynamic linker among them."""
    return set(re.findall(r"(?:=> |^\s*)(/\S+) \(0x", listing, re.M))


def libraries(path):
    """Paths of all shared libraries that the dynamic linker takes for a program or library, itself included."""
    listing = output_of("ldd", path)
    if "not found" in listing:
        fail(f"{path}: {re.findall(r'.*not found', listing)}")
    return _paths(listing)


def libraries_of_many(paths):
    """The same of many at once, but for those that are not here either: what wants them does not load on this machine."""
    return _paths(output_of("ldd", *sorted(paths))) if paths else set()


def loaded_by_name(path):
    """Paths of the libraries that the program opens itself: sonames that stand in it and that it is not linked with."""
    with open(path, "rb") as file:
        # whatever stands before a name: strings may lie right behind other data
        names = {name.decode() for name in re.findall(rb"(?=(lib[\w.+-]+\.so\.\d+)\0)", file.read())}
    linked = {os.path.basename(found) for found in libraries(path)}
    known = dict(re.findall(r"^\s+(\S+) \(.*\) => (\S+)$", output_of("/sbin/ldconfig", "-p"), re.M)[::-1])
    for name in sorted(names - linked - LEFT_OUT):
        if name not in known:
            fail(f"{path} loads {name}, which is not installed")
        yield known[name]


def strip(files, work):
    """{path in the image: path here} with stripped copies, below work, in the place of programs and libraries."""
    copies = {}
    for number, (path, source) in enumerate(sorted(files.items())):
        if is_elf(source):
            copies[path] = os.path.join(work, f"{number}-{os.path.basename(path)}")
            with open(source, "rb") as whole, open(copies[path], "wb") as copy:
                copy.write(whole.read())
    if copies:
        output_of("strip", "--strip-unneeded", *copies.values())
    return {**files, **copies}
