#!/usr/bin/env python3
"""The image for cards: the plain one and a layer with tutti-cuda.so on it, the same bytes again; what NVIDIA's container runtime goes by; its
learners load the library as its user on a read-only root, and say what they lack where no driver is, or compute on the CPU."""

import json
import os
import re
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
import image_rig
from image_rig import BUILD, TUTTI, run

LIMIT = 40_000_000
LIBRARY = "usr/lib/tutti/tutti-cuda.so"
OTHERS = re.compile(r"(usr/)?lib(64)?/([\w-]+/)?lib[\w.+-]+\.so[.\d]*|etc/debian_version")
TRAINING = ("run", "cartpole-ppo", "--output", "json", "--set", "stop.env_steps=20000", "--set", "stop.return_mean=null")


def check_layers(path, plain, work):
    name, config, (base, cards) = image_rig.read(path, work)
    assert name.startswith("docker.io/library/tutti-cuda:") and config["config"]["Labels"]["org.opencontainers.image.title"] == "tutti-cuda"
    image_rig.check_first_layer(base, plain)
    found = image_rig.members(cards)
    files = image_rig.files(found)
    assert LIBRARY in files and not {name for name in files - {LIBRARY} if not OTHERS.fullmatch(name)}, files
    assert image_rig.programs(found) == set(), image_rig.programs(found)
    assert not [name for name in files if re.search(r"libcuda\.so|libnvidia", name)], "the driver is the node's"
    # where it is Debian the container runtime puts the driver where the linker looks
    assert ("etc/debian_version" in files) == os.path.exists("/etc/debian_version"), files
    env = dict(word.split("=", 1) for word in config["config"]["Env"])
    assert env["NVIDIA_VISIBLE_DEVICES"] == "all" and "compute" in env["NVIDIA_DRIVER_CAPABILITIES"].split(","), env
    return config


def check_refused(work):
    """A program without the library beside it: a message, and nothing written."""
    alone = os.path.join(work, "tutti")
    os.symlink(TUTTI, alone)
    done = subprocess.run([BUILD, "--binary", alone, "--cuda", "--output", os.path.join(work, "none")], capture_output=True, text=True, check=False)
    assert done.returncode == 1 and "tools/install-cuda" in done.stderr and "Traceback" not in done.stderr, done
    assert not os.path.exists(os.path.join(work, "none"))


def refused(rootfs, device):
    """What a run says that cannot have its device; its code."""
    done = subprocess.run(["unshare", "--mount", "--pid", "--fork", "--propagation", "private", "sh", "-c", image_rig.CONTAINER, "sh", rootfs,
                           "/usr/bin/tutti", *TRAINING, "--set", f"learner.device={device}"], capture_output=True, text=True, timeout=120, check=False)
    return done.returncode, done.stderr


def check_runs(rootfs, plain_rootfs):
    """This machine has no driver, or its container none: a learner on a card says so; `auto` trains on the CPU, to the same weights."""
    code, words = refused(rootfs, "cuda")
    assert code == 69 and "there is no NVIDIA driver here" in words, (code, words)
    code, words = refused(plain_rootfs, "cuda")
    assert code == 69 and "tutti-cuda.so: cannot open shared object file" in words, (code, words)
    got = [json.loads(image_rig.in_container(rootfs, "/usr/bin/tutti", *TRAINING, "--set", f"learner.device={device}"))["weights_sha256"]
           for device in ("auto", "cpu")]
    assert got[0] == got[1], got


def main():
    image_rig.need_cards()
    with tempfile.TemporaryDirectory() as work:
        check_refused(work)
        path = image_rig.shared("--cuda")
        os.makedirs(os.path.join(work, "layers"))
        config = check_layers(path, image_rig.shared(), os.path.join(work, "layers"))
        image_rig.check_stage("cuda", config)
        with open(path, "rb") as first, open(image_rig.build(os.path.join(work, "again"), "--cuda"), "rb") as second:
            assert first.read() == second.read(), "the same input gave other bytes"
        print(f"{os.path.getsize(path)} bytes")
        assert os.path.getsize(path) <= LIMIT
        image_rig.need("skopeo", "unshare")
        seen = json.loads(run("skopeo", "inspect", "oci-archive:" + path))
        assert seen["Os"] == "linux" and len(seen["Layers"]) == 2 and seen["Env"] == config["config"]["Env"], seen
        for name, options in (("cuda", ["--cuda"]), ("plain", [])):
            run(BUILD, "--binary", TUTTI, *options, "--rootfs", os.path.join(work, name))
        check_runs(os.path.join(work, "cuda"), os.path.join(work, "plain"))


main()
