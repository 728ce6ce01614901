"""The worker: some slots of a range, played when the byte comes.

The socket carries, each way, messages (four bytes of length, then JSON) until the envs are there, then single bytes: one
comes, every slot does what its row of `todo` says, one goes back. End-of-file ends the worker.
"""

import json
import mmap
import os
import struct
import sys
import traceback

from tutti_env.faults import Fault, raised
from tutti_env.making import Maker

SOCKET, MEMORY = 3, 4
STEP, BEGIN, REST = range(3)  # collector/env_batch.h
OPENING, BEGINNING, STEPPING, CLOSING = range(4)  # collector/gym/rows.h
DOING = {OPENING: "making", BEGINNING: "reset of", STEPPING: "step of", CLOSING: "close of"}


def _read(size):
    out = b""
    while len(out) < size:
        more = os.read(SOCKET, size - len(out))
        if not more:
            os._exit(0)  # nobody is there any more
        out += more
    return out


def _take():
    return json.loads(_read(struct.unpack("<I", _read(4))[0]))


def _tell(message, mark=b""):
    text = json.dumps(message).encode()
    data = memoryview(mark + struct.pack("<I", len(text)) + text)
    while data:
        data = data[os.write(SOCKET, data):]


def _fail(fault, mark=b""):
    """Say why, and end."""
    try:
        _tell({"error": fault.text, "status": fault.status}, mark)
    except OSError:
        pass
    _end(1)


def _end(code):
    """Without the interpreter's own end, in which an env's threads and destructors could hang."""
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    finally:
        os._exit(code)


