#!/usr/bin/env python3
"""tutti pod-agent over HTTP: configured, run once at a time, its end known at once, nothing left behind."""
import json
import os
import pathlib
import signal
import subprocess
import time

from rig import DEADLINE, TUTTI, Server, ask, main, processes, wait

CONFIG = {"NUM_WORKERS": 2, "TF_CONFIG": {"cluster": {"worker": ["a:1", "b:2"]}, "task": {"type": "worker", "index": 1}},
          "MASTER": "10.0.0.1", "SET_ID": 0}


def body(**more):
    return json.dumps({**CONFIG, **more}).encode()


def write(folder, text):
    (folder / "exec.py").write_text(text)


def ended(agent):
    """As the master asks: a question is answered when the program ends, and when that takes too long it is asked again."""
    def look():
        status = agent.json("/status?wait_ms=20000")
        return status["state"] == "ended" and status
    return wait("the program's end", look)


def runs_with_its_environment(folder):
    write(folder, "import os\nprint(os.environ['NUM_WORKERS'], os.environ['TF_CONFIG'], os.getcwd())\n")
    agent = Server(folder, "pod-agent", "--member", "worker-1")
    assert agent.json("/status") == {"state": "idle", "exit_code": None, "reason": None, "log": "", "member": "worker-1"}
    assert agent.get("/run") == (409, "exec.py is not configured yet: POST /config first")
    assert agent.get("/config", body=body()) == (200, "OK")
    assert agent.json("/status")["state"] == "configured"
    assert agent.get("/run") == (200, "OK")
    status = ended(agent)
    text = json.dumps(CONFIG["TF_CONFIG"], separators=(",", ":"))
    assert status["log"] == f"2 {text} {os.path.realpath(folder)}\n", status
    assert (status["state"], status["exit_code"]) == ("ended", 0), status
    assert (folder / "outputs.log").read_text() == status["log"]
    # once more, from the beginning of the file; both as text are taken too
    assert agent.get("/config", body=body(NUM_WORKERS="7", TF_CONFIG="{ }")) == (200, "OK")
    assert agent.get("/run") == (200, "OK")
    assert ended(agent)["log"] == f"7 {{ }} {os.path.realpath(folder)}\n"
    assert agent.end() == 0


def names(folder):
    """A folder and programs whose names mean something to a shell, or to who expands $(NAME)."""
    odd = folder / "a $(PATH) $$ 'b"
    odd.mkdir()
    write(odd, "import os\nprint(os.getcwd())\n")
    script = odd / "go $(HOME)"
    script.write_text("#!/bin/sh\npwd\n")
    script.chmod(0o755)
    for program in ("exec.py", "go $(HOME)", "true"):
        agent = Server(folder, "pod-agent", "--dir", odd, "--program", program)
        agent.get("/config", body=body())
        assert agent.get("/run") == (200, "OK"), program
        status = ended(agent)
        assert status["exit_code"] == 0 and status["log"] == ("" if program == "true" else f"{os.path.realpath(odd)}\n"), (program, status)
        assert agent.end() == 0


def refuses(folder):
    write(folder, "")
    agent = Server(folder, "pod-agent")
    for wrong, words in [(b"", "the body is not JSON"), (b"[]", "the body is not a JSON object"),
                         (b"{}", "NUM_WORKERS is missing"), (b'{"NUM_WORKERS": 1}', "TF_CONFIG is missing"),
                         (body(NUM_WORKERS=0), "NUM_WORKERS: expected a number from 1 to 256"),
                         (body(NUM_WORKERS="2 "), "NUM_WORKERS: expected a number from 1 to 256"),
                         (body(NUM_WORKERS=[]), "NUM_WORKERS: expected a number from 1 to 256"),
                         (body(TF_CONFIG=3), "TF_CONFIG: expected an object, or its text"),
                         (body(TF_CONFIG="a" * 50000), "TF_CONFIG: expected text of at most 49152 bytes"),
                         (body(TF_CONFIG="a\0b"), "the body is not JSON")]:
        code, text = agent.get("/config", body=wrong, method="POST")
        assert code == 400 and words in text, (wrong[:60], code, text)
    assert agent.get("/config", body=b"x" * 70000)[0] == 413
    assert agent.get("/run", method="POST", body=b"")[0] == 405
    assert agent.get("/config")[0] == 405
    assert agent.get("/nothing") == (404, "there are /config, /run, /status and /healthz")
    assert agent.get("/status?wait_ms=-1")[0] == 400
    assert agent.get("/healthz")[0] == 200
    assert agent.get("/config", body=body()) == (200, "OK")
    (folder / "exec.py").unlink()
    code, text = agent.get("/run")
    assert code == 500 and "exec.py" in text, (code, text)
    assert agent.end() == 0


