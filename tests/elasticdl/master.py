#!/usr/bin/env python3
"""tutti master and tutti submit: a task from one request, its steps, ends and failures, with a program that checks what it is told."""
import http.server
import json
import os
import pathlib
import signal
import subprocess
import threading
import time

from rig import DEADLINE, TUTTI, Server, main, processes, wait

# It meets everybody else of the cluster at the addresses it was told, in the way of a collective and of a parameter server.
EXEC = '''
import json, os, socket, sys
workers = int(os.environ["NUM_WORKERS"])
config = json.loads(os.environ["TF_CONFIG"])
cluster, task = config["cluster"], config["task"]
assert set(config) == {"cluster", "task"} and set(task) == {"type", "index"}, config
assert len(cluster["worker"]) == workers, config
mine = cluster[task["type"]][task["index"]]
host, port = mine.split(":")
server = socket.create_server(("0.0.0.0", int(port)))  # a TensorFlow server binds every address
print(task["type"], task["index"], "of", workers, "serves", mine, flush=True)

def hello(address):
    there, number = address.split(":")
    while True:
        try:
            with socket.create_connection((there, int(number)), 30) as peer:
                peer.sendall(json.dumps(task).encode() + b"\\n")
                return json.loads(peer.makefile().readline())
        except ConnectionRefusedError:
            pass

def answer():
    peer, _ = server.accept()
    with peer:
        got = json.loads(peer.makefile().readline())
        peer.sendall(json.dumps(task).encode() + b"\\n")
        return got

if task["type"] == "ps":
    while True:  # as a TensorFlow server's join()
        answer()
for i, address in enumerate(cluster.get("ps", [])):
    assert hello(address) == {"type": "ps", "index": i}
for i, address in enumerate(cluster["worker"][:task["index"]]):
    assert hello(address) == {"type": "worker", "index": i}
met = sorted(answer()["index"] for _ in cluster["worker"][task["index"] + 1:])
assert met == list(range(task["index"] + 1, workers)), met
print("met everybody")
'''
SLOW = "import time\nprint('begun', flush=True)\ntime.sleep(600)\n"
CREATE = "/create?strategy=AllReduce&n_worker=2&n_ps=0&img=x&name=job"


def submit(master, *args):
    return subprocess.run([TUTTI, "submit", "--master", master.url, *map(str, args)], capture_output=True, text=True,
                          timeout=2 * DEADLINE)


def master(folder, program, *args):
    (folder / "exec.py").write_text(program)
    return Server(folder, "master", *args)


def over(server, which="id=0"):
    def look():
        status = server.json(f"/status?{which}")
        return status if status["state"] in ("succeeded", "failed", "deleted") else None
    return wait("the task to be over", look)


def nothing_runs(server):
    """No agent of the task is left, and no program."""
    wait("agents to be gone", lambda: len(processes(server.mark)) == 2)  # the master and its guard


