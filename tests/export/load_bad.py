#!/usr/bin/env python3
"""tutti_load of what is no checkpoint, or is one no more: an exception with the path, of the kind that is promised. And which file a run means."""

import os
import shutil
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.environ["TT_SOURCE_DIR"], "tests"))
import pythons  # noqa: E402

pythons.run_with("venv-torch", "torch")
sys.path.insert(0, os.path.join(os.environ["TT_SOURCE_DIR"], "python"))
import numpy  # noqa: E402
import torch  # noqa: E402
import tutti_load  # noqa: E402
from tutti_load import checkpoint, spaces  # noqa: E402
from short import cartpole  # noqa: E402


def refused(kind, words, call, *args):
    try:
        call(*args)
    except kind as error:
        assert words in str(error), (words, str(error))
        print(f"{type(error).__name__}: {error}")
        return
    sys.exit(f"{args} was taken")


def check_files(whole):
    middle = len(whole) // 2
    for name, content in (("empty", b""), ("short", whole[:7]), ("cut", whole[:-4]), ("text", b"no weights here, but words"),
                          ("flipped", whole[:middle] + bytes([whole[middle] ^ 4]) + whole[middle + 1:]),
                          ("header", whole[:100] + b"X" + whole[101:])):
        with open(f"{name}.safetensors", "wb") as file:
            file.write(content)
        refused(ValueError, f"{name}.safetensors", tutti_load.policy, f"{name}.safetensors")
    refused(OSError, "nowhere", tutti_load.policy, "nowhere")
    os.mkdir("hollow")
    refused(OSError, "hollow", tutti_load.policy, "hollow")


def check_runs():
    final, best = "run/checkpoints/final.safetensors", "run/checkpoints/best.safetensors"
    assert (checkpoint.find("run"), checkpoint.find("run", best=True), checkpoint.find(final)) == (final, best, final)
    os.makedirs("young/checkpoints")
    for name in ("00000009", "00000010", "100000000"):
        shutil.copy(final, f"young/checkpoints/{name}.safetensors")
    assert checkpoint.find("young") == "young/checkpoints/100000000.safetensors"
    assert tutti_load.policy("young").update == tutti_load.policy("run").update
    assert tutti_load.policy("run", best=True).update <= tutti_load.policy("run").update
    os.makedirs("resumed/checkpoints")  # with what the life before ended with
    for name, found in (("final", "final"), ("00000001", "final"), ("00001597", "00001597")):
        shutil.copy(final, f"resumed/checkpoints/{name}.safetensors")
        assert checkpoint.find("resumed") == f"resumed/checkpoints/{found}.safetensors", name


def check_observations():
    policy = tutti_load.policy("run")
    assert policy.act([0.0, 0.1, 0.0, 0.1]).shape == () and policy.act([[0.0] * 4] * 3).shape == (3,)
    assert {name for name in policy.state_dict() if not name.startswith("normalizer")} == {
        name for name in tutti_load.Checkpoint("run/checkpoints/final.safetensors").names() if name.split(".")[0] in ("actor", "critic")}
    refused(ValueError, "obs: ", policy.act, [0.0] * 5)
    for dtype in ("uint8", "uint16", "int16", "uint32", "float16", "float64"):
        seen = numpy.arange(12, dtype=dtype).reshape(3, 4)
        assert torch.equal(policy(seen), policy(torch.arange(12.0).reshape(3, 4))), dtype
        assert torch.equal(policy(seen[1]), policy([4.0, 5.0, 6.0, 7.0])), dtype


def check_states():
    """Of a policy that remembers nothing."""
    policy = tutti_load.policy("run")
    assert policy.state_size == 0 and policy.initial_state() is None and policy.initial_state(3) is None
    refused(ValueError, "not recurrent", policy.act, [0.0] * 4, True, None, torch.zeros(2))


def check_recurrent():
    policy = tutti_load.policy("remembers")
    assert policy.state_size == 24 and policy.initial_state(3).shape == (3, 24) and policy.initial_state().shape == (24,)
    action, state = policy.act([0.0] * 4)
    head, other = policy([[0.0] * 4] * 3, policy.initial_state(3))
    assert action.shape == () and state.shape == (24,) and head.shape == (3, 2) and torch.allclose(other[2], state)
    assert policy.act([0.0] * 4, state=state.tolist())[1].shape == (24,)
    for wrong in (torch.zeros(23), torch.zeros(2, 24), torch.zeros(())):
        refused(ValueError, "state: ", policy.act, [0.0] * 4, True, None, wrong)
    refused(ValueError, "state: ", policy.state_value, [[0.0] * 4] * 3, torch.zeros(24))


def check_spaces():
    words = "{a: {b: float32[2], c: (discrete(3, from -1), uint8[8, 8, 3])}, d: multi_discrete(3, 2, from 1, 0), e: float64}"
    found = spaces.leaves(spaces.parse(words), "obs")
    assert [(leaf.name, leaf.path, leaf.kind, leaf.shape, leaf.n, leaf.start) for leaf in found] == [
        ("obs.a.b", ("a", "b"), "float32", (2,), [], []), ("obs.a.c.0", ("a", "c", 0), "discrete", (), [3], [-1]),
        ("obs.a.c.1", ("a", "c", 1), "uint8", (8, 8, 3), [], []), ("obs.d", ("d",), "multi_discrete", (2,), [3, 2], [1, 0]),
        ("obs.e", ("e",), "float64", (), [], [])]
    value = {"a": {"b": 1, "c": (2, 3)}, "d": 4, "e": 5}
    values = [spaces.pick(value, leaf.path) for leaf in found]
    assert values == [1, 2, 3, 4, 5] and spaces.build(spaces.parse(words), iter(values)) == value
    for wrong in ("", "4", "float32[", "{a float32}", "discrete(2", "float32] [", "float32 float32", "discrete()"):
        refused(ValueError, "", spaces.parse, wrong)


def main():
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        os.environ["XDG_STATE_HOME"] = os.path.join(folder, "state")
        cartpole("run")
        cartpole("remembers", "network.rnn=lstm", "network.rnn_size=12")
        with open("run/checkpoints/final.safetensors", "rb") as file:
            check_files(file.read())
        check_runs()
        check_observations()
        check_states()
        check_recurrent()
        check_spaces()
        os.chdir("/")


if __name__ == "__main__":
    main()
