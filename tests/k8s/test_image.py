#!/usr/bin/env python3
"""The image: what is in it and what is not, its size, the same bytes again; and it trains, as its user, on a read-only root."""

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile

SOURCE = os.environ["TT_SOURCE_DIR"]
TUTTI = os.environ["TUTTI"]
BUILD = os.path.join(SOURCE, "k8s/image/build")
LIMIT = 40_000_000
TEXTS = {"usr/bin/tutti", "etc/passwd", "etc/group", "etc/nsswitch.conf", "etc/ssl/certs/ca-certificates.crt"}
CONFIG = re.compile(r"usr/share/tutti/configs/[\w-]+\.yaml")
LIBRARY = re.compile(r"(usr/)?lib(64)?/([\w-]+/)?(lib[\w.+-]+\.so[.\d]*|ld-linux[\w.-]+)")

# As a container runtime has it: read-only root, /proc, empty volumes for /tmp and /runs, the image's user and environment.
CONTAINER = """
set -e
rootfs=$1; shift
mkdir "$rootfs/proc"
mount --bind "$rootfs" "$rootfs"
mount -o remount,ro,bind "$rootfs"
mount -t proc proc "$rootfs/proc"
mount -t tmpfs -o mode=1777 tmpfs "$rootfs/tmp"
mount -t tmpfs -o mode=755,uid=65532,gid=65532 tmpfs "$rootfs/runs"
exec env -i HOME=/tmp PATH=/usr/sbin:/usr/bin:/sbin:/bin chroot --userspec=65532:65532 "$rootfs" "$@"
"""


def run(*argv, **options):
    done = subprocess.run(argv, capture_output=True, text=True, timeout=300, check=False, **options)
    assert done.returncode == 0, f"{argv}: exit {done.returncode}: {done.stderr}{done.stdout}"
    return done.stdout


def build(folder):
    run(BUILD, "--binary", TUTTI, "--output", folder)
    (name,) = os.listdir(folder)
    return os.path.join(folder, name)


def blob(archive, descriptor):
    content = archive.extractfile("blobs/" + descriptor["digest"].replace(":", "/")).read()
    assert hashlib.sha256(content).hexdigest() == descriptor["digest"].split(":")[1] and len(content) == descriptor["size"]
    return content


def check_archive(path, work):
    assert os.path.getsize(path) <= LIMIT, f"{os.path.getsize(path)} bytes"
    with tarfile.open(path) as archive:
        (entry,) = json.load(archive.extractfile("index.json"))["manifests"]
        manifest = json.loads(blob(archive, entry))
        config = json.loads(blob(archive, manifest["config"]))
        layer = os.path.join(work, "layer.tar.gz")
        with open(layer, "wb") as file:
            file.write(blob(archive, manifest["layers"][0]))
    assert config["config"]["User"] == "65532:65532" and config["config"]["Entrypoint"] == ["/usr/bin/tutti"]
    assert entry["annotations"]["io.containerd.image.name"].endswith(":" + config["config"]["Labels"]["org.opencontainers.image.version"])
    return layer, config


def check_layer(path):
    with tarfile.open(path) as layer:
        members = layer.getmembers()
    names = [member.name for member in members]
    assert names == sorted(names) and len(names) == len(set(names))
    files = {member.name for member in members if member.isfile()}
    strangers = {name for name in files - TEXTS if not LIBRARY.fullmatch(name) and not CONFIG.fullmatch(name)}
    assert TEXTS <= files and not strangers, strangers
    assert not [name for name in files if "openblas" in name], files
    programs = {member.name for member in members if member.isfile() and member.mode & 0o111 and "/ld-linux" not in member.name}
    assert programs == {"usr/bin/tutti"}, programs
    for member in members:
        assert member.isfile() or member.isdir(), f"{member.name} is neither file nor folder"
        assert not member.mode & 0o6000 and member.mtime == 0, member.name
        assert (member.uid, member.gid) == ((65532, 65532) if member.name in ("runs", "var/lib/tutti") else (0, 0)), member.name
        assert not member.mode & 0o022 or member.name == "tmp", f"{member.name} can be written by others"
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
        run(BUILD, "--binary", TUTTI, "--rootfs", rootfs)
        return run("unshare", "--mount", "--pid", "--fork", "--propagation", "private", "sh", "-c", CONTAINER, "sh", rootfs,
                   *argv)

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
        path = build(os.path.join(work, "one"))
        layer, config = check_archive(path, work)
        files = check_layer(layer)
        check_containerfile(config)
        with open(path, "rb") as first, open(build(os.path.join(work, "two")), "rb") as second:
            assert first.read() == second.read(), "the same input gave other bytes"
        print(f"{os.path.getsize(path)} bytes, {len(files)} files")
        lacking = [tool for tool in ("skopeo", "unshare") if not shutil.which(tool)] + (["root"] if os.geteuid() else [])
        if lacking:
            print(f"SKIP: the image was not run or inspected, for want of {', '.join(lacking)} (tools/install-deps --ci)")
            sys.exit(77)
        seen = json.loads(run("skopeo", "inspect", "oci-archive:" + path))
        assert seen["Os"] == "linux" and len(seen["Layers"]) == 1 and seen["Env"] == config["config"]["Env"], seen
        check_runs(files, work)


main()
