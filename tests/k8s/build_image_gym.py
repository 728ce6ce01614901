#!/usr/bin/env python3
"""The image with a Python for all the tests that want one, built once: image_rig.shared(). Needs build/venv-image (tools/test-venv)."""

import sys

sys.dont_write_bytecode = True
import image_rig

image_rig.need_venv()
image_rig.build_shared("--gym", image_rig.VENV)
