"""What a number was measured on: processor, memory, kernel, compiler, commit, load, and one core's sgemm rate."""
import os
import platform
import subprocess
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
FLAGS = ("fma", "avx2", "avx512f", "avx512_bf16", "amx_tile", "asimd", "sve")


def words(*command):
    """The first line that a command prints, or None."""
    try:
        out = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout
    except OSError:
        return None
    return out.splitlines()[0] if out.strip() else None


def read(path):
    try:
        with open(path) as file:
            return file.read()
    except OSError:
        return ""


def cpu():
    fields = {}
    for line in read("/proc/cpuinfo").splitlines():
        key, _, value = line.partition(":")
        fields.setdefault(key.strip(), value.strip())
    flags = (fields.get("flags") or fields.get("Features") or "").split()
    return {
        "model": fields.get("model name", platform.machine()),
        "family": fields.get("cpu family"),
        "number": fields.get("model"),
        "cores": len(os.sched_getaffinity(0)),
        "mhz": fields.get("cpu MHz"),
        "cache": fields.get("cache size"),
        "flags": [flag for flag in FLAGS if flag in flags],
        "virtual": "hypervisor" in flags,
    }


def memory_mib():
    for line in read("/proc/meminfo").splitlines():
        if line.startswith("MemTotal:"):
            return int(line.split()[1]) // 1024
    return None


def compiler():
    """The one that the build was configured with, else cc."""
    for line in read(os.path.join(ROOT, "build/release/CMakeCache.txt")).splitlines():
        if line.startswith("CMAKE_C_COMPILER:"):
            return words(line.split("=", 1)[1], "--version")
    return words("cc", "--version")


def commit():
    head = words("git", "rev-parse", "--short=12", "HEAD")
    return head and head + ("-dirty" if words("git", "status", "--porcelain", "--untracked-files=no") else "")


def distribution():
    for line in read("/etc/os-release").splitlines():
        if line.startswith("PRETTY_NAME="):
            return line.split("=", 1)[1].strip('"')
    return None


def shares():
    """The weight of our group of processes against others (1024 each unless told otherwise); None where there are none."""
    for line in read("/proc/self/cgroup").splitlines():
        _, controllers, path = line.split(":", 2)
        if "cpu" in controllers.split(","):
            return int(read("/sys/fs/cgroup/cpu%s/cpu.shares" % path) or 0) or None
        if not controllers:
            return int(read("/sys/fs/cgroup%s/cpu.weight" % path) or 0) or None
    return None


def describe(tutti):
    """`sgemm` is the same core's rate in GFLOP/s, measured now: OpenBLAS if there, else our own large product."""
    kernels = tutti.json("bench", "kernels", "--seconds", "0.1")
    return {
        "date": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "cpu": cpu(),
        "memory_mib": memory_mib(),
        "system": distribution(),
        "kernel": platform.release(),
        "compiler": compiler(),
        "commit": commit(),
        "load_1min": os.getloadavg()[0],
        "cpu_shares": shares(),
        "kernels": kernels["device"],
        "sgemm": kernels["openblas_gflops"] or kernels["own_gflops"],
        "sgemm_of": "OpenBLAS" if kernels["openblas_gflops"] else "own kernel",
    }
