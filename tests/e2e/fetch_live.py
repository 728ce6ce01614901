#!/usr/bin/env python3
"""`tutti fetch URL`: the weights of a living job over HTTP, behind its token, whole or not at all; and no one who reads slowly
holds the job up."""

import hashlib
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import urllib.parse

sys.dont_write_bytecode = True
from rig import ENDLESS, check, equal, main, stands_still, wait_for

USAGE, DATA, NOT_FOUND, UNAVAILABLE, IO, PROTOCOL, DENIED = 64, 65, 66, 69, 74, 76, 77
FETCHED = "fetched.safetensors"


def s_start(world, *sets):
    process, run_dir = world.start_run(world.config(), ENDLESS, *sets, seed=3)

    def look():
        check(process.poll() is None, "the run ended")
        return os.path.exists(f"{run_dir}/http.json")
    wait_for(look, "HTTP")
    with open(f"{run_dir}/http.json", encoding="utf-8") as file:
        return process, run_dir, json.load(file)["url"]


def s_read(path):
    with open(path, "rb") as file:
        return file.read()


def s_fetch(world, url, *args, token=None, env=None):
    return world.tutti("fetch", url, "-o", FETCHED, *args, *(["--token", token] if token else []), env=env)


def s_refused(world, code, words, *args, **more):
    """Nothing is written, and the message says all words."""
    done = s_fetch(world, *args, **more)
    equal(done.returncode, code, f"fetch {args}: {done.stderr}")
    for word in words:
        check(word in done.stderr, f"fetch {args} does not say {word!r}: {done.stderr}")
    left = [name for name in os.listdir(world.path) if "fetch" in name]
    equal(left, [], "left behind")


def s_whole(world, done, text):
    """What was fetched; the file is as it was told, and can be played with."""
    equal(done.returncode, 0, f"{text}: {done.stderr}")
    got = s_read(f"{world.path}/{FETCHED}")
    check(f"sha256 {hashlib.sha256(got).hexdigest()}" in done.stderr, f"{text}: {done.stderr}")
    equal(world.tutti("eval", FETCHED, "--episodes", "1").returncode, 0, f"eval: {text}")
    os.unlink(f"{world.path}/{FETCHED}")
    return got


def test_a_living_job(world):
    process, run_dir, url = s_start(world, "checkpoint.every_s=0.05")
    token = f"{run_dir}/token"
    world.await_snapshot(run_dir, process)
    s_whole(world, s_fetch(world, url, token=token), "the newest")
    s_whole(world, s_fetch(world, f"{url}/", env={"TUTTI_TOKEN": s_read(token).decode().strip()}), "by the environment")
    s_whole(world, s_fetch(world, url, "--best", token=token), "the best")
    piped = subprocess.run([os.environ["TUTTI"], "fetch", url, "--token", token, "-o", "-"], capture_output=True, check=True,
                           env=world.env)
    check(f"sha256 {hashlib.sha256(piped.stdout).hexdigest()}" in piped.stderr.decode(), piped.stderr)
    s_refused(world, USAGE, ["--token", "TUTTI_TOKEN"], url)
    s_refused(world, USAGE, ["TUTTI_TOKEN"], url, env={"TUTTI_TOKEN": "a\r\nX: y"})
    s_refused(world, DENIED, ["not its token"], url, env={"TUTTI_TOKEN": "0123456789abcdef"})
    s_refused(world, DATA, ["not a token"], url, token=f"{run_dir}/key")
    s_refused(world, NOT_FOUND, ["/nothing/weights"], f"{url}/nothing", token=token)
    s_refused(world, USAGE, ["no URL"], f"{url}/?x=1", token=token)
    s_refused(world, USAGE, ["--token"], run_dir, token=token)
    world.stop(process, run_dir)
    s_refused(world, UNAVAILABLE, ["does it run?"], url, token=token)  # it has ended meanwhile


def test_before_there_are_any(world):
    process, run_dir, url = s_start(world, "checkpoint.every_s=3600")
    s_refused(world, NOT_FOUND, ["no weights yet", "checkpoint.every_s"], url, token=f"{run_dir}/token")
    s_refused(world, NOT_FOUND, ["no best weights yet"], url, "--best", token=f"{run_dir}/token")
    world.stop(process, run_dir)


def s_damage(path):
    """A bit of what the file holds; best.safetensors may be a second name of it, so another file takes the name."""
    data = bytearray(s_read(path))
    data[-100] ^= 1
    with open(f"{path}.new", "wb") as file:
        file.write(data)
    os.rename(f"{path}.new", path)


def s_settled(world, run_dir):
    """Name of the newest snapshot when no more are made: the word of another one may wait behind the question, and has been read when it
    is asked again."""
    names = [None]

    def look():
        names.append(os.path.basename(world.look(run_dir)["snapshot"]["path"]))
        return names[-1] == names[-2]
    wait_for(look, lambda: f"two looks at one snapshot: {names}")
    return names[-1]


