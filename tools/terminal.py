"""terminal - a program on a terminal of its own, and what stands on the screen: enough of ECMA-48 for what tutti writes.

Only the standard library. tests/e2e/screen.py looks with it, tools/screenshot draws with it.
"""

import codecs
import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import time
import unicodedata

CSI = re.compile(r"\x1b\[([?]?)([0-9;]*)([A-Za-z])")


def cells_of(char):
    """How many cells a character takes."""
    if unicodedata.combining(char) or unicodedata.category(char) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(char) in ("W", "F") else 1


class Screen:
    """Cells of (character, style), a cursor, and what a well-behaved program does not do: wrap, or write unknown escapes."""

    def __init__(self, width, height):
        self.resize(width, height, first=True)
        self.row = self.column = 0
        self.style = ""
        self.frame = False  # between the marks of mode 2026
        self.frames = 0
        self.faults = []
        self.wraps = []  # lines that were broken
        self.rest = ""
        self.decoder = codecs.getincrementaldecoder("utf-8")()
        self.styles = set()

    def resize(self, width, height, first=False):
        """As xterm does it: what no longer fits is cut off at the right, and moved out at the top."""
        old = [] if first else self.rows
        self.width, self.height = width, height
        self.rows = [[(" ", "")] * width for _ in range(height)]
        if first:
            return
        gone = max(0, self.row - height + 1)
        for new, row in zip(self.rows, old[gone:]):
            new[:min(width, len(row))] = row[:width]
        self.row -= gone
        self.column = min(self.column, width - 1)

    def text(self):
        """The lines, without the blanks at their ends."""
        return ["".join(char for char, _ in row).rstrip() for row in self.rows]

    def _scroll(self):
        self.rows.pop(0)
        self.rows.append([(" ", "")] * self.width)
        self.row -= 1

    def _newline(self):
        self.row += 1
        if self.row == self.height:
            self._scroll()

    def _put(self, char):
        cells = cells_of(char)
        if self.column + cells > self.width:
            self.wraps.append(self.text()[self.row])
            self._newline()
            self.column = 0
        if cells:
            self.rows[self.row][self.column] = (char, self.style)
            for more in range(1, cells):
                self.rows[self.row][self.column + more] = ("", self.style)
        self.column += cells

    def _erase(self, row, start):
        self.rows[row][start:] = [(" ", "")] * (self.width - len(self.rows[row][:start]))

    def _control(self, private, numbers, letter):
        first = int(numbers.split(";")[0] or 0)
        if private and letter in "hl" and numbers == "2026":
            self.frame = letter == "h"
            self.frames += letter == "l"
        elif letter == "m":
            self.style = "" if numbers in ("", "0") else numbers
            self.styles.add(self.style)
        elif letter == "A":
            self.row = max(0, self.row - max(first, 1))
        elif letter == "H" and not numbers:
            self.row = self.column = 0
        elif letter == "K" and first == 0:
            self._erase(self.row, self.column)
        elif letter == "J" and first in (0, 2):
            self._erase(self.row, self.column if first == 0 else 0)
            for row in range(self.row + 1 if first == 0 else 0, self.height):
                self._erase(row, 0)
        else:
            self.faults.append(f"an escape that nobody asked for: {private}{numbers}{letter}")

    def feed(self, data):
        """Bytes as the program wrote them; a sequence may be cut anywhere."""
        text, self.rest = self.rest + self.decoder.decode(data), ""
        at = 0
        while at < len(text):
            char = text[at]
            if char == "\x1b":
                found = CSI.match(text, at)
                if not found:
                    if len(text) - at < 16 and re.fullmatch(r"\x1b(\[[?]?[0-9;]*)?", text[at:]):
                        self.rest = text[at:]
                        return
                    self.faults.append(f"no escape sequence: {text[at:at + 8]!r}")
                    at += 1
                    continue
                self._control(*found.groups())
                at = found.end()
                continue
            if char == "\n":
                self._newline()
            elif char == "\r":
                self.column = 0
            elif unicodedata.category(char) == "Cc":
                self.faults.append(f"a control character: {char!r}")
            else:
                self._put(char)
            at += 1


class Program:
    """A program on a terminal of so many columns and rows."""

    def __init__(self, args, width, height, env, cwd=None):
        self.screen = Screen(width, height)
        self.raw = b""
        self.master, slave = pty.openpty()
        self._set_size(width, height)
        self.process = subprocess.Popen(args, stdin=slave, stdout=slave, stderr=slave, env=env, cwd=cwd,
                                        start_new_session=True)
        os.close(slave)

    def _set_size(self, width, height):
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", height, width, 0, 0))

    def resize(self, width, height):
        """As when somebody drags the window."""
        self._set_size(width, height)
        self.screen.resize(width, height)

    def read(self, wait_s):
        """What there is, after waiting for it; False: the program has closed its side."""
        if not select.select([self.master], [], [], wait_s)[0]:
            return True
        try:
            data = os.read(self.master, 65536)
        except OSError:  # EIO: nobody has the other side open
            data = b""
        self.raw += data
        self.screen.feed(data)
        return bool(data)

    def until(self, condition, deadline_s):
        """Until condition(screen) between two frames; False when the program ended, or time ran out, before."""
        end = time.monotonic() + deadline_s
        while time.monotonic() < end:
            if not self.screen.frame and condition(self.screen):
                return True
            if not self.read(0.2):
                return not self.screen.frame and bool(condition(self.screen))
        return False

    def hold(self, on):
        """Ctrl-S and Ctrl-Q."""
        os.write(self.master, b"\x13" if on else b"\x11")

    def interrupt(self):
        self.process.send_signal(signal.SIGINT)

    def end(self, deadline_s):
        """Read to the end; the exit code. Whoever has not ended by then is killed."""
        end = time.monotonic() + deadline_s
        while time.monotonic() < end and self.read(0.2):
            pass
        try:
            return self.process.wait(timeout=max(0.1, end - time.monotonic()))
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise
        finally:
            os.close(self.master)
