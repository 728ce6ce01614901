"""images - archives that `ctr image import` reads, made from plain files; no engine and nothing from outside."""

import hashlib
import io
import json
import os
import stat
import tarfile

BUSYBOX = "/bin/busybox"  # the package busybox-static; its wget crashes when given -T


def s_entry(name, kind, mode, size=0):
    entry = tarfile.TarInfo(name)
    entry.type, entry.mode, entry.size = kind, mode, size
    return entry


def s_layer(files):
    """One layer. files: {path in the image: bytes | path of a file here | ("link", target) | ("dir", mode)}."""
    out = io.BytesIO()
    made = set()
    with tarfile.open(fileobj=out, mode="w") as tar:
        for path, content in sorted(files.items()):
            path = path.strip("/")
            parts = path.split("/")
            for depth in range(1, len(parts)):
                folder = "/".join(parts[:depth])
                if folder not in made and "/" + folder not in files and folder not in files:
                    tar.addfile(s_entry(folder, tarfile.DIRTYPE, 0o755))
                made.add(folder)
            if isinstance(content, tuple) and content[0] == "link":
                entry = s_entry(path, tarfile.SYMTYPE, 0o777)
                entry.linkname = content[1]
                tar.addfile(entry)
            elif isinstance(content, tuple):
                tar.addfile(s_entry(path, tarfile.DIRTYPE, content[1]))
                made.add(path)
            elif isinstance(content, bytes):
                tar.addfile(s_entry(path, tarfile.REGTYPE, 0o755, len(content)), io.BytesIO(content))
            else:
                with open(content, "rb") as file:
                    info = os.fstat(file.fileno())
                    tar.addfile(s_entry(path, tarfile.REGTYPE, stat.S_IMODE(info.st_mode), info.st_size), file)
    return out.getvalue()


def make_image(archive, images):
    """Write a docker-archive. images: {name with tag: {"files", "entrypoint", "env", "user", "cmd"}}; only files must be."""
    manifest = []
    with tarfile.open(archive, "w") as tar:
        def add(name, content):
            tar.addfile(s_entry(name, tarfile.REGTYPE, 0o644, len(content)), io.BytesIO(content))
        for name, image in images.items():
            layer = s_layer(image["files"])
            digest = hashlib.sha256(layer).hexdigest()
            config = json.dumps({
                "architecture": "amd64", "os": "linux",
                "config": {"Entrypoint": image.get("entrypoint"), "Cmd": image.get("cmd"), "User": image.get("user", ""),
                           "Env": ["PATH=/usr/bin:/bin"] + image.get("env", [])},
                "rootfs": {"type": "layers", "diff_ids": ["sha256:" + digest]}}).encode()
            config_name = hashlib.sha256(config).hexdigest() + ".json"
            add(f"{digest}/layer.tar", layer)
            add(config_name, config)
            manifest.append({"Config": config_name, "RepoTags": [name], "Layers": [f"{digest}/layer.tar"]})
        add("manifest.json", json.dumps(manifest).encode())


def name_oci(archive, target, name):
    """Copy an OCI archive to target with its only image called name, in the annotation that containerd takes before all
    others. False, and no copy, for a docker-archive, which names its images itself."""
    with tarfile.open(archive) as source:
        members = {member.name.removeprefix("./"): member for member in source.getmembers()}
        if "manifest.json" in members or "index.json" not in members:
            return False
        index = json.load(source.extractfile(members["index.json"]))
        if len(index["manifests"]) != 1 or not name:
            raise ValueError(f"{archive}: an OCI archive needs one image and a name for it")
        index["manifests"][0]["annotations"] = {"io.containerd.image.name": name}
        text = json.dumps(index).encode()
        with tarfile.open(target, "w") as out:
            out.addfile(s_entry("index.json", tarfile.REGTYPE, 0o644, len(text)), io.BytesIO(text))
            for path, member in members.items():
                if member.isfile() and path != "index.json":
                    out.addfile(s_entry(path, tarfile.REGTYPE, 0o644, member.size), source.extractfile(member))
    return True


def busybox_files():
    """A root with busybox and all its names."""
    names = os.popen(f"{BUSYBOX} --list").read().split()
    files = {f"bin/{name}": ("link", "busybox") for name in names if name != "busybox"}
    files.update({"bin/busybox": BUSYBOX, "tmp": ("dir", 0o1777), "etc/passwd": b"root:x:0:0::/:/bin/sh\n"})
    return files


def base_images(archive, pause):
    """The two that every full cluster has: docker.io/local/pause:1 and docker.io/local/busybox:1."""
    make_image(archive, {
        "docker.io/local/pause:1": {"files": {"pause": pause}, "entrypoint": ["/pause"]},
        "docker.io/local/busybox:1": {"files": busybox_files(), "cmd": ["/bin/sh"]}})
