"""nvidia - this machine's card, in the words of NVIDIA's driver. For the benchmark and for tests/gpu/run."""
import subprocess

FIELDS = ("name", "driver_version", "compute_cap", "memory.total", "clocks.max.sm", "clocks.sm", "power.limit")


class NoCard(Exception):
    """Why there is none to be asked about."""


def card(timeout_s=60):
    """{field: text} of the first card."""
    try:
        done = subprocess.run(["nvidia-smi", f"--query-gpu={','.join(FIELDS)}", "--format=csv,noheader"], capture_output=True, text=True, check=False,
                              timeout=timeout_s)
    except FileNotFoundError:
        raise NoCard("there is no nvidia-smi here, and so no NVIDIA driver") from None
    except subprocess.TimeoutExpired:
        raise NoCard(f"nvidia-smi has not answered for {timeout_s} s") from None
    if done.returncode != 0 or not done.stdout.strip():
        raise NoCard(f"there is no card here: {(done.stdout + done.stderr).strip()}")
    return dict(zip(FIELDS, done.stdout.splitlines()[0].split(", ")))
