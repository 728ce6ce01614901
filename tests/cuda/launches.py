"""How many threads a block of each kernel has, as the sources launch it (CUDA_LAUNCH, CUDA_LAUNCH_NUMBERS): what an occupancy is of. A
bound in the kernel itself would say it too, but the compiler takes one for leave to use more registers.
"""

import functools
import glob
import os
import re

KERNELS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "common", "nn", "cuda")
HEADERS = ["kernels/grid.cuh", "kernels/threads.cuh", "kernels/mlp.cuh", "loss.cuh"]


def _read(path):
    with open(path, encoding="utf-8") as file:
        return re.sub(r"/\*.*?\*/", "", file.read(), flags=re.S)


def _arguments(text, at):
    """Of the call whose bracket opens before `at`."""
    found, depth, begin = [], 0, at
    while depth >= 0:
        depth += (text[at] in "({[") - (text[at] in ")}]")
        if depth < 0 or (depth == 0 and text[at] == ","):
            found.append(text[begin:at].strip())
            begin = at + 1
        at += 1
    return found


def _names(text, at, name):
    """Kernels that a launch is of; `kernel` is a variable, which has one of several."""
    if name == "kernel":
        return re.findall(r"(\w+)<", re.findall(r"\bkernel = ([^;]*);", text[:at])[-1])
    return [name.split("<")[0]]


def _constants(text):
    found = dict(re.findall(r"constexpr \w+ (\w+) = ([^;]+);", text))
    for body in re.findall(r"enum \{([^}]*)\}", text):
        found.update(re.findall(r"(\w+) = ([^,]+)", body))
    return found


@functools.lru_cache(None)
def _all():
    """{(file, kernel): (threads as the source has them, names of the template's numbers, constants)}."""
    found = {}
    shared = {"TT_BLOCK": "32"}
    for header in HEADERS:
        shared.update(_constants(_read(os.path.join(KERNELS, header))))
    for path in glob.glob(os.path.join(KERNELS, "kernels", "*.cu")) + [os.path.join(KERNELS, "loss.cuh")]:
        text, file = _read(path), os.path.basename(path).removesuffix(".cu")
        constants = {**shared, **_constants(text)}
        for call in re.finditer(r"CUDA_LAUNCH(_NUMBERS)?\(", text):
            arguments = _arguments(text, call.end())
            threads = "NUMBER_THREADS" if call.group(1) else arguments[2]
            for name in _names(text, call.start(), arguments[0]):
                head = re.search(rf"template <([^>]*)>\s*__global__ void [^(]*?\b{name}\(", text)
                found[file, name] = (threads, re.findall(r"(\w+)(?:,|$)", head.group(1)) if head else [], constants)
    return found


def threads(kernel):
    """Of a block, at most. kernel: FILE.NAME or FILE.NAME<NUMBERS>, as resources.txt has it; a loss has no file."""
    file, name, numbers = re.fullmatch(r"(?:(\w+)\.)?(\w+)(?:<(.*)>)?", kernel).groups()
    expression, names, constants = _all()[file or "loss.cuh", name]
    values = dict(zip(names, (numbers or "").split(",")))
    while words := re.findall(r"[A-Za-z_]\w*", expression):
        for word in words:
            expression = re.sub(rf"\b{word}\b", f"({values.get(word) or constants[word]})", expression)
    return eval(expression.replace("/", "//"), {"__builtins__": {}})  # pylint: disable=eval-used
