#!/usr/bin/env python3
"""Animations: Pillow reads what we write, pixel for pixel and at its time; and environments look as Gymnasium shows them."""

import io
import os
import subprocess
import sys

sys.dont_write_bytecode = True
os.environ["SDL_VIDEODRIVER"] = "dummy"
sys.path.insert(0, os.path.join(os.environ["TT_SOURCE_DIR"], "tests"))
import pythons  # noqa: E402

pythons.run_with("venv-gym", "gymnasium", "numpy", "pygame", "PIL")
import gymnasium  # noqa: E402
import numpy  # noqa: E402
from PIL import Image  # noqa: E402

PICTURES = os.path.join(os.environ["TT_BUILD_DIR"], "tests", "export", "pictures")
FEW = 0.02  # so much of a picture may differ: Gymnasium's lines are drawn by another program


def run(*words, data):
    return subprocess.run([PICTURES, *map(str, words)], input=data, capture_output=True, check=True, timeout=60).stdout


# ---- files ------------------------------------------------------------------------------------------------------------


def decoded(data):
    """Pictures as a viewer shows them, and how long each, in hundredths."""
    image, pictures, times = Image.open(io.BytesIO(data)), [], []
    assert image.info["loop"] == 0
    for k in range(image.n_frames):
        image.seek(k)
        pictures.append(numpy.asarray(image.convert("RGB")))
        times.append(image.info["duration"] // 10)
    return pictures, times


def check_exact(name, pictures, fps=20, length=10 ** 6):
    height, width, _ = pictures[0].shape
    found, times = decoded(run("gif", width, height, fps, length, data=numpy.stack(pictures).tobytes()))
    assert len(found) == len(pictures), (name, len(found))
    for ours, wanted in zip(found, pictures):
        assert numpy.array_equal(ours, wanted), name
    return times


def moving(rng, width, height, colours, count):
    """A box of noise that wanders over noise; and two pictures alike."""
    palette = rng.integers(256, size=(colours, 3), dtype=numpy.uint8)
    picture, out = palette[rng.integers(colours, size=(height, width))], []
    for _ in range(count):
        x, y = rng.integers(width), rng.integers(height)
        picture = picture.copy()
        part = picture[y:y + 1 + height // 3, x:x + 1 + width // 3]
        part[:] = palette[rng.integers(colours, size=part.shape[:2])]
        out.append(picture)
    return [*out, out[-1]]


def check_files():
    rng = numpy.random.default_rng(1)
    for width, height, colours in ((1, 1, 1), (2, 3, 2), (64, 48, 2), (64, 48, 3), (200, 150, 17), (201, 149, 128), (320, 200, 255),
                                   (300, 400, 256)):
        check_exact((width, height, colours), moving(rng, width, height, colours, 6))
    still = numpy.zeros((400, 600, 3), numpy.uint8)
    check_exact("long strings", [still, still + 255])
    gradient = numpy.stack(numpy.meshgrid(range(256), range(256), [90]), -1).reshape(256, 256, 3).astype(numpy.uint8)
    found, _ = decoded(run("gif", 256, 256, 20, 9, data=gradient.tobytes()))
    worst = abs(found[0].astype(int) - gradient).max()
    assert worst <= 26, f"colours of a cube are off by {worst}"


def check_times():
    rng = numpy.random.default_rng(2)
    assert check_exact("20 a second", moving(rng, 8, 8, 9, 3)) == [5, 5, 5, 100]
    assert check_exact("episodes", moving(rng, 8, 8, 9, 5), length=3) == [5, 5, 100, 5, 5, 100]
    assert check_exact("30 a second", moving(rng, 8, 8, 9, 3), fps=30) == [3, 3, 4, 100]
    pictures = moving(rng, 8, 8, 9, 100)[:100]  # of 100 a second every other one, and the last
    found, times = decoded(run("gif", 8, 8, 100, 100, data=numpy.stack(pictures).tobytes()))
    assert set(times[:-2]) == {2} and times[-1] == 100 and abs(sum(times[:-1]) - 99) <= 2, times
    assert numpy.array_equal(found[-1], pictures[-1])


# ---- scenes ---------------------------------------------------------------------------------------------------------------


def seen(env, rng):
    """An observation, and the picture that Gymnasium makes of it."""
    game = env.unwrapped
    low, high = env.observation_space.low.clip(-2.4, 2.4), env.observation_space.high.clip(-2.4, 2.4)
    state = rng.uniform(low, high)
    if env.spec.id == "CartPole-v1":
        state[2] = rng.uniform(-0.4, 0.4)
        game.state = tuple(state)
        return state, env.render()
    if env.spec.id == "Pendulum-v1":
        angle = rng.uniform(-7, 7)
        game.state, game.last_u = numpy.array([angle, 0.0]), None
        return numpy.array([numpy.cos(angle), numpy.sin(angle), 0.0]), env.render()
    if env.spec.id == "Acrobot-v1":
        one, two = rng.uniform(-3.1, 3.1, 2)
        game.state = numpy.array([one, two, 0.0, 0.0])
        return numpy.array([numpy.cos(one), numpy.sin(one), numpy.cos(two), numpy.sin(two), 0, 0]), env.render()
    game.state = state
    return state, env.render()


def check_scene(env_id):
    env, rng = gymnasium.make(env_id, render_mode="rgb_array"), numpy.random.default_rng(3)
    env.reset(seed=1)
    pairs = [seen(env, rng) for _ in range(12)]
    data = run("scene", env_id, data=numpy.stack([obs for obs, _ in pairs]).astype(numpy.float32).tobytes())
    ours = numpy.frombuffer(data, numpy.uint8).reshape(len(pairs), *pairs[0][1].shape)
    white = numpy.full_like(ours[0], 255)
    shares = []
    for picture, (_, wanted) in zip(ours, pairs):
        differ, drawn = (abs(picture.astype(int) - wanted) > 96).any(-1).mean(), (wanted != white).any(-1).mean()
        shares.append(differ)
        assert differ <= FEW and differ < 0.5 * drawn, f"{env_id}: {100 * differ:.1f} % of a picture differ, {100 * drawn:.1f} % are not white"
    print(f"{env_id}: {100 * max(shares):.2f} % of a picture differ at most, {pairs[0][1].shape}")


def check_board():
    """A colour for each channel; the highest one shows."""
    board = numpy.zeros((2, 10, 10, 4), numpy.uint8)
    for channel in range(4):
        board[0, 5, 2 * channel, channel] = 1
    board[1, 0, 0] = 1
    board[1, 9, 9, 0] = 1
    found = numpy.frombuffer(run("scene", "MinAtar/Breakout-v1", data=board.tobytes()), numpy.uint8).reshape(2, 400, 400, 3)
    cells = found[:, 20::40, 20::40]
    colours = [tuple(cells[0, 5, 2 * channel]) for channel in range(4)]
    assert len(set(colours)) == 4 and (0, 0, 0) not in colours and (cells[0].any(-1)).sum() == 4, colours
    assert tuple(cells[1, 0, 0]) == colours[3] and tuple(cells[1, 9, 9]) == colours[0]
    assert (found.reshape(2, 10, 40, 10, 40, 3) == cells[:, :, None, :, None]).all()


def main():
    check_files()
    check_times()
    check_board()
    for env_id in ("CartPole-v1", "MountainCar-v0", "MountainCarContinuous-v0", "Pendulum-v1", "Acrobot-v1"):
        check_scene(env_id)


if __name__ == "__main__":
    main()