def all_reduce(folder):
    server = master(folder, EXEC)
    done = submit(server, "--strategy", "AllReduce", "--ps-num", 0, "--worker-num", 3, "--image", "mnist", "--task", "mnist", "--wait")
    assert done.returncode == 0, (done, server.said())
    assert "task mnist has id 0 at " + server.url in done.stdout and done.stdout.endswith("succeeded\n"), done
    status = server.json("/status?name=mnist")
    assert [m["name"] for m in status["members"]] == ["worker-0", "worker-1", "worker-2"], status
    assert all(m["exit_code"] == 0 for m in status["members"]), status
    given_out = int(pathlib.Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    assert all(int(m["address"].split(":")[1]) < given_out for m in status["members"]), "a port that any connection may have"
    for i in range(3):
        code, text = server.get(f"/logs?id=0&member=worker-{i}")
        assert code == 200 and text == f"worker {i} of 3 serves {status['members'][i]['address']}\nmet everybody\n", text
        assert (server.run / "mnist-0" / f"worker-{i}" / "outputs.log").read_text() == text
    nothing_runs(server)
    assert server.end() == 0


def parameter_server(folder):
    server = master(folder, EXEC)
    done = submit(server, "--strategy", "ParameterServer", "--ps-num", 2, "--worker-num", 2, "--wait")
    assert done.returncode == 0, (done, server.said())
    status = server.json("/status?name=default")
    assert [m["name"] for m in status["members"]] == ["ps-0", "ps-1", "worker-0", "worker-1"], status
    assert [m["reason"] for m in status["members"]] == ["ended with its task"] * 2 + ["exit code 0"] * 2, status
    assert server.get("/logs?id=0&member=ps-1")[1].startswith("ps 1 of 2 serves ")
    nothing_runs(server)
    assert server.end() == 0


def original_client(folder):
    """Its one GET, whose answer it ignores; several tasks at once, of the same name too."""
    server = master(folder, EXEC)
    assert server.get(CREATE) == (200, "OK")
    assert server.get(CREATE) == (200, "OK")
    assert server.get(CREATE.replace("AllReduce", "ParameterServer").replace("n_ps=0", "n_ps=1")) == (200, "OK")
    for i in range(3):
        assert over(server, f"id={i}")["state"] == "succeeded", server.said()
    assert [(t["id"], t["name"], t["state"]) for t in server.json("/list")] == [(i, "job", "succeeded") for i in range(3)]
    assert server.json("/status?name=job")["id"] == 2
    assert server.get("/delete?id=1") == (200, "OK")
    assert [t["id"] for t in server.json("/list")] == [0, 2]
    assert server.get("/status?id=1") == (404, "there is no task with id 1")
    assert server.end() == 0


def refused(folder):
    server = master(folder, EXEC)
    for path, code, words in [("/create", 400, "strategy is missing"), ("/create?strategy=AllReduce", 400, "n_worker is missing"),
                              ("/create?strategy=ParameterServer&n_worker=1", 400, "n_ps is missing"),
                              ("/create?strategy=Ring&n_worker=1", 400, "strategy is 'Ring'; AllReduce and ParameterServer are possible"),
                              ("/create?strategy=AllReduce&n_worker=1&name=../x", 400, "name is '../x'"),
                              ("/create?strategy=AllReduce&n_worker=1&queue=team", 400, "queue is 'team'; only a master on a cluster has queues"),
                              ("/status", 400, "id or name is missing"), ("/status?id=x", 400, "id is 'x'; a number is possible"),
                              ("/status?name=nobody", 404, "there is no task nobody"), ("/nothing", 404, "there are /create"),
                              ("/logs?name=a", 404, "there is no task a")]:
        got = server.get(path)
        assert got[0] == code and words in got[1], (path, got)
    assert server.get("/status?id=0", method="DELETE")[0] == 405
    assert server.json("/list") == []
    wrong = submit(server, "--worker-num", 0)
    assert wrong.returncode == 64 and "--worker-num" in wrong.stderr, wrong
    wrong = submit(server, "--strategy", "ParameterServer", "--worker-num", 1)
    assert wrong.returncode == 64 and "n_ps is 0" in wrong.stderr, wrong
    wrong = submit(server)
    assert wrong.returncode == 64 and "--worker-num N is missing" in wrong.stderr, wrong
    second = subprocess.run([TUTTI, "master", "--listen", server.url[7:]], capture_output=True, text=True, cwd=folder)
    assert second.returncode == 73 and "in use" in second.stderr, second
    assert not list((folder / "runs").iterdir())  # of one that could not begin nothing stays
    assert server.end() == 0
    gone = submit(server, "--worker-num", 1)
    assert gone.returncode == 69 and "is it a master's" in gone.stderr, gone
    again = subprocess.run([TUTTI, "master", "--run-dir", str(server.run)], capture_output=True, text=True, cwd=folder)
    assert again.returncode == 73, again


def worker_fails(folder):
    """The task fails with who, how and the last line it wrote; everybody else is ended; submit has the program's exit code."""
    server = master(folder, "import os, json, sys, time\nif json.loads(os.environ['TF_CONFIG'])['task']['index'] == 1:\n"
                            "    sys.exit('no such file: data.npz')\ntime.sleep(600)\n")
    done = submit(server, "--worker-num", 3, "--wait")
    assert done.returncode == 1 and "worker-1: exit code 1: no such file: data.npz" in done.stderr, (done, server.said())
    status = server.json("/status?id=0")
    assert (status["state"], status["exit_code"]) == ("failed", 1), status
    nothing_runs(server)
    assert server.end() == 0


def late(folder):
    """A task has failed when its deadline has passed, whatever its programs do."""
    server = master(folder, SLOW)
    done = submit(server, "--worker-num", 2, "--deadline", "1s", "--wait")
    assert done.returncode == 69 and "it has not ended 1 s after it was asked for, its deadline" in done.stderr, done
    assert server.json("/status?id=0")["state"] == "failed"
    nothing_runs(server)
    done = submit(server, "--worker-num", 1, "--deadline", "soon")
    assert done.returncode == 64 and "--deadline: 'soon' is not a whole number with s, m, h, d or w behind it" in done.stderr, done
    assert server.end() == 0


def no_program(folder):
    server = master(folder, EXEC, "--program", "missing.py")
    done = submit(server, "--worker-num", 1, "--wait")
    assert done.returncode == 69 and "worker-0: its agent answers 500" in done.stderr and "missing.py" in done.stderr, done
    assert server.end() == 0


def agent_killed(folder):
    """kill -9 of an agent, of its guard, of a program: the task fails by name and nothing is left."""
    for victim in ("agent", "guard", "program"):
        server = master(folder, SLOW)
        assert server.get(CREATE) == (200, "OK")
        log = server.run / "job-0" / "worker-1" / "outputs.log"
        wait("the programs", lambda: log.exists() and log.read_text() == "begun\n")
        wait("their agents' answers", lambda: server.json("/status?id=0")["state"] == "running")
        agent = json.loads((server.run / "job-0" / "worker-1" / "agent.json").read_text())["pid"]
        parent = int(pathlib.Path(f"/proc/{agent}/stat").read_text().rsplit(")")[1].split()[1])
        program = int(pathlib.Path(f"/proc/{agent}/task/{agent}/children").read_text().split()[0])
        os.kill({"agent": agent, "guard": parent, "program": program}[victim], signal.SIGKILL)
        status = over(server)
        # an agent without its guard ends its program in order, and may still say so
        words = {"agent": "worker-1: its agent has ended: ", "guard": "worker-1: ", "program": "worker-1: killed by SIGKILL, not by tutti: "}
        assert status["state"] == "failed" and status["reason"].startswith(words[victim]), (victim, status)
        assert victim != "program" or status["reason"].endswith("; its last line: begun"), status
        nothing_runs(server)
        assert server.end() == 0


def deleted(folder):
    """In the middle of making, and while it runs."""
    server = master(folder, SLOW)
    assert server.get(CREATE.replace("n_worker=2", "n_worker=8")) == (200, "OK")
    assert server.get("/delete?id=0") == (200, "OK")
    assert over(server, "id=0")["state"] == "deleted"
    sent = submit(server, "--worker-num", 1, "--task", "sent")  # and not waited for: well sent is 0
    assert sent.returncode == 0 and sent.stdout.startswith("task sent has id 1 at ") and not sent.stderr, sent
    assert server.get("/delete?id=1") == (200, "OK")
    running = subprocess.Popen([TUTTI, "submit", "--master", server.url, "--worker-num", "2", "--task", "b", "--wait"],
                               stdout=subprocess.PIPE, text=True)
    wait("the task to run", lambda: any(t["id"] == 2 and t["state"] == "running" for t in server.json("/list")))
    assert server.get("/delete?name=b", method="POST", body=b"") == (200, "OK")
    assert running.wait(DEADLINE) == 130, running.stdout.read()
    assert running.stdout.read().endswith("deleted\n")
    running.stdout.close()
    nothing_runs(server)
    assert server.end() == 0


class Refusing(http.server.BaseHTTPRequestHandler):
    """A task that begins; its master is gone then for eight looks, and another one is there."""
    asked = []

    def do_GET(self):
        self.asked.append(self.path)
        code = 503 if 2 <= len(self.asked) <= 9 else 200
        body = json.dumps({"name": "job", "id": 0, "state": "starting" if len(self.asked) == 1 else "succeeded"}).encode() if code == 200 else b"not yet"
        self.send_response(code)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args):
        pass


