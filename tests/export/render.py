#!/usr/bin/env python3
"""`tutti eval RUN --render FILE`: the episodes that eval plays, picture by picture to the last; and what can go wrong."""

import io
import json
import os
import shutil
import struct
import subprocess
import sys
import tempfile
import time
import zlib

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.environ["TT_SOURCE_DIR"], "tests"))
import pythons  # noqa: E402

pythons.run_with("venv-gym", "gymnasium", "numpy", "PIL")
import numpy  # noqa: E402
from PIL import Image  # noqa: E402
from short import tutti  # noqa: E402

HERE = os.path.dirname(os.path.abspath(__file__))
PLUGINS = os.path.join(os.environ["TT_BUILD_DIR"], "tests", "collector", "plugins")
USAGE, DATA, UNSUPPORTED, INTERNAL, CANT_CREATE, IO = 64, 65, 69, 70, 73, 74
POLE = (202, 152, 101)


def trained(name, env, steps=600):
    with open(f"{name}.yaml", "w", encoding="utf-8") as file:
        file.write(f"env: {env}\nnum_envs: 4\nnum_steps: 64\nstop: {{env_steps: {steps}}}\n")
    done = tutti("run", f"{name}.yaml", "--run-dir", name, "--quiet")
    if done.returncode:
        sys.exit(f"{name}: {done.stderr}")
    return name


def shown(run, *words):
    """What eval says, the pictures, and how long each stays, in milliseconds."""
    done = tutti("eval", run, "--render", "out.gif", "--force", "--output", "json", *words)
    if done.returncode:
        sys.exit(f"{run}: {done.returncode}: {done.stderr}")
    said, pictures, times = json.loads(done.stdout), [], []
    about = said["render"]
    with open("out.gif", "rb") as file:
        data = file.read()
    image = Image.open(io.BytesIO(data))
    for k in range(image.n_frames):
        image.seek(k)
        pictures.append(numpy.asarray(image.convert("RGB")))
        times.append(image.info["duration"])
    assert about["bytes"] == len(data) and about["path"] == "out.gif", about
    assert pictures[0].shape == (about["height"], about["width"], 3) and about["pictures"] == len(pictures), about
    return said, pictures, times


def without_pictures(run, said, *words):
    """The same episodes are played whether or not somebody looks."""
    plain = json.loads(tutti("eval", run, "--output", "json", "--episodes", str(said["episodes"]), *words).stdout)
    assert plain["render"] is None
    assert {**plain, "render": 0} == {**said, "render": 0}, (plain, said)


def has_fallen(picture):
    """CartPole's last: the pole leans, or the cart is out of the world."""
    rows, columns = numpy.nonzero((picture == POLE).all(-1))
    if not len(rows) or columns.min() < 20 or columns.max() > 580:
        return True
    return abs(numpy.polyfit(rows, columns, 1)[0]) > 0.19  # tan 12 degrees is 0.21


def check_native():
    run = trained("cartpole", "CartPole-v1")
    said, pictures, times = shown(run, "--episodes", "2", "--seed", "5")
    assert len(pictures) == round(2 * said["length_mean"]) + 2, (len(pictures), said)
    assert [time for time in times if time > 100] == [1000, 1000] and set(times) == {20, 1000}, times
    middle = times.index(1000)
    fallen = [bool(has_fallen(pictures[i])) for i in (0, middle, middle + 1, -1)]
    assert fallen == [False, True, False, True], fallen
    without_pictures(run, said, "--seed", "5")
    said, pictures, _ = shown(run, "--max-steps", "6")
    assert len(pictures) == 7 and said["cut"] == 1, said
    said, pictures, _ = shown(trained("catch", f"{PLUGINS}/catch.so"))
    assert len(pictures) == said["length_mean"] + 1 and len({picture.tobytes() for picture in pictures}) == len(pictures)
    return run


def gym(name, wrong=""):
    return f"{{id: 'gym:shown_env:{name}', python: {sys.executable}, path: {HERE}, workers: 1{wrong}}}"


def check_gymnasium():
    run = trained("counting", gym("Counting-v0"))
    said, pictures, times = shown(run, "--episodes", "2")
    assert [int(picture[0, 0, 0]) for picture in pictures] == 2 * [30 * step for step in range(8)], "another order, or others"
    assert all((picture == picture[0, 0, 0]).all() for picture in pictures) and times == 2 * (7 * [50] + [1000]), times
    without_pictures(run, said)


def png(path):
    """A picture of a file, read with zlib alone: [height][width][3]."""
    with open(path, "rb") as file:
        data = file.read()
    assert data[:8] == b"\x89PNG\r\n\x1a\n", path
    at, packed, size = 8, b"", None
    while at < len(data):
        length, kind = struct.unpack(">I4s", data[at:at + 8])
        body = data[at + 8:at + 8 + length]
        assert struct.unpack(">I", data[at + 8 + length:at + 12 + length])[0] == zlib.crc32(kind + body), path
        if kind == b"IHDR":
            *size, depth, colours, _, _, interlaced = struct.unpack(">IIBBBBB", body)
            assert (depth, colours, interlaced) == (8, 2, 0), path
        packed += body if kind == b"IDAT" else b""
        at += 12 + length
    return unfiltered(zlib.decompress(packed), *size)


