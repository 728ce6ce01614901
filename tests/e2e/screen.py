#!/usr/bin/env python3
"""The live block on terminals of all sizes: nothing wraps, nothing flickers, everything is there; and where there is no
terminal, plain lines."""

import os
import re
import signal
import sys

sys.dont_write_bytecode = True
from rig import DEADLINE, ENDLESS, PATIENT, SOURCE, TUTTI, check, equal, main, wait_for

sys.path.insert(0, os.path.join(SOURCE, "tools"))
from terminal import Program

NEVER_SOLVED = "algorithm.learning_rate=1e-9"
WIDE_NAME = "größe-試験-a-name-that-somebody-made-longer-than-any-screen-has-columns-and-then-a-little-longer-than-that"


def program(world, width, height, *options, name="run", **env):
    """`tutti run` without an end on a terminal."""
    args = [TUTTI, "run", world.config(), "--run-dir", os.path.join(world.path, name), "--set", ENDLESS,
            "--set", NEVER_SOLVED, *options]
    plain = {key: value for key, value in world.env.items() if key not in ("NO_COLOR", "LC_ALL", "LC_CTYPE", "LANG")}
    made = Program(args, width, height, dict(plain, **dict({"TERM": "xterm-256color", "LANG": "C.UTF-8"}, **env)))
    world.started.append(made.process)
    return made


def shows(*wanted):
    return lambda screen: all(text in "\n".join(screen.text()) for text in wanted)


def end(it, live=True):
    """Notes, log lines and the summary at the end may be longer than a line, the block may not."""
    wraps = [line for line in it.screen.wraps if not re.search(r"SIGKILL|T\d\d:\d\d:\d\d\.\d+Z ", line)]
    check(not wraps or not live, f"lines that wrap: {wraps}")
    it.interrupt()
    equal(it.end(DEADLINE), 130, "exit code after an interrupt")
    equal(it.screen.faults, [], "what a terminal did not like")


def check_block(screen):
    """The block stands on the screen once, and no line of it reaches the last column."""
    lines = screen.text()
    head = next((i for i, line in enumerate(lines) if re.search(r" \d\d:\d\d:\d\d$", line)), None)
    check(head is not None, f"no line ends with a clock: {lines}")
    for label in ("return ", "steps ") + (("replicas ",) if screen.height > 12 else ()):
        equal(sum(line.startswith(label) for line in lines), 1, f"lines {label!r} in {lines}")
    check(not re.search(r"learner(begin|gradients|wait|apply|publish)", "\n".join(lines)), f"a role runs into its stages: {lines}")
    foot = next((i for i, line in enumerate(lines) if line.startswith("stopped:")), len(lines))
    for row, line in zip(screen.rows[head:foot], lines[head:foot]):
        check(row[-1][0] == " ", f"the last column of {screen.width} is written: {line!r}")


def test_every_width(world):
    for width, height, wanted in (
            (40, 10, ("return", "steps", "update")),
            (40, 60, ("losses", "entropy", "time", "wait ", "memory")),
            (80, 24, ("losses", "entropy", "explained_variance", "time", "learner  ", " %", "memory", " left")),
            (120, 40, ("losses", "clipfrac", "time", "aggregator", "gradients", "of the time")),
            (200, 50, ("losses", "approx_kl", "charts", "time", "aggregator", "gradients", "of the time"))):
        it = program(world, width, height, "--set", "collector.replicas=2", "--set", "learner.replicas=2", "--set", PATIENT,
                     name=f"{WIDE_NAME}-{width}-{height}")
        check(it.until(shows(*wanted), DEADLINE), f"{width}x{height}: not {wanted} in {it.screen.text()}")
        check_block(it.screen)
        first = next((line for line in it.screen.text() if line.startswith("größe")), "")
        fits = width > 120
        check(re.search(r" 00:\d\d:\d\d$", first) and ("…" in first) != fits, f"the head at {width}: {it.screen.text()}")
        check(it.screen.styles - {""}, "no colour on a terminal")
        end(it)
        if height >= 40:  # else the summary has moved the block out of sight
            check_block(it.screen)
        check("stopped: SIGINT" in "\n".join(it.screen.text()), f"the end: {it.screen.text()}")


