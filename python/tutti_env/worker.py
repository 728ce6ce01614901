"""The worker: some slots of a range, played when the byte comes.

The socket carries what is said once: messages (four bytes of length, then JSON; ours have a byte before them), first of all which envs to make. Then
rounds are ordered and answered by turn.py: every slot of a half does what its row of `todo` says. When the range is over, a byte and a message say
how many of the envs are to stay, another byte, with new memory, which slots of the next range they are. End-of-file ends the worker.
"""

import gc
import json
import mmap
import os
import socket
import struct
import sys
import traceback

from tutti_env.faults import Fault, raised, watch_signals
from tutti_env.making import Maker
from tutti_env.turn import Turn

SOCKET, MEMORY = 3, 4
SHED, MOVE, MESSAGE, DONE = b"s", b"m", b"m", b"d"  # orders, and answers: collector/gym/worker.c
STEP, BEGIN, REST = range(3)  # collector/env_batch.h
SAVE, LOAD = 3, 4  # collector/gym/rows.h, as are these
OPENING, BEGINNING, STEPPING, CLOSING, SAVING, LOADING = range(6)
DOING = {OPENING: "making", BEGINNING: "reset of", STEPPING: "step of", CLOSING: "close of", SAVING: "saving", LOADING: "loading"}


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


def _take_with_memory():
    """A message with which other memory comes, in the place of that which we had."""
    ours = socket.socket(fileno=SOCKET)
    try:
        begins, beside, _, _ = ours.recvmsg(4, socket.CMSG_SPACE(4), socket.MSG_CMSG_CLOEXEC)
    finally:
        ours.detach()
    if not begins:
        os._exit(0)
    memory = struct.unpack("i", beside[0][2][:4])[0]
    os.dup2(memory, MEMORY, inheritable=False)
    os.close(memory)
    return json.loads(_read(struct.unpack("<I", begins + _read(4 - len(begins)))[0]))


def _tell(message):
    text = json.dumps(message).encode()
    data = memoryview(MESSAGE + struct.pack("<I", len(text)) + text)
    while data:
        data = data[os.write(SOCKET, data):]


def _fail(error, fault):
    """Say what was raised, as a fault, and end."""
    if not isinstance(error, Fault):
        traceback.print_exc()
    try:
        _tell({"error": fault.text, "status": fault.status})
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


class Half:
    """Slots that are played together. Slots have their numbers of the range everywhere."""

    def __init__(self, slots, envs, todo):
        self.slots, self.limits = slots, limits.Limits(envs, slots.start)
        self.todo, self.step_all = todo, bytes([STEP]) * len(slots)
        self.ended = []  # slots whose flags are set
        self.take = self.put_all = None


