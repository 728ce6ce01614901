"""python_rig - this machine's Python in images: its folder and that of the C library are folders of the node that containers see, so nothing is
copied."""

import os
import sys

RUN = 'exec /opt/lib/ld-linux-x86-64.so.2 --library-path /opt/python/lib:/opt/lib /opt/python/bin/python3 "$@"\n'


def folders(prefix=sys.base_prefix):
    """{in the image: here}, for the cluster."""
    return {"/opt/python": prefix, "/opt/lib": os.path.dirname(os.path.realpath("/lib64/ld-linux-x86-64.so.2"))}


def files(settings="PYTHONHOME=/opt/python"):
    """{in the image: its bytes}. settings: variables of its environment."""
    script = f"#!/bin/sh\nexport {settings}\n{RUN}".encode()
    return {"usr/bin/python": script, "usr/bin/python3": script}
