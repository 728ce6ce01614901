"""Pictures that an environment makes of itself, for `tutti eval --render`: collector/gym/frames.h has the other side.

Only where TUTTI_FRAMES is set. The newest picture lies in memory that Tutti has opened; it is looked at after each step."""

import os
import struct
import sys

from tutti_env.faults import Fault, one_line

VARIABLE, MODE, HEAD = "TUTTI_FRAMES", "rgb_array", struct.Struct("<IIII")


def wanted():
    return VARIABLE in os.environ


def wrap(gymnasium, env, pip):
    """The env, which now shows itself at each reset and step, up to the end of its first episode. pip: the line that brings what its
    pictures need."""
    side, _, path = os.environ[VARIABLE].partition(":")
    modes = env.metadata.get("render_modes") or []
    if MODE not in modes:
        raise Fault("INVALID", f"it makes no pictures: its render modes are {', '.join(map(str, modes)) or 'none'}, and not {MODE}")
    file = open(path, "r+b", buffering=0)  # pylint: disable=consider-using-with
    fps = env.metadata.get("render_fps") or 30

    class Frames(gymnasium.Wrapper):
        """Outermost: what others skip or stack is not shown."""

        count, over = 0, False

        def reset(self, **keywords):
            result = self.env.reset(**keywords)
            self.show()
            return result

        def step(self, action):
            result = self.env.step(action)
            self.show()
            self.over = self.over or bool(result[2]) or bool(result[3])
            return result

        def show(self):
            if self.over:
                return
            try:
                picture = self.env.render()
            except gymnasium.error.DependencyNotInstalled as error:
                raise Fault("NOT_FOUND", f"its pictures need a package that is missing ({one_line(error)}); run: {pip}") from error
            except Exception as error:
                if "mujoco" not in sys.modules or "MUJOCO_GL" in os.environ or "DISPLAY" in os.environ:
                    raise
                raise Fault("INVALID", f"MuJoCo makes no pictures without a display ({one_line(error)}); run it again with MUJOCO_GL=egl, "
                                       "or MUJOCO_GL=osmesa where that library is") from error
            shape = getattr(picture, "shape", ())
            if len(shape) != 3 or shape[2] != 3 or str(picture.dtype) != "uint8" or max(shape) > int(side):
                raise Fault("INVALID", f"its picture is {type(picture).__name__} {shape}, must be uint8 [height, width, 3] of at most "
                                       f"{side} x {side}")
            self.count += 1
            data = HEAD.pack(self.count, shape[1], shape[0], max(1, round(1000 * float(fps)))) + picture.tobytes()
            if os.pwrite(file.fileno(), data, 0) != len(data):
                raise Fault("INTERNAL", "its picture could not be handed over")

    return Frames(env)
