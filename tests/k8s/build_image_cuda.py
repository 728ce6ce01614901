#!/usr/bin/env python3
"""The image for cards for all the tests that want one, built once: image_rig.shared(). Needs tutti-cuda.so (tools/install-cuda)."""

import sys

sys.dont_write_bytecode = True
import image_rig

image_rig.need_cards()
image_rig.build_shared("--cuda")
