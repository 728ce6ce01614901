#!/usr/bin/env python3
"""What goes wrong in `tutti export`: one message that says what to do, a code of sysexits, and nothing half-written."""

import os
import sys
import tempfile

sys.dont_write_bytecode = True
from short import cartpole, tutti  # noqa: E402

USAGE, DATA, NO_INPUT, CANT_CREATE, IO = 64, 65, 66, 73, 74


def check(what, code, words, *args, limit=None):
    """It fails like that, in a line; the folder is as it was."""
    before = sorted((name, os.path.getsize(name)) for name in os.listdir("."))
    done = tutti("export", *args, limit=limit)
    lines = done.stderr.strip().splitlines()
    if done.returncode != code or words not in done.stderr or len(lines) not in (1, 2) or done.stdout:
        sys.exit(f"{what}: {done.returncode}, not {code}, or other words than {words!r}: {done.stderr}{done.stdout}")
    if sorted((name, os.path.getsize(name)) for name in os.listdir(".")) != before:
        sys.exit(f"{what}: files have changed: {os.listdir('.')}, before {before}")
    print(f"{what}: {lines[0]}")


def main():
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        os.environ["XDG_STATE_HOME"] = os.path.join(folder, "state")
        cartpole("run")
        os.mkdir("empty")
        os.makedirs("young/checkpoints")
        whole = open("run/checkpoints/final.safetensors", "rb").read()
        for name, content in (("there.onnx", b"mine"), ("cut.safetensors", whole[:-9]), ("text.safetensors", b"no weights here"),
                              ("flipped.safetensors", whole[:-9] + bytes([whole[-9] ^ 1]) + whole[-8:])):
            with open(name, "wb") as file:
                file.write(content)
        check("no format", USAGE, "--onnx", "run")
        check("no such run", NO_INPUT, "nowhere", "nowhere", "--onnx", "a.onnx")
        check("no such file", NO_INPUT, "nowhere.safetensors", "nowhere.safetensors", "--onnx", "a.onnx")
        check("not a run", NO_INPUT, "is not the directory of a run", "empty", "--onnx", "a.onnx")
        check("a run without a checkpoint", NO_INPUT, "weights yet", "young", "--onnx", "a.onnx")
        check("best of a file", USAGE, "--best goes with a run", "run/checkpoints/final.safetensors", "--best", "--onnx", "a.onnx")
        for name in ("cut", "text", "flipped"):
            check(f"{name} file", DATA, f"{name}.safetensors", f"{name}.safetensors", "--onnx", "a.onnx")
        check("there already", CANT_CREATE, "--force", "run", "--onnx", "there.onnx")
        check("a folder that is not there", IO, "cannot write", "run", "--onnx", "no/a.onnx")
        check("a folder in the file's place", IO, "cannot write", "run", "--onnx", "empty", "--force")
        check("no room", IO, "cannot write", "run", "--onnx", "a.onnx", limit=4096)
        check("no room for another", IO, "cannot write", "run", "--onnx", "there.onnx", "--force", limit=4096)
        done = tutti("export", "run", "--onnx", "there.onnx", "--force")
        assert done.returncode == 0 and os.path.getsize("there.onnx") > 4096, done.stderr
        assert "there.onnx" in done.stdout and "CartPole-v1" in done.stdout and not done.stderr, done
        by_best = tutti("export", "run", "--best", "--onnx", "best.onnx")
        assert by_best.returncode == 0 and not [name for name in os.listdir(".") if name.endswith(".tmp")], by_best.stderr


if __name__ == "__main__":
    main()
