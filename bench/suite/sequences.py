"""Optimiser steps of DQN with an LSTM on sequences (R2D2), beside PyTorch's."""
import resource
import statistics

from kit.report import progress
from suite.peers import install, peer_run, ratio

ABOUT = "an optimizer step of DQN with an LSTM on sequences, all that a run does for it, beside PyTorch's step alone (seeds 1-3; about 3 minutes)"
CONFIG, EVERY, STARTS = "configs/cartpole-novel-dqn-lstm.yaml", 8, 1000
CASES = [  # name, sequences, burn-in, length, units, hidden, env steps
    ("16 sequences of 20 + 40, LSTM 64", 16, 20, 40, 64, 64, 17_000),
    ("32 sequences of 40 + 80, LSTM 256", 32, 40, 80, 256, 256, 1_800),
]


def ours(tutti, case, seed):
    """Microseconds of all processor time of a run for each of its optimiser steps: collecting, the replay, snapshots, and starting up."""
    _, sequences, burn, length, units, hidden, steps = case
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    run = tutti.run(CONFIG, seed, "learner.threads=1", "stop.env_steps=%d" % steps, "algorithm.batch_size=%d" % sequences,
                    "algorithm.burn_in=%d" % burn, "algorithm.sequence_length=%d" % length, "network.rnn_size=%d" % units,
                    "network.hidden=[%d]" % hidden, "algorithm.train_every=%d" % EVERY, "algorithm.learning_starts=%d" % STARTS)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    spent = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
    made = (run["updates"] * 160 - STARTS) // EVERY
    return dict(run, peer="tutti", us=spent / made * 1e6, steps_made=made)


def measure(tutti, args, _machine):
    runs, rows = [], []
    install(["torch_sequences.py"])
    for case in CASES:
        name, sequences, burn, length, units, hidden, _ = case
        mine, theirs = [], []
        for seed in args.seeds or range(1, 4):
            progress("%s: seed %d" % (name, seed))
            mine.append(ours(tutti, case, seed))
            theirs.append(peer_run(tutti, "torch_sequences.py", seed, "--sequences", str(sequences), "--burn-in", str(burn), "--length", str(length),
                                   "--units", str(units), "--hidden", str(hidden)))
        runs += mine + theirs
        failed = next((run["failed"] for run in theirs if "failed" in run), None)
        own = statistics.median(run["us"] for run in mine)
        other = failed or statistics.median(run["us"] for run in theirs)
        rows.append([name, own, other, None if failed else ratio(other, own)])
    progress("")
    return {"runs": runs, "checks": [], "tables": [{"columns": ["a step, us of a core", "tutti, all of a run", "PyTorch", "times"], "rows": rows}]}