def unfiltered(data, width, height):
    """Each line says how it differs from what stands left of it, above, and above to the left."""
    stride, lines = 3 * width, [bytes(3 * width)]
    assert len(data) == height * (stride + 1)
    for y in range(height):
        how, line = data[y * (stride + 1)], bytearray(data[y * (stride + 1) + 1:(y + 1) * (stride + 1)])
        up = lines[-1]
        for i in range(stride):
            left, corner = (line[i - 3], up[i - 3]) if i >= 3 else (0, 0)
            guess = left + up[i] - corner
            paeth = min((abs(guess - near), k, near) for k, near in enumerate((left, up[i], corner)))[2]
            line[i] = line[i] + (0, left, up[i], (left + up[i]) // 2, paeth)[how] & 255
        lines.append(bytes(line))
    return numpy.frombuffer(b"".join(lines[1:]), numpy.uint8).reshape(height, width, 3)


def check_frames(native):
    """The animation's pictures, none left out; of an environment that draws itself, too."""
    for run, words in ((native, ("--max-steps", "1")), ("counting", ("--episodes", "2"))):
        said, pictures, _ = shown(run, *words)
        done = tutti("eval", run, "--render", f"frames-{run}/", "--output", "json", *words)
        assert done.returncode == 0, done.stderr
        names = sorted(os.listdir(f"frames-{run}"))
        assert names == [f"{number + 1:06d}.png" for number in range(len(pictures))], names
        paths = [os.path.join(f"frames-{run}", name) for name in names]
        for path, picture in zip(paths, pictures):
            assert (png(path) == picture).all(), path
        about = json.loads(done.stdout)["render"]
        assert about["bytes"] == sum(map(os.path.getsize, paths)) and about["pictures"] == len(pictures), about
        assert {**json.loads(done.stdout), "render": 0} == {**said, "render": 0}
    assert not [name for name in os.listdir(".") if name.endswith(".tmp")], os.listdir(".")


def check_killed(run):
    """With -9, while it writes pictures: the same command leaves nothing of the first, and what another one is at stays."""
    endless = [os.environ["TUTTI"], "eval", run, "--render", "killed/", "--episodes", "1000000"]
    at_it = [subprocess.Popen(endless, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) for _ in range(2)]
    beside = lambda: {name for name in os.listdir(".") if name.startswith("killed.") and len(os.listdir(name)) > 10}
    try:
        while len(beside()) < 2:
            assert not [process for process in at_it if process.poll() is not None], "it has ended"
            time.sleep(0.01)
        at_it[0].kill()
        at_it[0].wait()
        done = tutti("eval", run, "--render", "killed/", "--max-steps", "1")
        assert done.returncode == 0, done.stderr
        left = beside()
        assert len(left) == 1 and f"-{at_it[1].pid}-" in left.pop(), os.listdir(".")
    finally:
        for process in at_it:
            process.kill()
            process.wait()
    shutil.rmtree("killed")
    done = tutti("eval", run, "--render", "killed/", "--max-steps", "1")
    assert done.returncode == 0 and [name for name in os.listdir(".") if name.startswith("killed")] == ["killed"], os.listdir(".")


def check_failure(what, code, words, *args, limit=None):
    before = sorted((name, os.path.getsize(name)) for name in os.listdir("."))
    done = tutti("eval", *args, limit=limit)
    if done.returncode != code or words not in done.stderr or done.stdout:
        sys.exit(f"{what}: {done.returncode}, not {code}, or other words than {words!r}: {done.stderr}{done.stdout}")
    if sorted((name, os.path.getsize(name)) for name in os.listdir(".")) != before:
        sys.exit(f"{what}: files have changed: {os.listdir('.')}")
    print(f"{what}: {done.stderr.strip().splitlines()[-1]}")


def check_failures(run):
    with open("there.gif", "w", encoding="utf-8") as file:
        file.write("mine")
    check_failure("another kind of file", USAGE, "ends neither in .gif nor in /", run, "--render", "out.mp4")
    check_failure("there already", CANT_CREATE, "--force", run, "--render", "there.gif")
    os.mkdir("frames.there")
    check_failure("a folder is there already", CANT_CREATE, "another name", run, "--render", "frames.there/", "--force")
    check_failure("no folder for the folder", IO, "cannot write", run, "--render", "no/frames/")
    check_failure("no room for a frame", IO, "cannot write", run, "--render", "frames/", limit=1024)
    check_failure("a folder that is not there", IO, "cannot write", run, "--render", "no/a.gif")
    check_failure("no room", IO, "cannot write", run, "--render", "a.gif", limit=1024)
    check_failure("nothing to be seen", UNSUPPORTED, "cannot be shown", trained("drift", f"{PLUGINS}/drift.so"), "--render", "a.gif")
    blind = trained("blind", gym("Blind-v0"))
    check_failure("no pictures", DATA, "its render modes are human, and not rgb_array", blind, "--render", "a.gif")
    for wrong, code, words in (("raises", INTERNAL, "no picture today"), ("shape", INTERNAL, "must be uint8 [height, width, 3]"),
                               ("grows", INTERNAL, "was 8 x 6, and is 8 x 7 now")):
        bad = trained(wrong, gym("Counting-v0", f", args: {{wrong: {wrong}}}"))
        check_failure(wrong, code, words, bad, "--render", "a.gif")


def main():
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        os.environ["XDG_STATE_HOME"] = os.path.join(folder, "state")
        run = check_native()
        check_gymnasium()
        check_frames(run)
        check_killed(run)
        check_failures(run)
        os.chdir("/")


if __name__ == "__main__":
    main()
