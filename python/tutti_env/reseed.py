"""A game of ALE's that is seeded without being read again.

ALE takes a seed only when it reads the game, as AtariEnv does at every reset with one: 0.1 s, of which nearly all goes into a table of blended
colours, and which is up to twenty times what the reset takes otherwise. But of a game that has just been read nothing depends on the seed but the
generator of its sticky actions, std::mt19937, which lies in a saved state as text. So the state that the game had when it was read first is put back,
with another generator in it.

Before that is done it is tried, for each game once in a process: the game that is really read and the one that is put back must have the same state,
to the byte, and show the same for a while. Where they do not, or anything in a state is not where it was, the game is read as ever.
"""

import re
import struct
import sys

# Of one kind, by their states without the generator: may they be put back?
_TRIED = {}

_GENERATOR = re.compile(rb"(?:\d+ ){624}(\d+)")  # its 624 words and how many of them have been drawn, as C++ writes it
_NONE_DRAWN = 624
_LENGTH = 24  # where the length is of what comes behind it, and ends with the generator
_FRAMES = 60  # that are compared


def _generator(seed, drawn):
    """std::mt19937 of a seed, of which so many have been drawn, as text; NumPy's begins in the same way."""
    from numpy.random import RandomState  # which the interpreter may not have
    generator = RandomState(seed & 0xffffffff)
    if drawn != _NONE_DRAWN:
        generator.bytes(4 * drawn)
    _, words, drawn, *_ = generator.get_state()
    return b" ".join([b"%d" % word for word in (*words.tolist(), drawn)])


class _Game:
    """Of one env whose game has just been read."""

    def __init__(self, env):
        self.ale, self.read = env.ale, env.load_game
        state = self._state()
        *_, generator = _GENERATOR.finditer(state)  # of two the last
        for at in (_LENGTH, generator.start() - 4):
            if struct.unpack_from("<I", state, at)[0] != generator.end() - at - 4:
                raise ValueError("a state's lengths are not where they were")
        self.drawn = int(generator[1])
        self.parts = state[:_LENGTH], state[_LENGTH + 4:generator.start() - 4], state[generator.end():]

    def _state(self):
        return self.ale.cloneState(include_rng=True).__getstate__()

    def _put_back(self, seed):
        head, system, tail = self.parts
        generator = _generator(seed, self.drawn)
        system += struct.pack("<I", len(generator)) + generator
        kind = sys.modules["ale_py"].ALEState
        state = kind.__new__(kind)
        state.__setstate__(head + struct.pack("<I", len(system)) + system + tail)
        self.ale.restoreState(state)

    def _shows(self):
        """What it is, and what comes of it when it is played for a while."""
        ale, seen = self.ale, [self._state()]
        ale.reset_game()
        actions = ale.getLegalActionSet()
        for frame in range(_FRAMES):
            seen.append((ale.act(actions[frame // 4 % len(actions)]), ale.game_over(), ale.lives(), ale.getRAM().tobytes(),
                         ale.getScreen().tobytes(), ale.getAudio().tobytes() if ale.getBool("sound_obs") else b""))
        return [*seen, self._state()]

    def _try(self, seed):
        """By a game that has been played meanwhile."""
        self.read()
        read = self._shows()
        try:
            self._put_back(seed)
            return self._shows() == read
        except Exception:  # pylint: disable=broad-except
            return False  # of another version: none of what it may say is of use to who plays

    def load(self):
        """In the place of AtariEnv.load_game, which comes behind the setting of a seed."""
        seed = self.ale.getInt("random_seed")
        if self.parts not in _TRIED:
            _TRIED[self.parts] = self._try(seed)
        if _TRIED[self.parts]:
            self._put_back(seed)
        else:
            self.read()


def watch(env):
    """Of an env that has just been made, if it is one of ALE's."""
    game, known = env.unwrapped, getattr(sys.modules.get("ale_py"), "AtariEnv", ())
    if not isinstance(game, known):
        return
    try:
        game.load_game = _Game(game).load
    except Exception:  # pylint: disable=broad-except
        return  # as above: it stays as it is
