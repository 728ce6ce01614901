"""The state of an env as bytes, and back, in this process or another: by a copy of what its wrappers and the env itself hold, or, where
that cannot be copied, by the actions since its reset, which are made again.

Bytes come from other processes of the job: a copy is pickled, and of a pickle nothing is called here but what is data (_Reader).
"""

import enum
import functools
import io
import pickle
import struct
import sys
import types

import gymnasium
import numpy as np

from tutti_env import spaces
from tutti_env.faults import Fault

# ---- which parts stay where they are, and have a state of another form --------------------------------------------------


def _layers(env):
    """The wrappers from the outermost on, then the env itself."""
    out = [env]
    while isinstance(env, gymnasium.Wrapper):
        env = env.env
        out.append(env)
    return out


def _generators(space):
    """Those that the samples of a space come from."""
    parts = space.spaces if isinstance(space, (gymnasium.spaces.Dict, gymnasium.spaces.Tuple)) else ()
    parts = parts.values() if hasattr(parts, "values") else parts
    return [getattr(space, "_np_random", None), *(one for part in parts for one in _generators(part))]


def _space_state(space):
    return [generator and generator.bit_generator.state for generator in _generators(space)]


def _put_space_state(space, states):
    if states != _space_state(space):
        space.seed(0)  # so that there are generators
        for generator, state in zip(_generators(space), states):
            if generator and state:
                generator.bit_generator.state = state


@functools.lru_cache(None)
def _array_names(of):
    """What MuJoCo keeps from one step for the next, and what of it envs read: not only the state that it integrates."""
    return [name for name in dir(of) if not name.startswith("_") and isinstance(getattr(of, name), property)]


def _arrays(data):
    for name in _array_names(type(data)):
        value = getattr(data, name)
        if type(value) is np.ndarray:
            yield name, value


def _mujoco_state(data):
    return data.time, {name: value.tobytes() for name, value in _arrays(data)}


def _put_mujoco_state(data, state):
    data.time, arrays = state
    for name, value in _arrays(data):
        if len(arrays[name]) == value.nbytes:  # else one of contacts, which a step makes anew
            value[...] = np.frombuffer(arrays[name], value.dtype).reshape(value.shape)


def _ale_state(ale):
    """All of the emulator; but the action that a sticky one repeats is no part of what it clones, and nobody can ask for it."""
    if ale.getFloat("repeat_action_probability") > 0:
        raise ValueError("ALE's states lack the action that is repeated where actions are sticky; with repeat_action_probability 0 it can be saved")
    return ale.cloneState(include_rng=True)


# By module and name, since most have not been imported: (state of it, the same put back). None: it has none that changes.
_HELD = {
    ("gymnasium.spaces.space", "Space"): (_space_state, _put_space_state),
    ("gymnasium.envs.registration", "EnvSpec"): None,
    ("gymnasium.envs.mujoco.mujoco_rendering", "MujocoRenderer"): None,
    ("ale_py._ale_py", "ALEInterface"): (_ale_state, lambda ale, state: ale.restoreState(state)),
    ("mujoco._structs", "MjModel"): None,
    ("mujoco._structs", "MjData"): (_mujoco_state, _put_mujoco_state),
}
_CODE = (types.FunctionType, types.BuiltinFunctionType, types.MethodType, types.ModuleType, type)


@functools.lru_cache(None)
def _held_type(of):
    """The row of the table, () for what is no state at all; None: it is copied."""
    for kind in of.__mro__:
        if (kind.__module__, kind.__name__) in _HELD:
            return _HELD[kind.__module__, kind.__name__] or ()
    return () if issubclass(of, (*_CODE, gymnasium.Env)) else None


def _held(value):
    return _held_type(type(value))


# ---- a copy --------------------------------------------------------------------------------------------------------------