class Slots:
    """The envs of slots first .. last - 1, and where their numbers lie."""

    def __init__(self, spec, maker):
        self.np = spaces.np
        self.first, self.count = spec["first"], spec["last"] - spec["first"]
        self.lo = spec["lo"]
        self.layout = spec["layout"]
        self.memory = mmap.mmap(MEMORY, self.layout["size"])
        self.now = memoryview(self.memory)[spec["progress"]:spec["progress"] + 8].cast("i")  # [slot, doing]
        self.envs = []
        self.ended = []  # slots whose flags are set
        for i in range(self.count):
            self.now[0] = i
            self.envs.append(maker.make())

    def _column(self, name, dtype, shape=()):
        """Our rows of an array of all slots."""
        dtype = self.np.dtype(dtype)
        size = int(self.np.prod(shape, dtype=int)) * dtype.itemsize
        at = self.layout[name] if isinstance(name, str) else name
        flat = self.np.frombuffer(self.memory, self.np.uint8, self.count * size, at + self.first * size)
        return flat.view(dtype).reshape((self.count, *shape))

    def _bytes(self, name, form="B"):
        """The same of a plain one, as a view, which Python fills faster than an array."""
        size = struct.calcsize(form)
        at = self.layout[name] + self.first * size
        return memoryview(self.memory)[at:at + self.count * size].cast(form)

    def _leaves(self, space, name):
        forms = [spaces.leaf_form(leaf) for _, leaf in spaces.leaves(space, name)]
        return iter([self._column(at, *form) for at, form in zip(self.layout[name], forms)])

    def connect(self):
        env = self.envs[0]
        self.steps = [each.step for each in self.envs]
        self.put = spaces.writer(env.observation_space, self._leaves(env.observation_space, "obs"), "the observation")
        self.put_final = spaces.writer(env.observation_space, self._leaves(env.observation_space, "final"),
                                       "the observation")
        self.take = spaces.reader(env.action_space, self._leaves(env.action_space, "action"))
        self.todo, self.seed = self._bytes("todo"), self._bytes("seed", "I")
        self.reward = self._bytes("reward", "f")
        self.terminated, self.truncated, self.begun = map(self._bytes, ("terminated", "truncated", "begun"))

    def _begin(self, i, env, seed):
        self.now[1] = BEGINNING
        result = env.reset(seed=seed)
        if not isinstance(result, tuple) or len(result) != 2:
            raise Fault("INTERNAL", f"reset of env {self.lo + self.first + i} returned {_shape_of(result)}, "
                                    "must be (observation, info)")
        self.put(i, result[0])
        self.now[1] = STEPPING

    def _end(self, i, env, seed, result):
        """The episode is over: what it ended in, and the next one."""
        self.put_final(i, result[0])
        self.terminated[i], self.truncated[i], self.begun[i] = bool(result[2]), bool(result[3]), 1
        self.ended.append(i)
        self._begin(i, env, seed)

    def play(self):
        """What every slot is to do. The loop is short on purpose: it is what a step costs beside the env's own."""
        todo, seed = self.todo.tolist(), self.seed.tolist()
        action = self.take() if STEP in todo else todo
        now, put, rewards = self.now, self.put, self.reward
        for i in self.ended:
            self.terminated[i] = self.truncated[i] = self.begun[i] = 0
        self.ended = []
        now[1] = STEPPING
        for i, step in enumerate(self.steps):
            now[0] = i
            if todo[i] != STEP:
                if todo[i] == BEGIN:
                    self._begin(i, self.envs[i], seed[i])
                continue
            result = step(action[i])
            if type(result) is not tuple or len(result) != 5:
                raise Fault("INTERNAL", f"step of env {self.lo + self.first + i} returned {_shape_of(result)}, must be "
                                        "(observation, reward, terminated, truncated, info)")
            observation, reward, terminated, truncated, _ = result
            try:
                rewards[i] = reward
            except (TypeError, ValueError) as error:
                raise Fault("INTERNAL", f"the reward is {type(reward).__name__}, not a number") from error
            if terminated or truncated:
                self._end(i, self.envs[i], seed[i], result)
            else:
                put(i, observation)

    def fault(self, error):
        """In words, with what was being done to which env."""
        slot, doing = self.now[0], self.now[1]
        if isinstance(error, Fault) and "of env" not in error.text and doing != OPENING:
            return Fault(error.status, f"{DOING[doing]} env {self.lo + self.first + slot}: {error.text}")
        return raised(f"{DOING[doing]} env {self.lo + self.first + slot}", error)

    def close(self):
        self.now[1] = CLOSING
        for i, env in enumerate(self.envs):
            self.now[0] = i
            try:
                env.close()
            except BaseException:  # pylint: disable=broad-except
                traceback.print_exc()


def _shape_of(result):
    return f"{len(result)} values" if isinstance(result, tuple) else type(result).__name__


def _import_spaces():
    """Needs what the interpreter may not have, hence late; and leaves no compiled file beside ours."""
    global spaces  # pylint: disable=global-statement
    writes, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    from tutti_env import spaces  # pylint: disable=redefined-outer-name
    sys.dont_write_bytecode = writes


def _serve(slots):
    """Until nobody is there any more."""
    read, write = os.read, os.write
    try:
        while read(SOCKET, 1):
            slots.play()
            write(SOCKET, b"d")
    except (BrokenPipeError, ConnectionResetError):
        return
    except BaseException as error:  # pylint: disable=broad-except
        if not isinstance(error, Fault):
            traceback.print_exc()
        _fail(slots.fault(error), b"e")


def main():
    for number in (SOCKET, MEMORY):
        try:
            os.set_inheritable(number, False)  # what an env starts has no part in it
        except OSError:
            pass
    try:
        spec = _take()
        maker = Maker(spec)
        _import_spaces()
        if "layout" not in spec:
            env = maker.make()
            _tell(maker.describe(env))
            env.close()
            _end(0)
        slots = Slots(spec, maker)
        about = maker.describe(slots.envs[0])
        slots.connect()
    except BaseException as error:  # pylint: disable=broad-except
        if not isinstance(error, Fault):
            traceback.print_exc()
        _fail(raised("opening it", error))
    _tell(about)
    _serve(slots)
    slots.close()
    _end(0)
