#!/usr/bin/env python3
"""The plain image for all the tests that want one, built once: image_rig.shared()."""

import sys

sys.dont_write_bytecode = True
import image_rig

image_rig.build_shared()
