#!/usr/bin/env python3
"""CleanRL's CartPole-v1 settings (vwxyzjn/cleanrl, cleanrl/ppo.py) on Stable-Baselines3, or, with TT_CLEANRL=CHECKOUT and
TT_CLEANRL_PYTHON=INTERPRETER, on the reader's own CleanRL (it wants gymnasium 0.29, where episodes are reported as it
reads them). The two differ in one thing: SB3 bootstraps when the time limit ends an episode."""
import os

from probe import prepare

ARGS = prepare("sb3", __doc__, 500_000)
PEER = "CleanRL's settings"


def on_checkout(path):
    """CleanRL prints a line an episode: global_step=N, episodic_return=[R]. Its own start is counted in."""
    import re
    import subprocess
    import sys

    from probe import Probe
    probe = Probe(PEER + ", ppo.py", {"cleanrl": "checkout"}, ARGS.wall_s)
    line = re.compile(r"global_step=(\d+), episodic_return=\[?([0-9.]+)")
    command = [os.environ.get("TT_CLEANRL_PYTHON", sys.executable), "-u", os.path.join(path, "cleanrl", "ppo.py"), "--seed", str(ARGS.seed),
               "--total-timesteps", str(ARGS.steps), "--no-cuda"]
    child = subprocess.Popen(command, cwd=os.environ.get("TMPDIR", "/tmp"), stdout=subprocess.PIPE, text=True)
    try:
        for text in child.stdout:
            found = line.search(text)
            if found:  # the first episode ends a few milliseconds after the first step
                probe.step(int(found.group(1)) - probe.steps)
                probe.episode(float(found.group(2)))
            if probe.over():
                break
    finally:
        child.terminate()
        child.wait()
    if not probe.steps:
        sys.exit("no episode in what %s printed" % command[2])
    probe.finish()


def on_sb3():
    from sb3_common import linear, train
    train(PEER + ", on Stable-Baselines3", ARGS, 4, n_steps=128, batch_size=128, n_epochs=4, gamma=0.99,
          gae_lambda=0.95, clip_range=0.2, clip_range_vf=0.2, ent_coef=0.01, vf_coef=0.5, max_grad_norm=0.5,
          learning_rate=linear(2.5e-4))


if os.environ.get("TT_CLEANRL"):
    on_checkout(os.environ["TT_CLEANRL"])
else:
    on_sb3()
