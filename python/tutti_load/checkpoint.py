"""A checkpoint's file: which one, whether it is whole, its settings and its arrays."""

import hashlib
import json
import math
import os
import re

import torch

TYPES = {"F32": (torch.float32, 4), "F64": (torch.float64, 8), "I32": (torch.int32, 4), "I64": (torch.int64, 8), "U8": (torch.uint8, 1)}
HEADER_MAX, SEAL, DIGITS = 16 << 20, b'{"__metadata__":{"checksum":"sha256:', 64


def find(path, best=False):
    """The file that a run's directory, or a path, means."""
    path = os.fspath(path)
    if not os.path.isdir(path):
        return path
    folder = os.path.join(path, "checkpoints")
    if best:
        return os.path.join(folder, "best.safetensors")
    final = os.path.join(folder, "final.safetensors")
    names = os.listdir(folder) if os.path.isdir(folder) else []
    newest = max((int(name.split(".")[0]) for name in names if re.fullmatch(r"\d{8,}\.safetensors", name)), default=None)
    # a run that is resumed has the final one of its life before until its end
    if newest is None or (os.path.exists(final) and int(Checkpoint(final).metadata["update"]) >= newest):
        return final
    return os.path.join(folder, f"{newest:08d}.safetensors")


class Checkpoint:
    """Read as docs/guide/formats.md describes it: the checksum first."""

    def __init__(self, path):
        self.path = path
        with open(path, "rb") as file:
            size = os.fstat(file.fileno()).st_size
            length = int.from_bytes(file.read(8), "little")
            if size < 8 or length > min(HEADER_MAX, size - 8):
                raise ValueError(f"{path}: not a safetensors file, or cut off")
            head = file.read(length)
            self._check(file, head)
            self._read_header(head)
            self._data, self._size = 8 + length, size - 8 - length

    def _check(self, file, head):
        if not head.startswith(SEAL):
            raise ValueError(f"{self.path}: has no checksum: not a checkpoint of Tutti, or of 0.1, or another program has saved it")
        at = 8 + len(SEAL)
        found = hashlib.sha256()
        file.seek(0)
        found.update(file.read(at))
        said = file.read(DIGITS)
        found.update(b"0" * DIGITS)
        for piece in iter(lambda: file.read(1 << 20), b""):
            found.update(piece)
        if found.hexdigest().encode() != said:
            raise ValueError(f"{self.path}: damaged: its checksum is not that of its bytes")

    def _read_header(self, head):
        self._arrays = json.loads(head)
        self.metadata = self._arrays.pop("__metadata__")
        if "config" not in self.metadata:
            raise ValueError(f"{self.path}: no config in its metadata: not a checkpoint of Tutti")

    def names(self):
        return list(self._arrays)

    def array(self, name):
        """One of its arrays, as a tensor."""
        if name not in self._arrays:
            raise ValueError(f"{self.path}: it has no array {name}")
        entry = self._arrays[name]
        begin, end = entry["data_offsets"]
        (dtype, size), shape = TYPES.get(entry["dtype"], (None, 0)), entry["shape"]
        if dtype is None or not 0 <= begin <= end <= self._size or end - begin != math.prod(shape) * size:
            raise ValueError(f"{self.path}: {name} is of an unknown type, or not where it should be")
        with open(self.path, "rb") as file:
            file.seek(self._data + begin)
            data = bytearray(file.read(end - begin))
        return torch.frombuffer(data, dtype=dtype).reshape(shape) if data else torch.empty(shape, dtype=dtype)

    def setting(self, section, key, default=None):
        """Of the resolved config, which is two levels of YAML; text."""
        found = re.search(rf"(?m)^{section}:\n(?:  .*\n)*?  {key}: (.*)$", self.metadata["config"])
        return re.sub(r"\\(.)", r"\1", found[1][1:-1]) if found and found[1][:1] == '"' else found[1] if found else default
