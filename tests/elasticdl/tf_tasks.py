#!/usr/bin/env python3
"""TensorFlow's own training as tasks: MultiWorkerMirroredStrategy for AllReduce, variables on parameter servers with workers that
update them for ParameterServer, both from NUM_WORKERS and TF_CONFIG alone."""
import json
import os
import pathlib
import subprocess
import sys

from rig import TUTTI, Server, main

sys.path.insert(0, os.path.join(os.environ["TT_SOURCE_DIR"], "tests"))
import pythons
import transcript
from tf_programs import ALL_REDUCE, PARAMETER_SERVER

s_page = transcript.Transcript("transcript-elasticdl-local.md", "A task of ElasticDL's on one machine, with TensorFlow", """\
The commands of [elasticdl.md](elasticdl.md#a-first-task) with a program that trains, and what they print, written down by
`tests/elasticdl/tf_tasks.py --record docs/guide`. The master, `tutti master`, serves in a terminal of its own; its `python3` is one with TensorFlow.""", [
    (r"^(?:(?:making|starting) (?:parameter servers|workers)|configuring|running|ending)\n", "")])  # some are too short to be seen
FIT = """
import os
os.environ["TF_USE_LEGACY_KERAS"] = "1"
import numpy as np
import tensorflow as tf
keras = tf.keras
strategy = tf.distribute.MultiWorkerMirroredStrategy()
batch = 8 * int(os.environ["NUM_WORKERS"])
x = np.linspace(0, 1, 8 * batch, dtype=np.float32).reshape(-1, 1)
with strategy.scope():
    model = keras.Sequential([keras.layers.Dense(1, input_shape=(1,))])
    model.compile(optimizer=keras.optimizers.SGD(0.5), loss="mse")
data = tf.data.Dataset.from_tensor_slices((x, 3 * x + 1)).batch(batch)
model.fit(data, epochs=25, verbose=0)
w, b = model.get_weights()
print("fitted %.3f %.3f" % (w[0, 0], b[0]), flush=True)
"""


def serve(folder, python):
    return Server(folder, "master", "--python", python, TF_CPP_MIN_LOG_LEVEL="2", CUDA_VISIBLE_DEVICES="")


def train(folder, program, *args):
    """What its workers have written."""
    (folder / "exec.py").write_text(program)
    python = pathlib.Path(pythons.folder_of("venv-tf")) / "bin/python3"
    server = serve(folder, python)
    done = subprocess.run([TUTTI, "submit", "--master", server.url, "--wait", *map(str, args)], capture_output=True, text=True)
    logs = {path.parent.name: path.read_text() for path in server.run.glob("default-0/*/outputs.log")}
    assert done.returncode == 0, (done, logs)
    assert server.end() == 0
    return logs


def check_fitted(*fitted):
    assert len(set(fitted)) == 1, fitted  # the same sums everywhere
    kind, w, b = fitted[0].split()
    assert kind == "fitted" and abs(float(w) - 3) < 0.1 and abs(float(b) - 1) < 0.1, fitted


def all_reduce(folder):
    """A session: as a person types it, but for the master's port."""
    (folder / "exec.py").write_text(ALL_REDUCE.lstrip())
    server = serve(folder, pathlib.Path(pythons.folder_of("venv-tf")) / "bin/python3")

    def type_in(command):
        here = command.replace("http://127.0.0.1:7897", server.url).replace("tutti submit", f"{TUTTI} submit --master {server.url}")
        done = subprocess.run(["bash", "-c", f'curl() {{ command curl -sS "$@"; }}; {here}'], cwd=folder, capture_output=True, text=True, check=False)
        said = (done.stdout + done.stderr).replace(server.url, "http://127.0.0.1:7897")
        assert done.returncode == 0, (command, said, server.said())
        s_page.typed(command, said)
        return said.strip()
    s_page.say("## Two workers that add up their gradients")
    type_in("cat exec.py")
    assert type_in("tutti submit --strategy AllReduce --worker-num 2 --task fits --wait").endswith("succeeded")
    check_fitted(*(type_in(f"curl 'http://127.0.0.1:7897/logs?name=fits&member=worker-{i}' | tail -1") for i in range(2)))
    assert server.end() == 0


def fit(folder):
    logs = train(folder, FIT, "--strategy", "AllReduce", "--worker-num", 2)
    check_fitted(*(logs[f"worker-{i}"].splitlines()[-1] for i in range(2)))


def parameter_server(folder):
    logs = train(folder, PARAMETER_SERVER, "--strategy", "ParameterServer", "--ps-num", 1, "--worker-num", 2)
    assert "serving" in logs["ps-0"], logs
    for i in range(2):
        kind, w, b = logs[f"worker-{i}"].splitlines()[-1].split()
        assert kind == "fitted" and abs(float(w) - 3) < 0.2 and abs(float(b) - 1) < 0.2, logs


s_record = transcript.record_folder()
main([all_reduce, fit, parameter_server])
if s_page.said:
    transcript.finish(s_record, s_page)
