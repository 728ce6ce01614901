#!/usr/bin/env python3
"""RUN...: `tutti export RUN --onnx` in onnxruntime, against the binary. For policies.py."""

import importlib.util
import os
import re
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
import numpy
import onnx
import onnxruntime
import against

# the words of spaces alone: the package itself wants torch
where = importlib.util.spec_from_file_location("spaces", os.path.join(against.SOURCE, "python", "tutti_load", "spaces.py"))
spaces = importlib.util.module_from_spec(where)
where.loader.exec_module(spaces)
TUTTI = os.environ["TUTTI"]


def heads(found, parts):
    """Logits, means or values, side by side as the binary has them; then the deviations that rows have of their own."""
    own = [next(found[f"{what}{part.name[len('action'):]}"] for what in ("logits", "mean", "q")
                if f"{what}{part.name[len('action'):]}" in found) for part in parts]
    deviations = (f"log_std{part.name[len('action'):]}" for part in parts)
    return numpy.concatenate([*own, *(found[name] for name in deviations if name in found)], 1)


def carried_by(session):
    return next((entry.shape[1] for entry in session.get_inputs() if entry.name == "carry"), 0)


def asked(session, given):
    """Its outputs of all rows, by their names."""
    outputs = [output.name for output in session.get_outputs() if len(output.shape) > 1 or not output.name.startswith("log_std")]
    carry, found, size = {}, [], carried_by(session)
    for values in against.turns(list(given.values()), size):
        if size:  # an episode begins, or goes on
            zeros = numpy.zeros((len(values[0]), size), numpy.float32)
            carry = {"carry": found[-1][outputs.index("carry_out")] if found else zeros}
        found.append(session.run(outputs, {**dict(zip(given, values)), **carry}))
    return dict(zip(outputs, against.in_order(found)))


def check_carry(session, given):
    """Who leaves it out is told, and does not go on without a memory."""
    names = {entry.name: tuple(entry.shape) for entry in (*session.get_inputs(), *session.get_outputs())}
    if "carry" not in names:
        return False
    assert names["carry"] == names["carry_out"] and "zeros" in session.get_modelmeta().custom_metadata_map["carry"], names
    try:
        session.run(None, given)
    except ValueError as error:
        assert "carry" in str(error), error
        return True
    sys.exit("a recurrent policy has acted without what it carries")


def check(run, folder):
    path, model = os.path.join(run, "checkpoints", "final.safetensors"), os.path.join(folder, "policy.onnx")
    name, rng = os.path.basename(run), numpy.random.default_rng(3)
    subprocess.run([TUTTI, "export", run, "--onnx", model, "--force"], check=True, stdout=subprocess.DEVNULL, timeout=60)
    onnx.checker.check_model(onnx.load(model), full_check=True)
    session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
    meta = session.get_modelmeta().custom_metadata_map
    leaves, parts = (spaces.leaves(spaces.parse(meta[f"space.{key}"]), word) for key, word in (("obs", "obs"), ("action", "action")))
    spaces.stacked(leaves, int(meta["env.stack"]))
    observation = list(against.observed(leaves, rng, path))
    given = {leaf.name: value for leaf, value in zip(leaves, observation)}
    outputs = [output.name for output in session.get_outputs()]
    flat, valued = against.flattened(leaves, observation), "value" in outputs
    size = carried_by(session)
    head, value, carried, actions = against.binary(path, flat, parts, valued, size)
    found = asked(session, given)
    worst = against.near(f"{name}: head", heads(found, parts), head)
    if size:
        worst = max(worst, against.near(f"{name}: carry_out", found["carry_out"], carried))
    if valued:
        worst = max(worst, against.near(f"{name}: value", found["value"], value))
    tries = [({}, actions)]
    if "mask" in [entry.name for entry in session.get_inputs()] + [entry.name for entry in session.get_overridable_initializers()]:
        mask, file = against.masks(parts, len(flat), rng, folder)
        tries.append(({"mask": mask.astype(bool)}, against.binary(path, flat, parts, valued, size, file)[3]))
    for mask, wanted in tries:
        found = asked(session, {**given, **mask})
        for part, own in zip(parts, wanted):
            ours = found[part.name]
            assert ours.shape == (len(flat), *part.shape) and ours.dtype == against.NUMPY.get(part.kind, part.kind), (part.name, ours.dtype)
            against.same(f"{name}: {part.name}", ours, own, part, head)
    check_meta(meta, path)
    remembers = check_carry(session, given)
    assert remembers == ("  rnn: none\n" not in against.config(path)[0]), name
    print(f"onnx {name}: {worst:.1e}{', masked' if len(tries) > 1 else ''}{', recurrent' if remembers else ''}")
    if name == "cartpole-ppo":
        names = against.page("import numpy, onnxruntime\n", run, folder)
        assert names["action"].shape == (1,) and names["logits"].shape == (1, 2)
    if name == "cartpole-novel-ppo-lstm":
        names = against.page("import numpy, onnxruntime  #", run, folder)
        assert names["action"].shape == (1,) and names["carry"].any()
    return len(tries) > 1


def check_meta(meta, path):
    config, said = against.config(path)
    wanted = {"run": re.search(r"(?m)^name: (.*)$", config)[1], "env": said["env"], "algorithm": said["algorithm"], "update": said["update"],
              "weights_sha256": said["weights_sha256"]}
    assert {key: meta[key] for key in wanted} == wanted, (meta, wanted)


def main():
    print(f"onnx {onnx.__version__}, onnxruntime {onnxruntime.__version__}")
    with tempfile.TemporaryDirectory() as folder:
        masked = [check(run, folder) for run in sys.argv[1:]]
    if any("zoo" in run for run in sys.argv) and not any(masked):
        sys.exit("no model with a mask was tried")


if __name__ == "__main__":
    main()
