"""image_rig - what the tests of images share: building one, reading what is in the archive, running it as a container runtime would."""

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
SHARED = os.path.join(os.environ["TT_BUILD_DIR"], "images")
VENV = os.path.join(SOURCE, "build", "venv-image")
CARDS = os.path.join(os.path.dirname(TUTTI), "tutti-cuda.so")

# As a container runtime has it: read-only root, /proc, /dev/null, empty volumes for /tmp and /runs, the image's user and environment.
CONTAINER = """
set -e
rootfs=$1; shift
mkdir -p "$rootfs/proc" "$rootfs/dev"
mount --bind "$rootfs" "$rootfs"
mount -o remount,ro,bind "$rootfs"
mount -t proc proc "$rootfs/proc"
mount -t tmpfs -o mode=755 tmpfs "$rootfs/dev"
mknod -m 666 "$rootfs/dev/null" c 1 3
mount -t tmpfs -o mode=1777 tmpfs "$rootfs/tmp"
mount -t tmpfs -o mode=755,uid=65532,gid=65532 tmpfs "$rootfs/runs"
exec env -i HOME=/tmp PATH=/usr/sbin:/usr/bin:/sbin:/bin chroot --userspec=65532:65532 "$rootfs" "$@"
"""


def run(*argv, **options):
    done = subprocess.run(argv, capture_output=True, text=True, timeout=400, check=False, **options)
    assert done.returncode == 0, f"{argv}: exit {done.returncode}: {done.stderr}{done.stdout}"
    return done.stdout


def build(folder, *options):
    """The archive's path."""
    run(BUILD, "--binary", TUTTI, "--output", folder, *options)
    (name,) = os.listdir(folder)
    return os.path.join(folder, name)


def build_shared(*options):
    """The archive's path: for all tests of this build. Compressing is what an image costs, ten seconds of a core and forty with a Python."""
    os.makedirs(SHARED, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=SHARED) as folder:
        made = build(folder, *options)
        path = os.path.join(SHARED, os.path.basename(made))
        os.replace(made, path)
    return path


def shared(*options):
    """The plain image, or that of those options, as ctest has it made before the tests that want it; by hand, where there is none of the
    program as it is now, it is made here."""
    prefix = "tutti-" + "gym-" * ("--gym" in options) + "cuda-" * ("--cuda" in options)
    there = [os.path.join(SHARED, name) for name in (os.listdir(SHARED) if os.path.isdir(SHARED) else [])
             if re.fullmatch(re.escape(prefix) + r"\d[^-]*\.oci\.tar", name)]
    fresh = [path for path in there if os.path.getmtime(path) > os.path.getmtime(TUTTI)]
    return fresh[0] if fresh else build_shared(*options)


def load(k8s, *options, name=None):
    """Give the nodes that image, under its own name or another."""
    path = shared(*options)
    k8s.load_image(path, name or "docker.io/library/" + ":".join(os.path.basename(path).removesuffix(".oci.tar").rsplit("-", 1)))


def files_of_plain(work):
    """{path in it: that file here} of the plain image, for one that is made on it; unpacked into the folder."""
    root = os.path.join(work, "root")
    for layer in read(shared(), work)[2]:
        with tarfile.open(layer) as archive:
            archive.extractall(root)
    return {os.path.relpath(os.path.join(folder, name), root): os.path.join(folder, name) for folder, _, names in os.walk(root) for name in names}


def need_venv():
    """Else the test counts as skipped."""
    if not os.path.exists(os.path.join(VENV, ".complete")):
        print("SKIP: tools/test-venv makes build/venv-image, which this needs")
        sys.exit(77)


def need_cards():
    """Else the test counts as skipped."""
    if not os.path.exists(CARDS):
        print(f"SKIP: there is no {CARDS}: this build has no compiler for cards (tools/install-cuda)")
        sys.exit(77)


