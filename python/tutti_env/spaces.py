"""Gymnasium's spaces: described for Tutti, and their values to and from rows of numbers.

A leaf (a space that is no dict or tuple) has an array of rows, one a slot, in the form that collector/env.h gives it.
"""

import numpy as np
from gymnasium import spaces

from tutti_env.faults import Fault

# What a box's dtype is as rows. Types that Tutti does not know go into the next larger one, with the same values.
ROWS_OF = {
    "float16": "float32", "float32": "float32", "float64": "float64", "uint8": "uint8", "bool": "bool",
    "int8": "int32", "int16": "int32", "uint16": "int32", "int32": "int32", "uint32": "int64", "int64": "int64",
}


def _box_rows(space, what):
    rows = ROWS_OF.get(np.dtype(space.dtype).name)
    if rows is None:
        raise Fault("INVALID", f"{what} is a Box of {space.dtype}, which is not supported: "
                               "float32, float64, bool or integers")
    return rows


def _bounds(space):
    """As text, since JSON has no infinity; one for all where they are all the same."""
    low, high = np.asarray(space.low, np.float64).ravel(), np.asarray(space.high, np.float64).ravel()
    if np.all(low == -np.inf) and np.all(high == np.inf):
        return {}
    same = bool(np.all(low == low[0]) and np.all(high == high[0]))
    count = 1 if same else low.size
    return {"same": same, "low": [repr(float(x)) for x in low[:count]], "high": [repr(float(x)) for x in high[:count]]}


def _parts(space):
    return space.spaces.items() if isinstance(space, spaces.Dict) else enumerate(space.spaces)


def describe(space, what):
    """As JSON for collector/gym/describe.c."""
    if isinstance(space, spaces.Dict):
        return {"kind": "dict", "parts": [dict(describe(part, f"{what}[{key!r}]"), key=str(key))
                                          for key, part in _parts(space)]}
    if isinstance(space, spaces.Tuple):
        return {"kind": "tuple", "parts": [describe(part, f"{what}[{key}]") for key, part in _parts(space)]}
    if isinstance(space, spaces.Box):
        return {"kind": "box", "dtype": _box_rows(space, what), "shape": list(space.shape), **_bounds(space)}
    if isinstance(space, spaces.Discrete):
        return {"kind": "discrete", "n": [int(space.n)], "start": [int(space.start)]}
    if isinstance(space, spaces.MultiDiscrete):
        return {"kind": "multi_discrete", "shape": list(space.shape), "n": [int(n) for n in space.nvec.ravel()],
                "start": [int(n) for n in space.start.ravel()]}
    if isinstance(space, spaces.MultiBinary):
        return {"kind": "multi_binary", "shape": list(space.shape)}
    raise Fault("INVALID", f"{what} is {type(space).__name__}, which is not supported: Box, Discrete, MultiDiscrete, "
                           "MultiBinary, and Dict and Tuple of these; env.wrappers: [NAME] may change it, with a name of "
                           "gymnasium.wrappers or a module:Class of the package's own")


def leaf_form(space):
    """(dtype, shape) of a row."""
    if isinstance(space, spaces.Box):
        return np.dtype(ROWS_OF[np.dtype(space.dtype).name]), space.shape
    if isinstance(space, spaces.Discrete):
        return np.dtype(np.int32), ()
    return np.dtype(np.uint8 if isinstance(space, spaces.MultiBinary) else np.int32), space.shape


def leaves(space, name):
    """In the order of the columns: (name, leaf)."""
    if isinstance(space, (spaces.Dict, spaces.Tuple)):
        return [leaf for key, part in _parts(space) for leaf in leaves(part, f"{name}[{key!r}]")]
    return [(name, space)]


# ---- what an env returns, into rows ---------------------------------------------------------------------------------


def _fits(value, space, rows, name):
    """The array that goes into a row, or a fault that says why not."""
    array = np.asarray(value)
    if array.shape != space.shape:
        raise Fault("INTERNAL", f"{name} has shape {array.shape}, but its space says {space.shape}")
    if array.dtype != space.dtype and not np.can_cast(array.dtype, rows.dtype, "same_kind"):
        raise Fault("INTERNAL", f"{name} is of dtype {array.dtype}, but its space says {space.dtype}")
    return array


def _array_writer(name, space, rows):
    shape, dtype, array = space.shape, np.dtype(space.dtype), np.ndarray

    def put(i, value):
        if type(value) is not array or value.dtype is not dtype or value.shape != shape:
            value = _fits(value, space, rows, name)
        rows[i] = value
    return put


def _number_writer(name, _space, rows):
    def put(i, value):
        if isinstance(value, np.ndarray) and value.shape == ():
            value = value[()]
        if not isinstance(value, (int, np.integer)):
            raise Fault("INTERNAL", f"{name} is {type(value).__name__}, but its space says a whole number")
        rows[i] = value
    return put


