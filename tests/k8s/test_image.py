#!/usr/bin/env python3
"""The image: what is in it and what is not, its size, the same bytes again; and it trains, as its user, on a read-only root."""

import json
import os
import re
import sys
import tempfile

sys.dont_write_bytecode = True
import image_rig
from image_rig import SOURCE, TUTTI, build, run

LIMIT = 40_000_000
TEXTS = {"usr/bin/tutti", "etc/passwd", "etc/group", "etc/nsswitch.conf", "etc/ssl/certs/ca-certificates.crt"}
CONFIG = re.compile(r"usr/share/tutti/configs/[\w-]+\.yaml")
LIBRARY = re.compile(r"(usr/)?lib(64)?/([\w-]+/)?(lib[\w.+-]+\.so[.\d]*|ld-linux[\w.-]+)")


def check_archive(path, work):
    assert os.path.getsize(path) <= LIMIT, f"{os.path.getsize(path)} bytes"
    _, config, (layer,) = image_rig.read(path, work)
    return layer, config


def check_layer(path):
    found = image_rig.members(path)
    files = image_rig.files(found)
    strangers = {name for name in files - TEXTS if not LIBRARY.fullmatch(name) and not CONFIG.fullmatch(name)}
    assert TEXTS <= files and not strangers, strangers
    assert not [name for name in files if "openblas" in name], files
    assert image_rig.programs(found) == {"usr/bin/tutti"}, image_rig.programs(found)
    return files


def check_containerfile(config):
    """The other way to the image says the same of it."""
    with open(os.path.join(SOURCE, "k8s/image/Containerfile"), encoding="utf-8") as file:
        lines = dict(line.split(None, 1) for line in file.read().splitlines() if line and line[0] not in "# ")
    ours = config["config"]
    assert lines["ENV"].split() == ours["Env"] and lines["USER"] == ours["User"] and lines["WORKDIR"] == ours["WorkingDir"]
    assert json.loads(lines["ENTRYPOINT"]) == ours["Entrypoint"] and json.loads(lines["CMD"]) == ours["Cmd"]


def check_runs(files, work):
    count = 0

    def container(*argv):
        nonlocal count
        count += 1
        rootfs = os.path.join(work, f"rootfs-{count}")
        run(image_rig.BUILD, "--binary", TUTTI, "--rootfs", rootfs)
        return image_rig.in_container(rootfs, *argv)

    assert container("/usr/bin/tutti", "version") == run(TUTTI, "version")
    (linker,) = (name for name in files if "/ld-linux" in name)
    for library in sorted(name for name in files if ".so" in name and name != linker):
        missing = [line for line in run("unshare", "--mount", "chroot", os.path.join(work, "rootfs-1"), "/" + linker, "--list",
                                        "/" + library).splitlines() if "not found" in line]
        assert not missing, f"{library}: {missing}"
    training = ("run", "--output", "json", "--set", "stop.env_steps=20000")
    result = json.loads(container("/usr/bin/tutti", *training, "cartpole-ppo"))
    outside = json.loads(run(TUTTI, *training, os.path.join(SOURCE, "configs/cartpole-ppo.yaml"), cwd=work,
                             env={**os.environ, "HOME": work}))
    assert result["run_dir"].startswith("/runs/"), result
    assert result["weights_sha256"] == outside["weights_sha256"], (result, outside)


def main():
    with tempfile.TemporaryDirectory() as work:
        path = image_rig.shared()
        layer, config = check_archive(path, work)
        files = check_layer(layer)
        check_containerfile(config)
        with open(path, "rb") as first, open(build(os.path.join(work, "again")), "rb") as second:
            assert first.read() == second.read(), "the same input gave other bytes"
        print(f"{os.path.getsize(path)} bytes, {len(files)} files")
        image_rig.need("skopeo", "unshare")
        seen = json.loads(run("skopeo", "inspect", "oci-archive:" + path))
        assert seen["Os"] == "linux" and len(seen["Layers"]) == 1 and seen["Env"] == config["config"]["Env"], seen
        check_runs(files, work)


main()
