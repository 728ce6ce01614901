"""Can the state of an env be saved? One process plays and saves, another one, whose env has been through something else, loads and plays
the same: then observations, rewards and flags must be the same, in the episode and past resets."""

import base64
import copy
import hashlib
import time

import numpy as np

from tutti_env import spaces, state
from tutti_env.faults import one_line

MOMENTS = (3, 40, 90)  # steps before each state is saved
ENOUGH_S = 1  # after so long no further one is
STEPS, RESET_AT = 64, 48  # compared after each; where a reset comes in the midst of them
LARGE = 64 << 10  # bytes beyond which actions once more are better than a copy
ROOM_MAX = 4 << 20


class Player:
    """An env with rows of its own, as a slot of a worker has them."""

    def __init__(self, maker, kind):
        self.env = maker.make()
        self.space = copy.deepcopy(self.env.action_space)
        forms = [spaces.leaf_form(leaf) for _, leaf in spaces.leaves(self.space, "action")]
        self.rows = [np.zeros((1, *shape), dtype) for dtype, shape in forms]
        self.put = spaces.writer(self.space, iter(self.rows), "the action")
        self.take = spaces.reader(self.space, iter(self.rows))
        self.keeper = state.KINDS[kind](self.env, self.rows)
        self.seed = 0
        self.parts, self.mask = spaces.choices(self.space), None
        if maker.mask:
            self.mask = np.ones((1, sum(self.parts)), bool)
            self.put_mask = spaces.mask_writer(self.space, self.mask, maker.mask)

    def begin(self, seed):
        self.seed = seed
        self.keeper.begun(seed)
        observation, info = self.env.reset(seed=seed)
        return self._seen(observation) + self._allowed(info)

    def _allowed(self, info):
        if self.mask is None:
            return b""
        self.put_mask(0, info)
        return self.mask.tobytes()

    def _sample(self):
        """Of what is allowed, where that is said."""
        if self.mask is None:
            return self.space.sample()
        draw, starts = self.space.np_random, np.ravel(self.space.start)
        each = np.split(self.mask[0], np.cumsum(self.parts)[:-1])
        chosen = [start + draw.choice(np.flatnonzero(part)) for start, part in zip(starts, each)]
        return np.int64(chosen[0]) if self.space.shape == () else np.array(chosen, self.space.dtype).reshape(self.space.shape)

    def _seen(self, observation):
        leaves = [observation]
        while any(isinstance(leaf, (dict, tuple)) for leaf in leaves):
            leaves = [part for leaf in leaves for part in (leaf.values() if isinstance(leaf, dict) else
                                                           leaf if isinstance(leaf, tuple) else (leaf,))]
        return b"".join(np.asarray(leaf).tobytes() for leaf in leaves)

    def step(self):
        self.put(0, self._sample())
        self.keeper.step(0)
        observation, reward, terminated, truncated, info = self.env.step(self.take()[0])
        seen = self._seen(observation) + repr((float(reward), bool(terminated), bool(truncated))).encode()
        return seen + (self.begin(self.seed + 1) if terminated or truncated else self._allowed(info))

    def play(self, number):
        """STEPS of them with actions that only `number` decides, as a digest of each."""
        self.space.seed(number)
        out = []
        for t in range(STEPS):
            seen = self.begin(1000 * number) if t == RESET_AT else b""
            out.append(hashlib.sha256(seen + self.step()).hexdigest()[:16])
        return out


def _why(error):
    return {"why": f"{type(error).__name__}: {one_line(error, 200)}"}


def _saved(keeper):
    try:
        return keeper.save(), None
    except Exception as error:
        return b"", _why(error)


def _impossible(maker, kind):
    """Why there is no need to try; None: try it."""
    if kind == "replay" and maker.limit() is None:
        return {"why": "episodes without a time limit have no bound of their actions"}
    return None


def save(maker, kind):
    """The first process: what the second one is to do, and what must come of it."""
    why = _impossible(maker, kind)
    if why:
        return why
    try:
        player = Player(maker, kind)
        moments, start = [], time.monotonic()
        for number, steps in enumerate(MOMENTS, 1):
            player.space.seed(number)
            player.begin(number)
            for _ in range(steps):
                player.step()
            (data, why), mask = _saved(player.keeper), None if player.mask is None else player.mask.tolist()
            if why:
                return why
            moments.append({"seed": player.seed, "mask": mask, "state": base64.b64encode(data).decode()})
            moments[-1]["must"] = player.play(number)
            moments[-1]["size"] = max(len(data), len(player.keeper.save()))
            if time.monotonic() - start > ENOUGH_S:
                break
        return {"moments": moments, "row": sum(row.nbytes for row in player.rows)}
    except BaseException as error:  # pylint: disable=broad-except
        return {**_why(error), "env": True}  # its own fault, which whoever plays it will say


def _other(maker, kind):
    """An env that has been through something else."""
    player = Player(maker, kind)
    player.begin(99)
    player.play(77)
    return player


def _differs(player, moments):
    """The step after a load that differs; None: none does."""
    for moment in moments:
        player.keeper.load(base64.b64decode(moment["state"]))
        player.seed = moment["seed"]
        if player.mask is not None:
            player.mask[:] = moment["mask"]
        for t, (must, seen) in enumerate(zip(moment["must"], player.play(moments.index(moment) + 1))):
            if must != seen:
                return t
    return None


def load(maker, kind, take):
    """The second process: {"room": bytes that a state takes at most, with its length} or {"why": ...}. take: waits for what the first
    one says; meanwhile there is an env to be made and played."""
    player, why = None, _impossible(maker, kind)
    try:
        player = None if why else _other(maker, kind)
    except BaseException as error:  # pylint: disable=broad-except
        why = _why(error)
    trial = take()
    if "why" in trial or why:
        return trial if "why" in trial else why
    try:
        step = _differs(player, trial["moments"])
    except BaseException as error:  # pylint: disable=broad-except
        return _why(error)
    if step is not None:
        return {"why": f"it goes on otherwise than the one that was saved, {step} steps after"}
    largest = max(moment["size"] for moment in trial["moments"])
    if kind == "replay":
        room = 8 + trial["row"] * maker.limit()
    else:
        room = largest + largest // 2 + 1024
    room = -(-(4 + room) // 256) * 256
    if room > ROOM_MAX:
        return {"why": f"a state of it has {largest} bytes, more than {ROOM_MAX}"}
    return {"room": room, "large": room > LARGE}
