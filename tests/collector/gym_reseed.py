#!/usr/bin/env python3
"""Atari's games that are seeded without being read again (python/tutti_env/reseed.py): the same as Gymnasium's, to the bit, and read no oftener
than is said; where a state is not as it is known they are read as ever. With --all all games there are, and no more than that they are the same."""

import contextlib
import functools
import os
import sys

sys.dont_write_bytecode = True
SOURCE = os.environ["TT_SOURCE_DIR"]
sys.path.insert(0, os.path.join(SOURCE, "tests"))
import pythons  # noqa: E402

pythons.run_with("venv-gym", "gymnasium", "ale_py", "numpy")
import ale_py.env  # noqa: E402
import gymnasium  # noqa: E402
import numpy as np  # noqa: E402

sys.path.insert(1, os.path.join(SOURCE, "python"))
from tutti_env import making, reseed  # noqa: E402

FRAMED = {"screen_size": 84, "frame_skip": 4, "noop_max": 30, "terminal_on_life_loss": True, "clip_reward": True}
SEEDS, STEPS = (1, 2**31, 1), 90
# (id, arguments); actions are sticky unless it says otherwise
GAMES = [("Pong", {}), ("Breakout", {"obs_type": "ram", "repeat_action_probability": 0.0}), ("MontezumaRevenge", {"obs_type": "grayscale"}), ("SpaceInvaders", {"mode": 3, "difficulty": 1}),
         ("Berzerk", {"frameskip": 3}), ("Freeway", {"max_num_frames_per_episode": 200})]
# How often the second env is read in vain. The past of one's sound is heard; the other one is played with sticky actions until its mode is
# chosen, so that no two of them have the same state.
READ = [("Boxing", {"sound_obs": True}, 0), ("DoubleDunk", {}, 1)]


@contextlib.contextmanager
def replaced(place, name, value):
    was = getattr(place, name)
    setattr(place, name, value)
    try:
        yield was
    finally:
        setattr(place, name, was)


class Reads:
    """How often a game is read."""

    def __init__(self):
        self.count, self.path_of = 0, ale_py.env.roms.get_rom_path

    def __call__(self, game):
        self.count += 1
        return self.path_of(game)

    def of(self, does, *args):
        before = self.count
        return does(*args), self.count - before


READS = Reads()


def made(game, arguments):
    pairs = [[name, str(value).replace("True", "true")] for name, value in arguments.items()]
    return making.Maker({"id": f"ALE/{game}-v5", "args": pairs, "wrappers": [], "path": [], "mask": "", "frames": None}).make()


@functools.lru_cache(None)
def theirs(game, arguments):
    """As played, and how often it is read meanwhile."""
    return READS.of(played, gymnasium.make(f"ALE/{game}-v5", disable_env_checker=True, **dict(arguments)))


def bits(value):
    return {name: bits(part) for name, part in value.items()} if isinstance(value, dict) else np.asarray(value).tobytes()


def played(env):
    """All that is seen of episodes with seeds, and at last of one that goes on drawing, with the states in which they end."""
    seen, draw = [], np.random.default_rng(5)
    for seed in (*SEEDS, None):
        observation, info = env.reset(seed=seed)
        seen.append((bits(observation), bits(info)))
        env.action_space.seed(int(draw.integers(1 << 30)))
        for _ in range(STEPS):
            observation, *rest = env.step(env.action_space.sample())
            seen.append((bits(observation), *rest))
            if rest[1] or rest[2]:
                break
        seen.append(env.unwrapped.ale.cloneState(include_rng=True).__getstate__())
    return seen


def same(game, arguments, reads):
    """reads: of the env that is made, and of the resets after that."""
    env, making_it = READS.of(made, game, arguments)
    ours, while_played = READS.of(played, env)
    wanted, by_them = theirs(game, tuple(arguments.items()))
    differs = [at for at, (one, other) in enumerate(zip(ours, wanted)) if one != other]
    assert len(ours) == len(wanted) and not differs, f"{game} {arguments}: {len(ours)}, {len(wanted)} seen, of which differ {differs[:9]}"
    assert by_them == len(SEEDS), f"{game}: Gymnasium's own is read {by_them} times"
    assert (making_it, while_played) == reads, f"{game} {arguments}: read {making_it} and {while_played} times, not {reads}"
    env.close()


def check_as_gymnasium():
    for game, arguments in GAMES:
        same(game, arguments, (1, 1))  # which is when it is tried
        same(game, arguments, (1, 0))
    assert all(reseed._TRIED.values()) and len(reseed._TRIED) == len(GAMES), reseed._TRIED.values()
    for game, arguments, again in READ:
        same(game, arguments, (1, len(SEEDS) + 1))
        same(game, arguments, (1, len(SEEDS) + again))


def all_games():
    """Some are read as ever, which is said."""
    ids = [name for name in gymnasium.registry if name.startswith("ALE/") and name.endswith("-v5")]
    for name in sorted(ids):
        game = name.removeprefix("ALE/").removesuffix("-v5")
        ours, reads = READS.of(played, made(game, {}))
        assert ours == theirs(game, ())[0], f"{game} is not the same"
        print(f"ok      {game}{': read as ever' if reads > 1 else ''}", flush=True)


def check_read_as_ever():
    """Another generator, a game whose past is seen, a state that is refused, and lengths, or the generator, that are elsewhere."""
    game, arguments = GAMES[0]
    every = (1, len(SEEDS))

    def refuses(_game, _seed):
        raise RuntimeError("no such state")

    generator, shows, past = reseed._generator, reseed._Game._shows, []

    def shows_its_past(one):
        past.append(0)
        return [len(past), *shows(one)]

    tried = ((reseed, "_generator", lambda seed, drawn: generator(seed + 1, drawn)), (reseed._Game, "_shows", shows_its_past), (reseed._Game, "_put_back", refuses))
    for place, name, value in tried:
        reseed._TRIED.clear()
        with replaced(place, name, value):
            same(game, arguments, (1, len(SEEDS) + 1))
            same(game, arguments, every)
        assert list(reseed._TRIED.values()) == [False], f"{name}: {reseed._TRIED.values()}"
    reseed._TRIED.clear()
    for name, value in (("_LENGTH", 20), ("_GENERATOR", reseed.re.compile(rb"(?:\d+ ){700}(\d+)"))):
        with replaced(reseed, name, value):
            same(game, arguments, every)
        assert not reseed._TRIED, name


def check_frames():
    """A life that is lost begins an episode as well, and the noops before it may end one."""
    reseed._TRIED.clear()
    maker = making.Maker({"id": "ALE/Breakout-v5", "args": [], "wrappers": [], "path": [], "mask": "", "frames": FRAMED})
    quick = maker.make()
    with replaced(reseed, "watch", lambda _env: None):
        slow = maker.make()
    seen, reads = READS.of(played, quick)
    assert reads == 1 and seen == played(slow), f"read {reads} times"


def check_others():
    """An env that is none of ALE's, and one that has been made by hand, are left alone."""
    env = gymnasium.make("CartPole-v1")
    reseed.watch(env)
    assert "load_game" not in vars(env.unwrapped)


ale_py.env.roms.get_rom_path = READS
if "--all" in sys.argv:
    making.Maker({"id": "ALE/Pong-v5", "args": [], "wrappers": [], "path": [], "mask": "", "frames": None})  # which registers all
    all_games()
    sys.exit()
check_as_gymnasium()
check_read_as_ever()
check_frames()
check_others()
print(f"ok      {len(GAMES)} games")