_DATA = {
    "builtins": {"set", "frozenset", "bytearray", "complex", "range", "slice", "list", "dict", "tuple", "int", "float", "bool", "str",
                 "bytes", "object"},
    "collections": {"deque", "OrderedDict", "defaultdict", "Counter"},
    "copyreg": {"_reconstructor"},
    "random": {"Random"},
    "numpy": {"ndarray", "dtype", "float32", "float64", "int32", "int64", "uint8", "bool"},
    "numpy._core.multiarray": {"_reconstruct", "scalar"},
    "numpy.core.multiarray": {"_reconstruct", "scalar"},
    "numpy._core.numeric": {"_frombuffer"},
    "numpy.core.numeric": {"_frombuffer"},
    "numpy.random._pickle": {"__generator_ctor", "__bit_generator_ctor", "__randomstate_ctor"},
    "numpy.random._generator": {"Generator"},
    "numpy.random._pcg64": {"PCG64", "PCG64DXSM"},
    "numpy.random._philox": {"Philox"},
    "numpy.random._sfc64": {"SFC64"},
    "numpy.random._mt19937": {"MT19937"},
    "numpy.random.bit_generator": {"SeedSequence", "__pyx_unpickle_SeedSequence"},
}


def _member(kind, name):
    """Python 3.11.0 to 3.11.3 pickle a member of an enumeration as what is got from that by its name."""
    if not isinstance(kind, enum.EnumMeta) or name not in kind.__members__:
        raise pickle.UnpicklingError(f"{name} is no member of an enumeration")
    return kind[name]


def _stays(*_place):
    """Stands in a pickle for what is held: (layer, attribute), or (layer, None) for the layer itself."""


class _Writer(pickle.Pickler):
    """What is held is named by its place. Asked by type, since to be asked for every number would cost more than all else."""

    def __init__(self, file, layers, held):
        super().__init__(file, 5)
        self.places = {id(value): place for place, value in held.items()}
        self.places.update({id(layer): (number, None) for number, layer in enumerate(layers)})
        self.dispatch_table = dict.fromkeys([*map(type, held.values()), *map(type, layers)], self._reduce)

    def _reduce(self, value):
        place = self.places.get(id(value))
        return (_stays, place) if place else value.__reduce_ex__(5)


class _Reader(pickle.Unpickler):
    """A pickle says what is to be called: here types of the env's own packages and NumPy's data, and nothing else."""

    def __init__(self, file, held, roots):
        super().__init__(file)
        self.held, self.roots = held, roots

    def _held(self, number, name):
        return self.held[number, name]

    def find_class(self, module, name):
        if (module, name) == (__name__, "_stays"):
            return self._held
        if (module, name) == ("builtins", "getattr"):
            return _member
        if name in _DATA.get(module, ()):
            return super().find_class(module, name)
        if module.partition(".")[0] in self.roots and module in sys.modules:
            found = super().find_class(module, name)
            if isinstance(found, type) and found.__module__.partition(".")[0] in self.roots:
                return found
        raise pickle.UnpicklingError(f"{module}.{name} is no data of an environment")


def _name(value):
    """Of a function, a method or a type: two that have the same are taken for the same one."""
    return f"{getattr(value, '__module__', None)}.{getattr(value, '__qualname__', getattr(value, '__name__', ''))}"


