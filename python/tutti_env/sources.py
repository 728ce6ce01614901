"""What an answer about an environment was read from: while none of these files has changed, the same question has the same answer."""

import os
import sys

PACKAGES = ("site-packages", "dist-packages")  # what is installed there or taken away changes the folder
MOST = 4096


def _paths():
    paths = {os.path.realpath(sys.executable), os.path.join(sys.prefix, "pyvenv.cfg")}
    paths.update(folder for folder in sys.path if os.path.basename(folder) in PACKAGES)
    for module in list(sys.modules.values()):
        file = getattr(module, "__file__", None)
        if isinstance(file, str):
            paths.add(os.path.abspath(file))
    return sorted(paths)


def all_of(known=()):
    """[[path, time of change in ns, bytes]]; None: too many, or one that is not a path to write down. known: what has been listed before,
    None as that; it stays as it was then, since it may have been read before it changed."""
    if known is None:
        return None
    out, listed = list(known), {path for path, *_ in known}
    for path in _paths():
        if path in listed:
            continue
        try:
            path.encode()
            info = os.stat(path)
        except UnicodeError:
            return None
        except OSError:
            continue  # of an archive, or gone
        out.append([path, info.st_mtime_ns, info.st_size])
    return out if len(out) <= MOST else None