def stage(name):
    """{instruction: what it says} of the Containerfile's stage for that image."""
    with open(os.path.join(SOURCE, "k8s/image/Containerfile"), encoding="utf-8") as file:
        text = file.read()
    assert text.rindex("\nFROM scratch\n") > text.index(f"\nFROM scratch AS {name}\n"), "the last stage is the plain image"
    lines = re.search(rf"(?ms)^FROM scratch AS {name}\n(.*?)^FROM ", text)[1].splitlines()
    return dict(line.split(None, 1) for line in lines if line and line[0] not in "# ")


def check_stage(name, config):
    """The other way to the image says the same of it: the stage lies on the plain one."""
    ours, lines = config["config"], stage(name)
    assert lines["ENV"].split() == ours["Env"] and lines["USER"] == ours["User"] and lines["WORKDIR"] == ours["WorkingDir"], lines
    assert json.loads(lines["ENTRYPOINT"]) == ours["Entrypoint"] and json.loads(lines["CMD"]) == ours["Cmd"], lines


def check_first_layer(layer, plain):
    """It is the plain image's."""
    with tempfile.TemporaryDirectory() as work:
        (alone,) = read(plain, work)[2]
        with open(layer, "rb") as ours, open(alone, "rb") as theirs:
            assert ours.read() == theirs.read(), "the first layer is not that of the plain image"


def _blob(archive, descriptor):
    content = archive.extractfile("blobs/" + descriptor["digest"].replace(":", "/")).read()
    assert hashlib.sha256(content).hexdigest() == descriptor["digest"].split(":")[1] and len(content) == descriptor["size"]
    return content


def read(path, work):
    """(image's name, its config, the paths of its layers) of an archive."""
    layers = []
    with tarfile.open(path) as archive:
        (entry,) = json.load(archive.extractfile("index.json"))["manifests"]
        manifest = json.loads(_blob(archive, entry))
        config = json.loads(_blob(archive, manifest["config"]))
        for number, descriptor in enumerate(manifest["layers"]):
            layers.append(os.path.join(work, f"layer-{number}.tar.gz"))
            with open(layers[-1], "wb") as file:
                file.write(_blob(archive, descriptor))
    assert config["config"]["User"] == "65532:65532" and config["config"]["Entrypoint"] == ["/usr/bin/tutti"]
    name = entry["annotations"]["io.containerd.image.name"]
    assert name.endswith(":" + config["config"]["Labels"]["org.opencontainers.image.version"])
    return name, config, layers


def members(layer):
    """What a layer has; that all of it is of the kind that belongs into one."""
    with tarfile.open(layer) as archive:
        found = archive.getmembers()
    names = [member.name for member in found]
    assert names == sorted(names) and len(names) == len(set(names))
    for member in found:
        assert member.isfile() or member.isdir(), f"{member.name} is neither file nor folder"
        assert not member.mode & 0o6000 and member.mtime == 0, member.name
        assert (member.uid, member.gid) == ((65532, 65532) if member.name in ("runs", "var/lib/tutti") else (0, 0)), member.name
        assert not member.mode & 0o022 or member.name == "tmp", f"{member.name} can be written by others"
    return found


def files(found):
    return {member.name for member in found if member.isfile()}


def programs(found):
    return {member.name for member in found if member.isfile() and member.mode & 0o111 and "/ld-linux" not in member.name}


def need(*tools):
    """Else it is said what was not looked at, and the test counts as skipped."""
    lacking = [tool for tool in tools if not shutil.which(tool)] + (["root"] if os.geteuid() else [])
    if lacking:
        print(f"SKIP: the image was not run or inspected, for want of {', '.join(lacking)} (tools/install-deps --ci)")
        sys.exit(77)


def in_container(rootfs, *argv):
    return run("unshare", "--mount", "--pid", "--fork", "--propagation", "private", "sh", "-c", CONTAINER, "sh", rootfs, *argv)