class Copy:
    """Of one env. What is held stays, and must be what the saved one holds; methods of the layers are found by their names. Everything
    else that a layer has is replaced."""

    notes = False  # begun and step need not be called

    def __init__(self, env, _rows):
        self.layers = _layers(env)
        self.roots = {"gymnasium", "ale_py"} | {type(layer).__module__.partition(".")[0] for layer in self.layers}

    def begun(self, seed):
        """There is nothing to be noted, nor of steps."""

    def step(self, i):
        pass

    def _look(self):
        """{(layer, attribute): what is held there}, [what else each layer has]"""
        held, rest = {}, []
        for number, layer in enumerate(self.layers):
            rest.append({})
            for name, value in vars(layer).items():
                if _held(value) is None:
                    rest[-1][name] = value
                else:
                    held[number, name] = value
        return held, rest

    def _sign(self, value):
        """What is held, as data: (layer, name) of a layer's method, else a name; None: it has no state, and any will do."""
        if not isinstance(value, _CODE):
            return _name(type(value)) if _held(value) else None
        for number, layer in enumerate(self.layers if isinstance(value, types.MethodType) else ()):
            if value.__self__ is layer and getattr(type(layer), value.__name__, None) is value.__func__:
                return number, value.__name__
        return _name(value)

    def _stays(self, held, signs):
        """{(layer, attribute): what is held there after a load}. What has no state is made by some when it is first asked for."""
        stays = {place: value for place, value in held.items() if self._sign(value) is None}
        for (number, name), sign in signs.items():
            layer, place = self.layers[number], (number, name)
            here = self._sign(held[place]) if place in held else "nothing of the kind"
            if isinstance(sign, tuple):
                stays[place] = types.MethodType(getattr(type(self.layers[sign[0]]), sign[1]), self.layers[sign[0]])
            elif sign not in (None, here):
                raise ValueError(f"{name} of {type(layer).__name__} was {sign}, here it is {here}")
            elif sign or name in vars(layer):
                stays[place] = vars(layer)[name]
        return stays

    def save(self):
        held, rest = self._look()
        states = {place: of[0](value) for place, value in held.items() if (of := _held(value))}
        file = io.BytesIO()
        writer = _Writer(file, self.layers, held)
        writer.dump({place: self._sign(value) for place, value in held.items()})
        writer.dump((rest, states))
        return file.getvalue()

    def load(self, data, _note=None):
        held, _ = self._look()
        known = {**{(number, None): layer for number, layer in enumerate(self.layers)}, **held}
        try:
            reader = _Reader(io.BytesIO(data), known, self.roots)
            stays = self._stays(held, reader.load())
            known.update(stays)
            rest, states = reader.load()
            if len(rest) != len(self.layers):
                raise ValueError(f"{len(rest)} layers, there are {len(self.layers)}")
            for place, state in states.items():
                _held(stays[place])[1](stays[place], state)
            for number, layer in enumerate(self.layers):
                vars(layer).clear()
                vars(layer).update({**rest[number], **{name: value for (at, name), value in stays.items() if at == number}})
        except Exception as error:
            raise Fault("INTERNAL", f"a saved state is none of this environment ({type(error).__name__}: {error})") from error


# ---- the actions once more ------------------------------------------------------------------------------------------------


class Replay:
    """Of one env: the seed of its episode, and the rows of all actions since then."""

    notes = True

    def __init__(self, env, rows):
        """rows: an array for each leaf of the action space, of which one row is one action."""
        self.env, self.rows = env, rows
        self.sizes = [row.nbytes // len(row) for row in rows]
        self.begun(None)

    def begun(self, seed):
        self.seed, self.actions = seed, []

    def step(self, i):
        """Slot i is about to make the step that its rows say."""
        self.actions.append(b"".join([row[i].tobytes() for row in self.rows]))

    def save(self):
        return struct.pack("<II", self.seed, len(self.actions)) + b"".join(self.actions)

    def _actions(self, data, count):
        flat = np.frombuffer(data, np.uint8).reshape(count, sum(self.sizes))
        at, rows = 0, []
        for row, size in zip(self.rows, self.sizes):
            rows.append(np.ascontiguousarray(flat[:, at:at + size]).reshape(-1).view(row.dtype).reshape((count, *row.shape[1:])))
            at += size
        return spaces.reader(self.env.action_space, iter(rows))()

    def load(self, data, note=lambda: None):
        """note: called before each step that is made again."""
        seed, count = struct.unpack_from("<II", data.ljust(8, b"\0"))
        if len(data) != 8 + count * sum(self.sizes):
            raise Fault("INTERNAL", f"a saved state is none of this environment ({len(data)} bytes for {count} actions)")
        self.env.reset(seed=seed)
        for action in self._actions(data[8:], count) if count else ():
            note()
            self.env.step(action)
        self.begun(seed)
        self.actions = [bytes(part) for part in np.frombuffer(data, np.uint8, -1, 8).reshape(count, -1)] if count else []

KINDS = {"copy": Copy, "replay": Replay}  # the better one first, where both will do
