#!/usr/bin/env python3
"""The image with a Python: the plain one and two layers on it, the same bytes again; it plays and trains on what Gymnasium makes, as its
user, on a read-only root. Needs build/venv-image (tools/test-venv)."""

import contextlib
import json
import os
import re
import subprocess
import sys
import tarfile
import tempfile

sys.dont_write_bytecode = True
import image_rig
from image_rig import BUILD, SOURCE, TUTTI, VENV, run

LIMIT = 140_000_000
PYTHON = re.compile(r"usr/bin/python3|usr/lib(64)?/python3\.\d+/.+|usr/share/tutti/python/tutti_env/.+|"
                    r"(usr/)?lib(64)?/([\w-]+/)?lib[\w.+-]+\.so[.\d]*")
PACKAGES = re.compile(r"usr/lib(64)?/python3\.\d+/(site|dist)-packages/.+")
UNWANTED = re.compile(r"/(ensurepip|idlelib|tkinter|pip|setuptools)/|python3\.\d+/test/")


def check_layers(path, plain, work):
    name, config, (base, python, packages) = image_rig.read(path, work)
    assert name.startswith("docker.io/library/tutti-gym:") and config["config"]["Labels"]["org.opencontainers.image.title"] == "tutti-gym"
    image_rig.check_first_layer(base, plain)
    for layer, expected, programs in ((python, PYTHON, {"usr/bin/python3"}), (packages, PACKAGES, set())):
        found = image_rig.members(layer)
        strangers = {name for name in image_rig.files(found) if not expected.fullmatch(name) or UNWANTED.search(name)}
        assert not strangers, strangers
        assert image_rig.programs(found) == programs, image_rig.programs(found)
    with open(os.path.join(SOURCE, "k8s/image/requirements.txt"), encoding="utf-8") as file:
        wanted = [line.strip().replace("-", "_").replace("==", "-") for line in file if line[0].isalpha()]
    there = {name.split("-packages/")[1].split(".dist-info")[0] for name in image_rig.files(image_rig.members(packages)) if ".dist-info/" in name}
    assert set(wanted) <= there, (wanted, there)
    return config, [base, python, packages]


def check_same(layers, rootfs):
    """What was made a second time, as a tree, has the bytes of the first time."""
    for layer in layers:
        with tarfile.open(layer) as archive:
            for member in archive:
                with open(os.path.join(rootfs, member.name), "rb") if member.isfile() else contextlib.nullcontext() as file:
                    assert not file or file.read() == archive.extractfile(member).read(), f"{member.name} has other bytes"


def check_runs(rootfs, work):
    """It trains to the weights of the same Python outside, with bytecode that is there already."""
    seen = json.loads(image_rig.in_container(rootfs, "/usr/bin/python3", "-c", "import json, ssl, sqlite3, cv2, gymnasium as g; "
                                             "print(json.dumps([g.__file__, g.__cached__, ssl.__cached__]))"))
    assert all(path.startswith("/usr/lib") and os.path.exists(rootfs + path) for path in seen), seen
    sets = [word for item in ("num_steps=16", "stop.env_steps=384", "algorithm.epochs=1") for word in ("--set", item)]
    result = json.loads(image_rig.in_container(rootfs, "/usr/bin/tutti", "run", "qbert-ppo", "--output", "json", *sets))
    outside = json.loads(run(TUTTI, "run", os.path.join(SOURCE, "configs/qbert-ppo.yaml"), "--output", "json", *sets, cwd=work,
                             env={**os.environ, "HOME": work, "XDG_STATE_HOME": work, "VIRTUAL_ENV": VENV, "TT_PYTHON": ""}))
    assert result["updates"] >= 2 and result["weights_sha256"] == outside["weights_sha256"], (result, outside)


def check_debian(work):
    """Debian's interpreter looks for packages at a place of its own."""
    python = "/usr/bin/python3"
    if subprocess.run([python, "-c", "import venv"], capture_output=True, check=False).returncode != 0:
        return
    venv, rootfs = os.path.join(work, "debian"), os.path.join(work, "debian-rootfs")
    run(python, "-m", "venv", "--without-pip", venv)
    site = next(place for place, _, _ in os.walk(venv) if place.endswith("site-packages"))
    with open(os.path.join(site, "mine.py"), "w", encoding="utf-8") as file:
        file.write("WORD = 'mine'\n")
    run(BUILD, "--binary", TUTTI, "--gym", venv, "--rootfs", rootfs)
    assert image_rig.in_container(rootfs, "/usr/bin/python3", "-c", "import mine, ssl; print(mine.WORD)") == "mine\n"


def check_refused(work):
    """Environments that an image cannot be made of: a message, and nothing written."""
    linked = os.path.join(work, "linked")
    run(sys.executable, "-m", "venv", "--without-pip", linked)
    site = next(place for place, folders, _ in os.walk(linked) if place.endswith("site-packages"))
    whole = os.path.join(work, "whole")
    run(sys.executable, "-m", "venv", "--without-pip", "--system-site-packages", whole)
    with open(os.path.join(site, "mine.pth"), "w", encoding="utf-8") as file:
        file.write(SOURCE + "\n")
    for venv, words in ((os.path.join(work, "nothing"), "there is no bin/python3"), (linked, "install it without -e"),
                        (whole, "--system-site-packages")):
        done = subprocess.run([BUILD, "--binary", TUTTI, "--gym", venv, "--output", os.path.join(work, "none")], capture_output=True,
                              text=True, check=False)
        assert done.returncode == 1 and words in done.stderr and "Traceback" not in done.stderr, done
    assert not os.path.exists(os.path.join(work, "none"))


def main():
    image_rig.need_venv()
    with tempfile.TemporaryDirectory() as work:
        check_refused(work)
        path = image_rig.shared("--gym", VENV)
        os.makedirs(os.path.join(work, "layers"))
        config, layers = check_layers(path, image_rig.shared(), os.path.join(work, "layers"))
        image_rig.check_stage("gym", config)
        rootfs = os.path.join(work, "rootfs")
        run(BUILD, "--binary", TUTTI, "--gym", VENV, "--rootfs", rootfs)
        check_same(layers, rootfs)
        print(f"{os.path.getsize(path)} bytes")
        assert os.path.getsize(path) <= LIMIT
        image_rig.need("skopeo", "unshare")
        seen = json.loads(run("skopeo", "inspect", "oci-archive:" + path))
        assert seen["Os"] == "linux" and len(seen["Layers"]) == 3 and seen["Env"] == config["config"]["Env"], seen
        check_runs(rootfs, work)
        check_debian(work)


main()