class Slots:
    """The envs of some slots, in two halves, and where their numbers lie."""

    def __init__(self):
        self.envs = []
        self.turn = None  # between two ranges

    def open(self, spec, maker):
        """As many envs as there are slots; those that are there are some of them. What they are, in words."""
        self.np, self.spec, self.all = spaces.np, spec, spec["slots"]
        ranges = [range(*half) for half in spec["halves"]]
        self.slots = [slot for half in ranges for slot in half]
        self.lo = spec["lo"]
        self.layout = spec["layout"]
        self.memory = mmap.mmap(MEMORY, self.layout["size"])
        self.now = memoryview(self.memory)[spec["progress"]:spec["progress"] + 12].cast("i")  # gym_progress_t: [slot, doing, steps made again]
        self.turn = Turn(SOCKET, memoryview(self.memory), spec)
        self._close(len(self.slots))
        for slot in self.slots[len(self.envs):]:
            self.now[0], self.now[1] = slot, OPENING
            self.envs.append(maker.make())
            if spec["loads"]:
                self._reset_for_load(slot)
        self.now[1] = OPENING
        about = maker.describe(self.envs[0])
        self._connect(ranges)
        return about

    def _reset_for_load(self, i):
        """No episode begins here; but a state goes over an env that has been through one, as in the trial. Without a seed, which ALE reads its
        game once more for: of what is drawn nothing stays."""
        self.now[1] = BEGINNING
        try:
            self.envs[-1].reset()
        except BaseException as error:  # pylint: disable=broad-except
            raise raised(f"reset of env {self.lo + i}", error) from error

    def shed(self, keep):
        """The range is over. So many of the envs stay; of all else nothing does: the memory goes with the last who looks at it."""
        self._close(keep)
        stays = {name: getattr(self, name) for name in ("envs", "slots", "lo")}
        vars(self).clear()
        vars(self).update(stays, now=[0, OPENING, 0], turn=None)

    def _column(self, name, dtype, shape=()):
        """An array of all slots."""
        dtype = self.np.dtype(dtype)
        size = int(self.np.prod(shape, dtype=int)) * dtype.itemsize
        at = self.layout[name] if isinstance(name, str) else name
        flat = self.np.frombuffer(self.memory, self.np.uint8, self.all * size, at)
        return flat.view(dtype).reshape((self.all, *shape))

    def _bytes(self, name, form="B"):
        """The same of a plain one, as a view, which Python fills faster than an array."""
        at = self.layout[name]
        return memoryview(self.memory)[at:at + self.all * struct.calcsize(form)].cast(form)

    def _leaves(self, space, name):
        forms = [spaces.leaf_form(leaf) for _, leaf in spaces.leaves(space, name)]
        return iter([self._column(at, *form) for at, form in zip(self.layout[name], forms)])

    def _connect(self, ranges):
        env = self.envs[0]
        self.env_at = dict(zip(self.slots, self.envs))
        obs = list(self._leaves(env.observation_space, "obs"))
        self.put = spaces.writer(env.observation_space, iter(obs), "the observation")
        self.put_final = spaces.writer(env.observation_space, self._leaves(env.observation_space, "final"),
                                       "the observation")
        self.put_mask = self.put_final_mask = None
        if self.spec["mask"]:
            self.put_mask, self.put_final_mask = [
                spaces.mask_writer(env.action_space, self._column(name, "uint8", (sum(spaces.choices(env.action_space)),)),
                                   self.spec["mask"]) for name in ("mask", "final_mask")]
        todo, self.seed = self._bytes("todo"), self._bytes("seed", "I")
        self.reward = self._bytes("reward", "f")
        self.terminated, self.truncated, self.begun = map(self._bytes, ("terminated", "truncated", "begun"))
        self._keep(env.action_space)
        self.halves = [self._half(slots, env, obs[0], todo) for slots in ranges]

    def _half(self, slots, env, obs, todo):
        ours = slice(slots.start, slots.stop)
        half = Half(slots, [self.env_at[slot] for slot in slots], todo[ours])
        half.take = spaces.reader(env.action_space, (rows[ours] for rows in self._leaves(env.action_space, "action")))
        if slots:
            half.put_all = spaces.writer_of_all(env.observation_space, obs[ours], lambda k, value: self._put(slots[k], value))
        return half

    def _keep(self, actions):
        """How states are saved, if they are."""
        kind, self.room = self.spec["state"]["kind"], self.spec["state"]["room"]
        rows = list(self._leaves(actions, "action"))
        self.keepers = {slot: state.KINDS[kind](env, rows) for slot, env in self.env_at.items()} if kind else {}
        self.noting = bool(self.keepers) and state.KINDS[kind].notes
        self.too_large = False

    def _state(self, i):
        """Its length, 0 = none, and the bytes."""
        at = self.layout["state"] + i * self.room
        row = memoryview(self.memory)[at:at + self.room]
        return row[:4], row[4:]

    def _save(self, i):
        self.now[0], self.now[1] = i, SAVING
        size, room = self._state(i)
        data = self.keepers[i].save()
        if len(data) > len(room):
            if not self.too_large:
                print(f"the state of env {self.lo + i} has {len(data)} bytes, {len(room)} are kept: it begins anew if it "
                      "moves, and this run is not reproducible then", flush=True)
            data, self.too_large = b"", True
        size[:] = struct.pack("<I", len(data))
        room[:] = data.ljust(len(room), b"\0")

    def _step_again(self):
        """Of an env that is loaded: each has the time of a step."""
        self.now[2] += 1
        self.now[1] = STEPPING

    def _load(self, i):
        self.now[0], self.now[1], self.now[2] = i, LOADING, 0
        size, room = self._state(i)
        length = struct.unpack("<I", size)[0]
        if length > len(room):
            raise Fault("INTERNAL", f"a saved state says that it has {length} bytes, of {len(room)}")
        self.keepers[i].load(bytes(room[:length]), self._step_again)

    def _put(self, i, value):
        self.now[0] = i
        self.put(i, value)

    def _begin(self, i):
        """What the new episode begins with."""
        self.now[1], seed = BEGINNING, self.seed[i]
        if self.noting:
            self.keepers[i].begun(seed)
        result = self.env_at[i].reset(seed=seed)
        if not isinstance(result, tuple) or len(result) != 2:
            raise Fault("INTERNAL", f"reset of env {self.lo + i} returned {_shape_of(result)}, "
                                    "must be (observation, info)")
        if self.put_mask:
            self.put_mask(i, result[1])
        return result[0]

    def _end(self, i, result):
        """The episode is over: what it ended in, and the next one."""
        self.put_final(i, result[0])
        if self.put_mask and not result[2]:  # nothing is chosen any more where it has ended for good
            self.put_final_mask(i, result[4])
        self.terminated[i], self.truncated[i], self.begun[i] = bool(result[2]), bool(result[3]), 1
        self.ended.append(i)
        self.limits.begun(i)
        observation = self._begin(i)
        self.now[1] = STEPPING
        return observation

    def _step(self, slots, envs, actions, gathers):
        """A step each; returns the observations if they are gathered. The loop is short on purpose: it is what a step costs beside the env's
        own."""
        now, rewards, seen, put = self.now, self.reward, [], None if gathers else self.put
        come, give_way = self.turn.come, self.turn.give_way
        put_mask = self.put_mask
        now[1] = STEPPING
        if self.noting:
            for i in slots:
                self.keepers[i].step(i)
        for i, env, action in zip(slots, envs, actions):
            now[0] = i
            result = env.step(action)
            try:
                observation, reward, terminated, truncated, info = result
            except (TypeError, ValueError) as error:
                raise Fault("INTERNAL", f"step of env {self.lo + i} returned {_shape_of(result)}, must be "
                                        "(observation, reward, terminated, truncated, info)") from error
            try:
                rewards[i] = reward
            except (TypeError, ValueError) as error:
                raise Fault("INTERNAL", f"the reward is {type(reward).__name__}, not a number") from error
            if terminated or truncated:
                observation = self._end(i, result)
            elif put_mask:
                put_mask(i, info)
            if put:
                put(i, observation)
            else:
                seen.append(observation)
            if come[0]:
                give_way()
        return seen

    def play(self, number):
        """What every slot of a half is to do."""
        half = self.halves[number]
        for i in half.ended:
            self.terminated[i] = self.truncated[i] = self.begun[i] = 0
        self.ended, self.limits = [], half.limits
        half.ended = self.ended
        todo, put_all = half.todo.tobytes(), half.put_all
        if todo == half.step_all:
            seen = self._step(half.slots, half.limits.stepped(), half.take(), put_all)
            if seen:
                put_all(seen)
        else:
            self._play_some(half, todo)

    def _play_some(self, half, todo):
        """Each something else."""
        half.limits.settle()
        for i, does in zip(half.slots, todo):
            if does == BEGIN:
                self.now[0] = i
                self.put(i, self._begin(i))
            elif does == SAVE:
                self._save(i)
            elif does == LOAD:
                self._load(i)
        if STEP in todo:
            _, *played = zip(*(row for row in zip(todo, half.slots, half.limits.envs, half.take()) if row[0] == STEP))
            self._step(*played, False)

    def fault(self, error):
        """In words, with what was being done to which env."""
        slot, doing = self.now[0], self.now[1]
        if isinstance(error, Fault) and "of env" not in error.text and doing != OPENING:
            return Fault(error.status, f"{DOING[doing]} env {self.lo + slot}: {error.text}")
        return raised(f"{DOING[doing]} env {self.lo + slot}", error)

    def _close(self, keep):
        """All but the first so many."""
        if keep >= len(self.envs):
            return
        was, self.now[1] = self.now[1], CLOSING
        for k, env in enumerate(self.envs[keep:], keep):
            self.now[0] = self.slots[k] if k < len(self.slots) else self.slots[0]
            try:
                env.close()
            except BaseException:  # pylint: disable=broad-except
                traceback.print_exc()
        del self.envs[keep:]
        self.now[1] = was
        gc.unfreeze()  # or what refers to itself among them would stay for good

    def close(self):
        self._close(0)