def test_damaged(world):
    """The one before is taken, and that is said; when none is whole nothing is handed out."""
    process, run_dir, url = s_start(world, "checkpoint.every_s=0.05", "net.lease_ms=600000", "learner.replicas=1")
    token, folder = f"{run_dir}/token", f"{run_dir}/checkpoints"

    def numbered():
        return sorted(name for name in os.listdir(folder) if name[0].isdigit() and name.endswith(".safetensors"))
    wait_for(lambda: world.await_snapshot(run_dir, process) and len(numbered()) > 2, "snapshots")
    learner = world.replica("learner", 0)
    os.kill(learner, signal.SIGSTOP)  # no more of them
    wait_for(lambda: stands_still(learner), "the learner to stand still")
    newest = s_settled(world, run_dir)
    before = max(name for name in numbered() if name < newest)
    s_damage(f"{folder}/{newest}")
    done = s_fetch(world, url, token=token)
    check(f"{newest} is passed over: damaged" in done.stderr and f"{before} of " in done.stderr, done.stderr)
    equal(s_whole(world, done, "the one before"), s_read(f"{folder}/{before}"), "its bytes")
    s_damage(f"{folder}/best.safetensors")
    s_refused(world, DATA, ["best.safetensors", "damaged"], url, "--best", token=token)
    for name in numbered():
        if name != newest:
            s_damage(f"{folder}/{name}")
    s_refused(world, DATA, ["no snapshot is whole", newest], url, token=token)
    os.kill(learner, signal.SIGCONT)
    world.stop(process, run_dir)


def test_slow_readers(world):
    """Sixty clients ask for the weights and take none of it: the job trains on, and the next one is served."""
    process, run_dir, url = s_start(world, "checkpoint.every_s=0.05")
    status = world.await_snapshot(run_dir, process) and world.look(run_dir, process)
    token = s_read(f"{run_dir}/token").decode().strip()
    slow = []
    for _ in range(60):
        client = socket.socket()
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.connect(("127.0.0.1", urllib.parse.urlparse(url).port))
        client.sendall(f"GET /weights HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\n\r\n".encode())
        slow.append(client)
    world.await_steps(run_dir, status["env_steps"] + 20000, process)
    s_whole(world, s_fetch(world, url, token=f"{run_dir}/token"), "beside slow readers")
    for client in slow:
        client.close()
    world.stop(process, run_dir)


class Liar:
    """A server that says what it was told to, and hangs up."""

    def __init__(self, *answers):
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.socket.getsockname()[1]}"
        self.heard = []
        threading.Thread(target=self.serve, args=answers, daemon=True).start()

    def serve(self, *answers):
        for answer in answers:
            client = self.socket.accept()[0]
            self.heard.append(client.recv(65536))
            client.sendall(answer)
            client.close()


def s_answer(body, name="00000007.safetensors", length=None, status="200 OK", more=""):
    return (f"HTTP/1.1 {status}\r\nContent-Disposition: attachment; filename=\"{name}\"\r\n"
            f"Content-Length: {len(body) if length is None else length}\r\n{more}\r\n").encode() + body


def test_who_is_not_to_be_trusted(world):
    """Whatever stands at the other end: nothing is written, the message says what is wrong, and it ends."""
    run_dir = world.train(world.config())["run_dir"]
    good = s_read(f"{run_dir}/checkpoints/final.safetensors")
    half = good[:len(good) // 2]
    token = world.file("token", "0123456789abcdef0123456789abcdef\n")
    os.chmod(token, 0o600)

    def refused(code, words, *answers):
        s_refused(world, code, words, Liar(*answers).url, token=token)
    refused(UNAVAILABLE, ["broke off after", "try again"], s_answer(half, length=len(good)))
    refused(DATA, ["passed over", "no snapshot is whole"], s_answer(half), s_answer(b"{}", status="404 Not Found"))
    refused(PROTOCOL, ["before update 7"], s_answer(half), s_answer(half))  # or it would never end
    refused(DATA, ["passed over"], s_answer(b""), s_answer(b"{}", status="404 Not Found"))
    refused(PROTOCOL, ["without a snapshot's name"], s_answer(good, name="../../etc/passwd"))
    refused(PROTOCOL, ["without a snapshot's name"], b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi")
    refused(PROTOCOL, ["HTTP 302"], s_answer(b"", status="302 Found", more="Location: http://127.0.0.1:1/\r\n"))
    refused(UNAVAILABLE, ["HTTP 503", "no room?[31m"], s_answer(b'{"error": "no room\\u001b[31m"}', status="503 No"))
    refused(UNAVAILABLE, ["does it run?"], b"")
    refused(UNAVAILABLE, ["does it run?"], b"SSH-2.0-OpenSSH_9.2\r\n")
    whole = Liar(s_answer(good))
    s_whole(world, s_fetch(world, whole.url, token=token), "a whole one")
    check(b"Authorization: Bearer 0123456789abcdef0123456789abcdef\r\n" in whole.heard[0], whole.heard)
    equal(s_fetch(world, Liar(s_answer(good)).url, "-o", f"{world.path}/none/x", token=token).returncode, IO, "nowhere to write")


main(test_a_living_job, test_before_there_are_any, test_damaged, test_slow_readers, test_who_is_not_to_be_trusted)