def another_master(folder):
    """Who follows a task goes on when another master is there for one that does not answer."""
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Refusing) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        done = subprocess.run([TUTTI, "submit", "--master", f"http://127.0.0.1:{server.server_port}", "--worker-num", "1", "--wait"],
                              capture_output=True, text=True, timeout=DEADLINE)
        server.shutdown()
        thread.join()
    assert done.returncode == 0 and done.stdout.endswith("succeeded\n"), done
    assert done.stderr.count("HTTP 503: not yet; asked again for 30 s") == 1 and len(Refusing.asked) == 10, (done.stderr, Refusing.asked)


def stands_still(folder):
    """An agent that is stopped hears no SIGTERM: a task that is deleted is over all the same."""
    server = master(folder, SLOW, "--grace", "0")
    assert server.get(CREATE) == (200, "OK")
    wait("the task to run", lambda: server.json("/status?id=0")["state"] == "running")
    agent = json.loads((server.run / "job-0" / "worker-0" / "agent.json").read_text())["pid"]
    os.kill(agent, signal.SIGSTOP)
    assert server.get("/delete?id=0") == (200, "OK")
    assert over(server)["state"] == "deleted"
    nothing_runs(server)
    assert server.end() == 0


def foreign(folder):
    """What answers is no master: an agent, a page, a redirection that is not followed."""
    class Page(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(302 if "task" in self.path else 200)
            self.send_header("Location", "http://127.0.0.1:1/")
            self.end_headers()
            self.wfile.write(b"\x1b[2Jnot\nJSON")

        def log_message(self, *_):
            pass

    other = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Page)
    threading.Thread(target=other.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{other.server_port}"
    for args, words in [([], "no master of tutti's"), (["--task", "task"], "HTTP 302:  [2Jnot JSON")]:
        done = subprocess.run([TUTTI, "submit", "--master", url, "--worker-num", "1", *args], capture_output=True, text=True)
        assert done.returncode == 76 and words in done.stderr, done
    for wrong in ("ftp://x", "http://", "http://a b", "127.0.0.1:7897", "http://x?y"):
        done = subprocess.run([TUTTI, "submit", "--master", wrong, "--worker-num", "1"], capture_output=True, text=True)
        assert done.returncode == 64 and "no URL of a master" in done.stderr, (wrong, done)
    other.shutdown()
    other.server_close()


def master_ends(folder):
    """SIGTERM: in order; kill -9 of either of its processes: at once. Nothing is left in any case."""
    for number, victim in [(signal.SIGTERM, "first"), (signal.SIGKILL, "first"), (signal.SIGKILL, "second")]:
        server = master(folder, SLOW)
        assert server.get(CREATE) == (200, "OK")
        wait("the task to run", lambda: server.json("/status?id=0")["state"] == "running")
        if victim == "second":
            os.kill(server.pid, number)
        code = server.end(number if victim == "first" else 0)
        assert code == (0 if number == signal.SIGTERM else -9 if victim == "first" else 137), code


def token(folder):
    file = folder / "secret"
    file.write_text("c" * 40)
    file.chmod(0o600)
    server = master(folder, EXEC, "--token", file)
    assert server.get(CREATE)[0] == 401
    done = submit(server, "--worker-num", 1)
    assert done.returncode == 77 and "--token" in done.stderr, done
    done = submit(server, "--worker-num", 1, "--token", file, "--wait")
    assert done.returncode == 0, done
    # the agents ask for one of their own
    assert (server.run / "token").stat().st_mode & 0o777 == 0o600
    assert server.end() == 0


def metrics(server, token=None):
    """{sample: value} of a page that Prometheus could read: every sample has its head before it."""
    code, text = server.get("/metrics", token=token)
    assert code == 200, text
    types, values = {}, {}
    for line in text.splitlines():
        if line.startswith("# TYPE "):
            types[line.split()[2]] = line.split()[3]
        elif not line.startswith("#"):
            sample, value = line.rsplit(" ", 1)
            assert sample not in values and sample.split("{")[0] in types, line
            values[sample] = float(value)
    assert {name for name, kind in types.items() if kind == "counter"} == {name for name in types if name.endswith("_total")}, types
    return values


def watched(folder):
    """What Prometheus reads: how many there are in which state, and what became of them."""
    server = master(folder, SLOW)
    before = metrics(server)
    assert {before[f'tutti_master_tasks{{state="{state}"}}'] for state in ("starting", "running", "ending")} == {0}, before
    assert 0 <= time.time() - before["process_start_time_seconds"] < 600 and before["process_resident_memory_bytes"] > 1 << 20, before
    assert server.get(CREATE)[0] == 200
    wait("two programs that run", lambda: metrics(server)["tutti_master_members_running"] == 2)
    now = metrics(server)
    assert now['tutti_master_tasks{state="running"}'] == now["tutti_master_tasks_created_total"] == 1 and now["tutti_master_members"] == 2, now
    assert server.get("/delete?id=0")[0] == 200
    wait("its end", lambda: metrics(server)['tutti_master_tasks_finished_total{outcome="deleted"}'] == 1)
    (folder / "exec.py").write_text("raise SystemExit(3)")
    assert submit(server, "--worker-num", 1, "--wait").returncode == 3
    now = metrics(server)
    assert now['tutti_master_tasks_finished_total{outcome="failed"}'] == now['tutti_master_tasks_finished_total{outcome="deleted"}'] == 1, now
    assert now["tutti_master_tasks_created_total"] == 2 and now["tutti_master_members"] == 0, now
    assert server.end() == 0


def limits(folder):
    server = master(folder, SLOW)
    for _ in range(2):
        assert server.get("/create?strategy=AllReduce&n_worker=1")[0] == 200
    code, text = server.get("/create?strategy=AllReduce&n_worker=257")
    assert code == 400 and "a number from 1 to 256" in text, text
    for _ in range(30):
        assert server.get("/create?strategy=AllReduce&n_worker=1")[0] == 200
    code, text = server.get("/create?strategy=AllReduce&n_worker=1")
    assert code == 503 and "32 tasks are not over yet" in text, (code, text)
    assert server.end() == 0


main([all_reduce, parameter_server, original_client, refused, worker_fails, late, no_program, agent_killed, deleted, another_master, stands_still, foreign,
      master_ends, token, watched, limits])
