"""What goes wrong, in one line for a person."""

import os
import traceback


class Fault(Exception):
    """status: the name of one of Tutti's (common/base/status.h); text: what, and what to do."""

    def __init__(self, status, text):
        super().__init__(text)
        self.status = status
        self.text = text


def one_line(text, most=500):
    line = " ".join(str(text).split())
    return line if len(line) <= most else line[:most] + "..."


def _where(error):
    """The innermost line that is not of this package."""
    here = os.path.dirname(os.path.abspath(__file__))
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        if os.path.dirname(os.path.abspath(frame.filename)) != here:
            return f" ({frame.filename}:{frame.lineno})"
    return ""


def raised(what, error):
    """The env's own code raised something."""
    if isinstance(error, Fault):
        return error
    if isinstance(error, SystemExit):
        return Fault("INTERNAL", f"{what} called sys.exit({one_line(error.code)}){_where(error)}")
    words = one_line(error)
    return Fault("INTERNAL", f"{what} raised {type(error).__name__}{': ' if words else ''}{words}{_where(error)}")
