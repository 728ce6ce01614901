"""tensorflow_rig - an image that has TensorFlow, for tests in pods: its Python, the environment and the libraries of both are folders of the
node that containers see, so nothing is copied. Where it is not there the test is skipped, and with it the script."""

import os
import sys

sys.path.append(os.path.join(os.environ["TT_SOURCE_DIR"], "tests"))
import cluster
import images
import python_rig
import pythons

THERE = pythons.find("venv-tf")
BOARD = pythons.find("venv")  # TensorBoard, which does not come with TensorFlow any more, and reads its logs without it
IMAGE = "docker.io/local/tensorflow:1"
SETTINGS = ("PYTHONHOME=/opt/python PYTHONPATH=$(echo /opt/venv/lib/python3*/site-packages) TF_CPP_MIN_LOG_LEVEL=2 "
            "CUDA_VISIBLE_DEVICES=")
BOARD_SETTINGS = "PYTHONHOME=/opt/python PYTHONPATH=$(echo /opt/board/lib/python3*/site-packages)"


def folders():
    """{in the image: here}, for the cluster; none where TensorFlow is not there."""
    if not THERE:
        return {}
    venv = os.path.realpath(THERE)
    python = os.path.dirname(os.path.dirname(os.path.realpath(os.path.join(venv, "bin/python3"))))
    return {**python_rig.folders(python), "/opt/venv": venv, **({"/opt/board": os.path.realpath(BOARD)} if BOARD else {})}


def make(k8s, files=None, image=IMAGE):
    """files: {path in the image: its bytes}. The name of what was made."""
    if not THERE:
        raise cluster.Skipped("build/venv-tf is not there; tools/test-venv makes it")
    k8s.make_image(image, {**images.busybox_files(), **python_rig.files(SETTINGS), **(files or {})}, user="1000:1000")
    return image


def board():
    """{path in the image: its bytes} of the program tensorboard, for make(). It starts another program, which finds its libraries by itself."""
    if not BOARD:
        raise cluster.Skipped("build/venv is not there; tools/test-venv makes it")
    text = python_rig.files(BOARD_SETTINGS)["usr/bin/python"]
    return {"usr/bin/tensorboard": text.replace(b'python3 "$@"', b'python3 -m tensorboard.main "$@"'),
            "lib64": ("link", "/opt/lib"), "lib/x86_64-linux-gnu": ("link", "/opt/lib")}
