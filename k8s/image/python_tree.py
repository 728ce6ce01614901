"""python_tree - the files of a Python for an image: the interpreter that a virtual environment has, its standard library, the packages of
that environment, and the shared libraries that these are linked with. In the image all of it lies below /usr, wherever it lies here: the
program is /usr/bin/python3, and packages are where that interpreter looks for them without a virtual environment."""

import glob
import json
import os
import re

import elf

ASK = """
import json, os, sys, sysconfig
print(json.dumps({"program": os.path.realpath(sys._base_executable), "stdlib": sysconfig.get_path("stdlib"), "lib": sys.platlibdir,
                  "packages": sorted({sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}), "venv": sys.prefix != sys.base_prefix,
                  "name": "python%d.%d" % sys.version_info[:2], "tag": sys.implementation.cache_tag}))
"""
PLACE = "import os, site, sys; print(os.path.relpath(site.getsitepackages()[-1], sys.base_prefix))"  # Debian's has another name
# Bytecode, as it is loaded without a look at its source; with one order of files and of hashes its bytes are the same each time.
COMPILE = """
import json, py_compile, sys
for source, to, shown in json.load(sys.stdin):
    py_compile.compile(source, to, shown, quiet=2, invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH)
"""
# Of the standard library: tests, what shows windows, what installs packages or builds programs.
LEFT_OUT = {"__pycache__", "test", "tests", "idlelib", "lib2to3", "ensurepip", "tkinter", "turtledemo", "turtle.py", "site-packages",
            "dist-packages"}
LEFT_OUT_LIKE = re.compile(r"config-3|_tkinter\.|_test|_ctypes_test|xxlimited")


def _ask(venv):
    python = os.path.join(venv, "bin", "python3")
    if not os.path.exists(python):
        elf.fail(f"{venv} is not a virtual environment: there is no bin/python3 in it (python3 -m venv makes one)")
    told = json.loads(elf.output_of(python, "-I", "-c", ASK))
    if not told["venv"]:
        elf.fail(f"{venv} is not a virtual environment (python3 -m venv makes one)")
    with open(os.path.join(venv, "pyvenv.cfg"), encoding="utf-8") as file:
        if re.search(r"(?m)^include-system-site-packages *= *true", file.read()):
            elf.fail(f"{venv} has packages from outside of it (--system-site-packages); the image has those that are in it")
    return told


def _tree(folder, below, unwanted):
    """{path in the image: path here} of what lies in a folder."""
    found = {}
    for place, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not unwanted(name))
        for name in folders:
            if os.path.islink(os.path.join(place, name)):
                elf.fail(f"{os.path.join(place, name)} is a link to a folder; install what it is for as files")
        for name in names:
            path = os.path.join(place, name)
            if os.path.isfile(path) and not unwanted(name):
                found[os.path.join(below, os.path.relpath(path, folder))] = path
    return found


def _compiled(files, venv, tag, work):
    """{path in the image: path here} of the bytecode of what is Python among the files: nobody can write it there, and to make it anew takes
    each process that plays a second."""
    jobs, made = [], {}
    for path, source in sorted(files.items()):
        folder, name = os.path.split(path)
        if name.endswith(".py"):
            to = os.path.join(folder, "__pycache__", f"{name[:-3]}.{tag}.pyc")
            jobs.append((source, os.path.join(work, "compiled", to), "/" + path))
            made[to] = jobs[-1][1]
    elf.output_of(os.path.join(venv, "bin", "python3"), "-s", "-c", COMPILE, said=json.dumps(jobs),
                  env={"PYTHONHASHSEED": "0", "PYTHONSAFEPATH": "1", "PYTHONPATH": ""})
    return {path: source for path, source in made.items() if os.path.exists(source)}  # what is no Python of this version has none


def _check_packages(folder):
    """Nothing of it lies elsewhere."""
    for path in sorted(glob.glob(os.path.join(folder, "*.pth"))):
        with open(path, encoding="utf-8") as file:
            lines = [line for line in file.read().splitlines() if line.startswith("/")]
        if lines or os.path.basename(path).startswith("__editable__"):
            elf.fail(f"{path}: a package is used where its source lies; install it without -e")


def _add_libraries(files, linker_folder):
    """What the programs and libraries among the files are linked with and what is not among them, where the image's linker finds it."""
    here = {os.path.realpath(path) for path in files.values()}
    usual = {linker_folder, "/usr" + linker_folder, linker_folder.removeprefix("/usr")}
    for path in elf.libraries_of_many(path for path in files.values() if elf.is_elf(path)):
        if os.path.realpath(path) not in here:
            folder = os.path.dirname(path)
            kept = folder in usual or os.path.basename(path).startswith("ld-linux")
            yield (path if kept else os.path.join(linker_folder, os.path.basename(path))).lstrip("/"), path


def collect(venv, present, ours, work):
    """Of an interpreter, and of packages: {path in the image: path here}. present: what the image has without them; ours: what goes with the
    interpreter."""
    told = _ask(venv)
    stdlib, packages = f"usr/{told['lib']}/{told['name']}", {}
    (libc,) = (path for path in present.values() if os.path.basename(path) == "libc.so.6")
    place = os.path.join("usr", elf.output_of(told["program"], "-I", "-c", PLACE).strip())
    python = {"usr/bin/python3": told["program"], **ours}
    python |= _tree(told["stdlib"], stdlib, lambda name: name in LEFT_OUT or LEFT_OUT_LIKE.match(name))
    for folder in told["packages"]:
        _check_packages(folder)
        packages |= _tree(folder, place, lambda name: name == "__pycache__")
    needed = dict(_add_libraries({**python, **packages}, os.path.dirname(libc)))
    python |= {path: source for path, source in needed.items() if path not in present}
    python = elf.strip(python, work)
    return [{**files, **_compiled(files, venv, told["tag"], work)} for files in (python, packages)]
