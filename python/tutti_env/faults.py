"""What goes wrong, in one line for a person."""

import os
import signal
import sys
import threading
import traceback


class Fault(Exception):
    """status: the name of one of Tutti's (common/base/status.h); text: what, and what to do."""

    def __init__(self, status, text):
        super().__init__(text)
        self.status = status
        self.text = text


class _Signalled(BaseException):
    """Instead of the end that its own signal would have been; not for an env to catch."""


def _meant(event, args):
    """The signal by which this process would end itself, if this call is one."""
    if event == "os.kill":
        own = args[0] in (0, os.getpid(), -os.getpgrp())
    elif event == "os.killpg":
        own = args[0] in (0, os.getpgrp())
    else:
        own = event == "signal.pthread_kill"
    number = args[1] if own else 0
    ends = number == signal.SIGKILL or (number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT) and signal.getsignal(number) == signal.SIG_DFL)
    return number if ends else 0


def watch_signals():
    """An env that sends this very process a signal to end it is told as what it is: from outside it looks like somebody's kill, after
    which it would be started again, and do it again. What it forks, and its threads, do as they like."""
    process, thread = os.getpid(), threading.get_ident()

    def look(event, args):
        if event[:7] not in ("os.kill", "signal."):
            return
        number = _meant(event, args) if os.getpid() == process and threading.get_ident() == thread else 0
        if number:
            raise _Signalled(f"sent its own process {signal.Signals(number).name}")
    sys.addaudithook(look)


def one_line(text, most=500):
    """Without what a message cannot carry, or a terminal would act on: a NUL, half a surrogate pair."""
    line = " ".join("".join(c if c.isprintable() else " " for c in str(text)).split())
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
    if isinstance(error, _Signalled):
        return Fault("INTERNAL", f"{what} {error}{_where(error)}")
    words = one_line(error)
    return Fault("INTERNAL", f"{what} raised {type(error).__name__}{': ' if words else ''}{words}{_where(error)}")