def _shape_of(result):
    return f"{len(result)} values" if isinstance(result, tuple) else type(result).__name__


def _import_ours():
    """Needs what the interpreter may not have, hence late; and leaves no compiled file beside ours."""
    global limits, sources, spaces, state, trial  # pylint: disable=global-statement
    writes, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    from tutti_env import limits, sources, spaces, state, trial  # pylint: disable=redefined-outer-name
    sys.dont_write_bytecode = writes


def _play(slots, half):
    """Whatever an env raises is its own: of our socket the same may mean that nobody is there any more."""
    try:
        slots.play(half)
    except BaseException as error:  # pylint: disable=broad-except
        _fail(error, slots.fault(error))


def _serve(slots, maker):
    """Until nobody is there any more."""
    try:
        while True:
            order = slots.turn.wait() if slots.turn else os.read(SOCKET, 1)
            if type(order) is int:
                _play(slots, order)
                slots.turn.answer(order)
            elif order == SHED:
                slots.shed(_take()["keep"])
                os.write(SOCKET, DONE)
            elif order == MOVE:
                _open(slots, _take_with_memory(), maker)
            else:
                return
    except (BrokenPipeError, ConnectionResetError):
        return
    except BaseException as error:  # pylint: disable=broad-except
        _fail(error, slots.fault(error))


