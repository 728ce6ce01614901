"""Pythons that have what a test needs and the system's may not: tools/test-venv makes them, build/venv-gym and others. For scripts in the
folders beside this file:

    sys.path.insert(0, os.path.join(os.environ["TT_SOURCE_DIR"], "tests"))
    import pythons

Where there is none the script ends with 77, as skipped."""

import importlib
import os
import sys


def _skip(why, venv):
    print(f"skipped: {why}; tools/test-venv makes build/{venv}")
    sys.exit(77)


def find(venv):
    """build/VENV; None: it is not there, or not complete."""
    folder = os.path.join(os.environ["TT_SOURCE_DIR"], "build", venv)
    return folder if os.path.exists(os.path.join(folder, ".complete")) else None


def folder_of(venv):
    """build/VENV, for tests that start its programs."""
    return find(venv) or _skip(f"build/{venv} is not there", venv)


def run_with(venv, *modules):
    """From here on these modules can be imported: if they cannot, the script begins anew in build/VENV."""
    try:
        for module in modules:
            importlib.import_module(module)
    except ImportError as lacking:
        folder = find(venv)
        if not folder or os.path.realpath(sys.prefix) == os.path.realpath(folder):
            _skip(lacking, venv)
        python = os.path.join(folder, "bin", "python3")
        os.execv(python, [python, *sys.argv])