def token(folder):
    write(folder, "")
    file = folder / "token"
    file.write_text("a" * 32)
    file.chmod(0o600)
    agent = Server(folder, "pod-agent", "--token", file)
    assert agent.get("/status")[0] == 401
    assert agent.get("/run", token="b" * 32)[0] == 401
    assert agent.get("/status", token="a" * 32)[0] == 200
    assert agent.get("/healthz")[0] == 200
    assert agent.end() == 0


def how_it_ended(folder):
    write(folder, "import os, sys, time\nprint('x' * 20000 + 'end', flush=True)\nos.kill(os.getpid(), 9) if os.path.exists('die') else sys.exit(3)\n")
    agent = Server(folder, "pod-agent")
    agent.get("/config", body=body())
    assert agent.get("/run") == (200, "OK")
    status = ended(agent)
    assert (status["exit_code"], status["reason"]) == (3, "exit code 3"), status
    assert len(status["log"]) == 16384 and status["log"].endswith("xend\n")
    assert agent.json("/status?tail=4")["log"] == "end\n"
    (folder / "die").touch()
    assert agent.get("/run") == (200, "OK")
    status = ended(agent)
    assert status["exit_code"] == 137 and status["reason"].startswith("killed by SIGKILL, not by tutti: out of memory, mostly"), status
    assert agent.end() == 0


FOREVER = """import os, signal, subprocess, sys, time
if len(sys.argv) > 1:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
subprocess.Popen([sys.executable, '-c', 'import signal, time; signal.signal(15, signal.SIG_IGN); print(1, flush=True); time.sleep(600)'], start_new_session=True)
time.sleep(600)
"""


def one_at_a_time_and_nothing_left(folder):
    """SIGTERM ends the program and what left its group; kill -9 of either process of the agent too."""
    for number, victim in [(signal.SIGTERM, "first"), (signal.SIGKILL, "first"), (signal.SIGKILL, "second")]:
        write(folder, FOREVER)
        agent = Server(folder, "pod-agent")
        agent.get("/config", body=body())
        assert agent.get("/run") == (200, "OK")
        assert agent.get("/run") == (409, "exec.py runs already")
        assert agent.get("/config", body=body())[0] == 409
        wait("the program and its child", lambda: (folder / "outputs.log").read_text() == "1\n")
        begun = time.monotonic()
        assert agent.json("/status?wait_ms=100")["state"] == "running"
        assert time.monotonic() - begun >= 0.09  # its clock counts whole milliseconds
        if victim == "second":
            os.kill(agent.pid, number)
        agent.end(number if victim == "first" else 0)


def stubborn(folder):
    """What does not hear SIGTERM is killed when its grace is over; a second signal does not wait for that."""
    write(folder, "import signal, time\nsignal.signal(15, signal.SIG_IGN)\nprint('here', flush=True)\ntime.sleep(600)\n")
    agent = Server(folder, "pod-agent", "--grace", 1)
    agent.get("/config", body=body())
    agent.get("/run")
    wait("the program", lambda: (folder / "outputs.log").read_text() == "here\n")
    begun = time.monotonic()
    assert agent.end() == 0
    assert 1 <= time.monotonic() - begun < DEADLINE


def in_use(folder):
    write(folder, "")
    agent = Server(folder, "pod-agent")
    import subprocess
    from rig import TUTTI
    other = subprocess.run([TUTTI, "pod-agent", "--listen", agent.url[7:]], capture_output=True, text=True, cwd=folder)
    assert other.returncode == 73 and "in use" in other.stderr, other
    other = subprocess.run([TUTTI, "pod-agent", "--listen", "nowhere"], capture_output=True, text=True, cwd=folder)
    assert other.returncode == 65, other
    other = subprocess.run([TUTTI, "pod-agent", "--dir", "missing"], capture_output=True, text=True, cwd=folder)
    assert other.returncode == 66 and "missing" in other.stderr, other
    assert agent.end() == 0


def installed(folder):
    """A copy that needs nothing else of this machine: every file that it opens to start is in its folder."""
    away = folder / "away"
    done = subprocess.run([TUTTI, "pod-agent", "--install", away], capture_output=True, text=True, check=False)
    assert done.returncode == 74 and str(away) in done.stderr, done
    away.mkdir()
    subprocess.run([TUTTI, "pod-agent", "--install", away], check=True)
    listed = subprocess.run([away / "ld.so", "--library-path", away, "--list", away / "tutti"], capture_output=True, text=True, check=True).stdout
    strangers = [line for line in listed.splitlines() if "=>" in line and f"=> {away}/" not in line]
    assert not strangers and any(away.glob("libmicrohttpd.so*")), (strangers, sorted(away.iterdir()))
    said = subprocess.run([away / "ld.so", "--library-path", away, away / "tutti", "version"], capture_output=True, text=True, check=True).stdout
    assert said.startswith("tutti "), said


main([runs_with_its_environment, names, refuses, token, how_it_ended, one_at_a_time_and_nothing_left, stubborn, in_use, installed])