def writer(space, rows, name):
    """put(slot, value) for a space; `rows` is an iterator over the arrays of its leaves, in order."""
    if isinstance(space, spaces.Dict):
        parts = [(key, writer(part, rows, f"{name}[{key!r}]")) for key, part in _parts(space)]

        def put_dict(i, value):
            if not hasattr(value, "keys") or set(value.keys()) != set(space.spaces):
                raise Fault("INTERNAL", f"{name} is {_keys_of(value)}, but its space says a dict of "
                                        f"{', '.join(map(repr, space.spaces))}")
            for key, put in parts:
                put(i, value[key])
        return put_dict
    if isinstance(space, spaces.Tuple):
        puts = [writer(part, rows, f"{name}[{key}]") for key, part in _parts(space)]

        def put_tuple(i, value):
            if not isinstance(value, (tuple, list)) or len(value) != len(puts):
                raise Fault("INTERNAL", f"{name} is {type(value).__name__}, but its space says a tuple of {len(puts)}")
            for put, part in zip(puts, value):
                put(i, part)
        return put_tuple
    return (_number_writer if isinstance(space, spaces.Discrete) else _array_writer)(name, space, next(rows))


# Rows up to so many bytes are gathered and written together; longer ones are written while they are in the cache.
GATHERED = 4096


def writer_of_all(space, rows, put):
    """put_all(values): a value for each slot, one after the other by `put`, or all at once where NumPy itself can see that they fit.
    None: there is nothing to be had by that."""
    if not isinstance(space, spaces.Box) or rows.dtype != space.dtype or not space.shape or rows[0].nbytes > GATHERED:
        return None
    count, length = len(rows), space.shape[0]
    flat, lengths, join = rows.reshape((count * length, *space.shape[1:])), [length] * count, np.concatenate

    def put_all(values):
        try:
            if list(map(len, values)) == lengths:
                join(values, 0, flat, casting="no")
                return
        except (TypeError, ValueError):
            pass  # another dtype or shape, or no array: what is to be said of it, if anything, the other way knows
        for i, value in enumerate(values):
            put(i, value)
    return put_all


def _keys_of(value):
    return f"a dict of {', '.join(map(repr, value))}" if hasattr(value, "keys") else type(value).__name__


# ---- which choices are allowed ------------------------------------------------------------------------------------------


def choices(space):
    """Of each element of an action: how many choices it has; None where masks are not for such a space."""
    if isinstance(space, spaces.Discrete):
        return [int(space.n)]
    return [int(n) for n in space.nvec.ravel()] if isinstance(space, spaces.MultiDiscrete) else None


def _mask_of(info, key, parts):
    if not hasattr(info, "get") or info.get(key) is None:
        there = ", ".join(map(repr, info)) if hasattr(info, "keys") else type(info).__name__
        raise Fault("INTERNAL", f"info has no {key!r}, which env.mask names; there is: {there or 'nothing'}")
    value, words = info[key], f"({sum(parts)},)" + (f", or a tuple of {len(parts)} with a shape of one element's choices each"
                                                    if len(parts) > 1 else "")
    if isinstance(value, (tuple, list)) and len(value) == len(parts) > 1:
        each = [np.asarray(part) for part in value]
        if [part.shape for part in each] != [(n,) for n in parts]:
            raise Fault("INTERNAL", f"info[{key!r}] has shapes {[part.shape for part in each]}, must be {words}")
        value = np.concatenate(each)
    value = np.asarray(value)
    if value.shape != (sum(parts),):
        raise Fault("INTERNAL", f"info[{key!r}] has shape {value.shape}, must be {words}")
    if value.dtype.kind not in "biu":
        raise Fault("INTERNAL", f"info[{key!r}] is of dtype {value.dtype}, must be bool or whole numbers")
    return value


def mask_writer(space, rows, key):
    """put(slot, info): which choices are allowed, as rows of bytes; all elements' choices one after the other."""
    parts = choices(space)

    def put(i, info):
        rows[i] = _mask_of(info, key, parts) != 0
    return put


# ---- rows, as the actions that an env takes ---------------------------------------------------------------------------


def reader(space, rows):
    """take() for a space: a list of the actions of all slots, which the env may keep."""
    if isinstance(space, (spaces.Dict, spaces.Tuple)):
        takes = [reader(part, rows) for _, part in _parts(space)]
        if isinstance(space, spaces.Tuple):
            return lambda: list(zip(*(take() for take in takes)))
        keys = list(space.spaces)
        return lambda: [dict(zip(keys, row)) for row in zip(*(take() for take in takes))]
    array = next(rows)
    return lambda: list(array.astype(space.dtype))  # a choice as np.int64, as Gymnasium's sample() and vectors give it