def _try(maker, part, _env, read):
    """Trials of its state, a kind each time that one comes, while what was described (_env) stays open; the second
    process is told what the first one said when it is ready for it. read: what has been read so far; an env imports more when it is played."""
    def take():
        nonlocal read
        said = _take()
        read = said.pop("sources")
        return said
    while True:
        kind = _take()["kind"]
        answer = trial.save(maker, kind) if part == "save" else trial.load(maker, kind, take)
        read = sources.all_of(read)
        _tell({**answer, "sources": read})


def _describe(maker):
    """Before it is asked to save: what is it, and what was that read from? It is not closed, which could hang: it ends with the process."""
    env = maker.make()
    about = maker.describe(env)
    read = sources.all_of()
    _tell({**about, "sources": read})
    return env, read


def _open(slots, spec, maker):
    try:
        about = slots.open(spec, maker)
    except BaseException as error:  # pylint: disable=broad-except
        _fail(error, raised("opening it", error))
    _tell(about)
    if not gc.get_freeze_count():  # these are the first, or some are gone
        gc.collect()
    gc.freeze()  # what is there now stays: nobody need look through it again


def main():
    for number in (SOCKET, MEMORY):
        try:
            os.set_inheritable(number, False)  # what an env starts has no part in it
        except OSError:
            pass
    watch_signals()
    try:
        spec = _take()
        maker = Maker(spec)
        _import_ours()
        env, read = _describe(maker) if spec.get("part") == "save" else (None, ())
        if "part" in spec:
            _try(maker, spec["part"], env, read)
    except BaseException as error:  # pylint: disable=broad-except
        _fail(error, raised("opening it", error))
    slots = Slots()
    _open(slots, spec, maker)
    _serve(slots, maker)
    slots.close()
    _end(0)