def test_a_window_that_changes(world):
    it = program(world, 160, 40, "--set", PATIENT)
    check(it.until(shows("losses", "time", "of the time"), DEADLINE), f"{it.screen.text()}")
    for width, height in ((60, 40), (60, 12), (30, 5), (100, 30), (200, 50)):
        it.resize(width, height)
        frames = it.screen.frames
        check(it.until(lambda screen, after=frames: screen.frames > after + 1, DEADLINE), f"no frame at {width}x{height}")
        it.screen.wraps.clear()  # of a frame that was under way to the window as it was
        check(it.until(lambda screen, after=it.screen.frames: screen.frames > after, DEADLINE), f"no other frame at {width}x{height}")
        lines = it.screen.text()
        equal(sum(line.startswith("return ") for line in lines), 1, f"blocks at {width}x{height}: {lines}")
        check("losses" in "\n".join(lines) or height < 30, f"losses at {width}x{height}: {lines}")
    end(it)


def test_what_happened_stays_above_the_block(world):
    it = program(world, 80, 30, "--set", "collector.replicas=2")
    check(it.until(shows("collector 2/2", "losses"), DEADLINE), f"{it.screen.text()}")
    os.kill(world.replica("collector", 1), signal.SIGKILL)
    check(it.until(shows("collector/1: killed by SIGKILL"), DEADLINE), f"{it.screen.text()}")
    check(it.until(shows("collector 2/2", "collector/1: killed by SIGKILL"), DEADLINE), f"{it.screen.text()}")
    lines = it.screen.text()
    check(lines.index(next(line for line in lines if "SIGKILL" in line)) <
          lines.index(next(line for line in lines if line.startswith("run "))), f"the note's place: {lines}")
    check_block(it.screen)
    end(it)


def test_colours_and_characters_as_asked_for(world):
    it = program(world, 100, 40, name="plain", NO_COLOR="1", LANG="C")
    check(it.until(shows("losses", "time"), DEADLINE), f"{it.screen.text()}")
    equal(it.screen.styles - {""}, set(), "styles with NO_COLOR")
    check(it.raw.isascii(), "characters that LANG=C has not")
    end(it)
    it = program(world, 100, 40, name="dumb", TERM="dumb")
    check(it.until(lambda screen: "steps" in "\n".join(screen.text()), DEADLINE), f"{it.screen.text()}")
    check(b"\x1b" not in it.raw, "an escape for a terminal that knows none")
    end(it, live=False)


def test_a_held_terminal_holds_nothing_up(world):
    """Ctrl-S: the run goes on, with a replica that is replaced meanwhile; what was to be said is said after Ctrl-Q."""
    it = program(world, 80, 24, "--set", "collector.replicas=2", name="held")
    check(it.until(shows("losses"), DEADLINE), f"{it.screen.text()}")
    it.hold(True)
    old = world.replica("collector", 1)
    os.kill(old, signal.SIGKILL)
    wait_for(lambda: world.replica("collector", 1) != old, "another collector/1")
    run_dir = os.path.join(world.path, "held")
    world.await_steps(run_dir, world.look(run_dir)["env_steps"] + 20000)
    it.hold(False)
    check(it.until(shows("collector/1: killed by SIGKILL"), DEADLINE), f"{it.screen.text()}")
    end(it)


def test_lines_for_a_pipe(world):
    """Without an end: one of a moment may be over before anything is shown of it."""
    run_dir = os.path.join(world.path, "run")
    process = world.start("run", world.config(), "--run-dir", run_dir, "--set", "collector.replicas=2", "--set", ENDLESS, "--set", NEVER_SOLVED)
    line = re.compile(r" +\d+\.\d\d s  steps [\d,]+ / 1,000,000,000  [\d,]+/s  return (-|-?[\d.]+)   goal 475"
                      r"  collector \d/2  learner \d/1  aggregator \d/0")

    def said():
        with open(process.out.name, encoding="utf-8") as file:
            return file.read()
    wait_for(lambda: any(line.fullmatch(text) for text in said().splitlines()), lambda: f"such a line: {said()}")
    equal(world.tutti("stop", run_dir).returncode, 0, "tutti stop")
    code, out, err = world.finish(process)
    equal(code, 143, f"exit code; {err}")
    check("\x1b" not in out + err, "an escape in a pipe")


if __name__ == "__main__":
    main(test_every_width, test_a_window_that_changes, test_what_happened_stays_above_the_block,
         test_colours_and_characters_as_asked_for, test_a_held_terminal_holds_nothing_up, test_lines_for_a_pipe)
