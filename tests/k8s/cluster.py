#!/usr/bin/env python3
"""cluster - a real Kubernetes for the tests, on this machine alone, as many side by side as wanted.

In a test:

    import cluster
    cluster.require(full=True)                        # prints SKIP and exits 77 where something is missing
    with cluster.Cluster(full=True) as k8s:           # or without full: etcd and the API server only
        k8s.kubectl("create", "-f", "-", input=text)
        operator = k8s.exec_in([TUTTI, "operator"], env={"KUBECONFIG": k8s.kubeconfig})
        cluster.wait_for(lambda: k8s.get("/api/v1/namespaces/default/pods/x")["status"].get("phase") == "Succeeded")

For people: cluster.py up [--api-only [--controllers] [--fake-kubelet]] DIR | status DIR | kubectl DIR [--] ARGS | shell DIR | down DIR

What belongs to a cluster lies in its folder and in namespaces of its own (cluster/guard.py), and all of it ends with
the owner: the process that made the Cluster, or `down` for one made by `up`.
"""

import argparse
import contextlib
import ctypes
import datetime
import errno
import glob
import http.client
import json
import os
import re
import select
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
import time
import traceback

sys.dont_write_bytecode = True
s_here = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(s_here, "cluster"))
import fake_metrics  # noqa: E402
import guard  # noqa: E402
import images  # noqa: E402
import parts  # noqa: E402

DEADLINE = 120.0
GOGC = "400"  # of Kubernetes' own programs, kubectl among them: memory for time
API_PARTS = ("etcd", "kube-apiserver")
NODE_PARTS = ("containerd", "kube-scheduler", "kubelet", "kube-proxy", "coredns")
HIDDEN = ("/run/", "/var/lib/", "/var/log/")  # what a cluster sees there is its own
s_libc = ctypes.CDLL(None, use_errno=True)


class Failed(Exception):
    pass


class Skipped(Exception):
    """What one test of a script needs is not here. The others run, and the script counts as skipped: nobody is to think that all was looked at."""


def wait_for(condition, text="a condition", deadline=DEADLINE, pause=0.02):
    """Until condition() is true; its value. Errors of the connection count as "not yet". A look that was long (a kubectl is a tenth of a
    second of a core) is rested from twice as long, and a wait that is long from a tenth of it, up to a quarter of a second: what is waited
    for needs that core.

    text: what is waited for; a function of none is asked when it did not come, for what is there instead."""
    start = time.monotonic()
    end = start + deadline
    last = None
    while True:
        begun = time.monotonic()
        late = begun > end  # before the look: who was stopped meanwhile still has one
        try:
            value = condition()
            if value:
                return value
            last = None
        except (OSError, http.client.HTTPException, ApiError) as error:
            last = error
        if late:
            said = text() if callable(text) else text
            raise Failed(f"waited {deadline:g} s for {said}" + (f"; last error: {last}" if last else ""))
        now = time.monotonic()
        time.sleep(max(pause, min(max(2 * (now - begun), (now - start) / 10), 0.25)))


def unix_time(text):
    """A time as the API has it ("2026-01-02T03:04:05.678901Z"), in seconds since 1970."""
    return datetime.datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()


def received(event):
    """When a request of the audit log came in, in seconds since 1970."""
    return unix_time(event["requestReceivedTimestamp"])


class ApiError(Exception):
    """An answer of the API server that is not 2xx; .code and .body (a Status object, when it is one)."""

    def __init__(self, code, body):
        self.code, self.body = code, body
        super().__init__(f"{code} {body.get('message', body) if isinstance(body, dict) else body}")


# --- what a machine needs

def programs():
    """{name: path} of what tests/k8s/cluster/build made; None before it did."""
    done = subprocess.run([os.path.join(s_here, "cluster", "build"), "--paths"], capture_output=True, text=True,
                          timeout=60, check=False)
    if done.returncode != 0:
        return None
    found = {name: os.path.join(folder, name) for folder in done.stdout.split() for name in os.listdir(folder)}
    found["containerd"] = parts.system_program("containerd")
    return found


def missing(full=False):
    """Why these tests cannot run here, in words; None when they can."""
    if sys.platform != "linux" or os.geteuid() != 0:
        return "a cluster of its own needs Linux and root"
    wanted = {"openssl": "openssl", "ip": "iproute2", "nsenter": "util-linux"}
    if full:
        wanted |= {"containerd": "containerd", "ctr": "containerd", "runc": "runc", "iptables": "iptables"}
    lacking = {package for name, package in wanted.items() if not parts.system_program(name)}
    if full and not os.path.exists(os.path.join(parts.CNI_PLUGINS, "ptp")):
        lacking.add("containernetworking-plugins")
    if full and not os.path.exists(images.BUSYBOX):
        lacking.add("busybox-static")
    if lacking:
        return f"missing packages: {' '.join(sorted(lacking))} (tools/install-deps --ci)"
    lacks = guard.denied()
    if lacks:
        return f"not permitted here: {lacks}"
    if not programs():
        return "the control plane is not built: tests/k8s/cluster/build (some ten minutes, once, with Go)"
    return None


def require(full=False):
    """End the test as skipped, aloud, where it cannot run."""
    reason = missing(full)
    if reason:
        print(f"SKIP: {reason}", flush=True)
        sys.exit(77)


# --- the network of a cluster, from outside

s_entering = threading.Lock()


@contextlib.contextmanager
def s_in_network(pid):
    """This thread in the network of a process: sockets made meanwhile belong to it, for good."""
    home = os.open("/proc/thread-self/ns/net", os.O_RDONLY)
    there = os.open(f"/proc/{pid}/ns/net", os.O_RDONLY)
    try:
        if s_libc.setns(there, guard.CLONE_NEWNET) != 0:
            raise OSError(ctypes.get_errno(), "setns")
        try:
            yield
        finally:
            if s_libc.setns(home, guard.CLONE_NEWNET) != 0:
                os.abort()  # nothing in this process would be right any more
    finally:
        os.close(home)
        os.close(there)


def s_quota(path, wanted=None):
    """Of a control group, read or written; None: its pod has gone."""
    try:
        with open(path, "w" if wanted else "r", encoding="ascii") as file:
            return file.write(wanted) if wanted else file.read().split()[0]
    except OSError as error:
        if error.errno not in (errno.ENOENT, errno.ENODEV):
            raise
        return None


class s_Connection(http.client.HTTPConnection):
    def __init__(self, pid, port, context, timeout):
        super().__init__(guard.ADDRESS, port, timeout=timeout)
        self.pid, self.context = pid, context

    def connect(self):
        with s_in_network(self.pid):
            self.sock = socket.create_connection((self.host, self.port), self.timeout)
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # or a body waits 40 ms for its head's ACK
        if self.context:
            self.sock = self.context.wrap_socket(self.sock, server_hostname=self.host)


class Cluster:
    """One cluster. Threads: any; two calls at once on the same component are not ordered."""

    def __init__(self, directory=None, full=False, controllers=None, fake_kubelet=False, extra=None, kubelet=None,
                 proxy=None, audit=False, owned=True, keep_logs=None, folders=None):
        """directory: made, and removed at the end; a new one below the temporary folder when not given.
        full: with a node, DNS, service addresses and all controllers; else etcd and the API server alone, and
        controllers (True for all, or a list as --controllers takes it) adds the controller manager.
        fake_kubelet: pods are moved through their phases though there is no node (cluster/fake-kubelet/main.go says
        how); True, or the name of a node that they are bound to (made here): only then is a deletion graceful.
        extra: {component: [more arguments]}. kubelet, proxy: {setting: value} over ours. audit: keep the requests.
        keep_logs: a folder that gets the components' logs at the end. folders: {in every container: a folder here}, as if it
        were in its image, and to be read only: what is too big to be put into one."""
        self.directory = os.path.abspath(directory or tempfile.mkdtemp(prefix="tt-k8s-"))
        self.full, self.owned, self.keep_logs, self.audit_on = full, owned, keep_logs, audit
        self.fake_kubelet = fake_kubelet
        self.controllers = "*" if full or controllers is True else controllers
        self.extra, self.kubelet, self.proxy = extra or {}, kubelet or {}, proxy or {}
        self.folders = folders or {}
        self.kubeconfig = os.path.join(self.directory, "admin.kubeconfig")
        self.programs = None
        self.world = None
        self.files = None
        self.context = self.who = None  # TLS to the API server, and the head that says who asks
        self.per_thread = threading.local()  # a thread's connection to the API server
        self.owner = self.guard = None

    # --- life

    def __enter__(self):
        return self.start()

    def __exit__(self, kind, error, trace):
        if kind and issubclass(kind, Exception) and self.world:
            print(self.log_ends(), flush=True)
        self.stop()

    def start(self, deadline=DEADLINE):
        """Until it serves: the API ready; with a node also that Ready, and names resolved. Returns self."""
        reason = missing(self.full)
        if reason:
            raise Failed(reason)
        self.programs = programs()
        try:
            self.s_start_world(deadline)
            self.files = parts.Files(self.directory, self.world["mark"])
            self.files.write(self.full, self.kubelet, self.proxy, self.folders)
            self.s_remember()
            self.start_part("etcd")
            if self.full:
                self.start_part("containerd")
            wait_for(lambda: self.http(2379, "/health", host="127.0.0.1")[0] == 200, "etcd to be healthy", deadline)
            self.start_part("kube-apiserver")
            if self.full:
                self.load_image(self.s_base_images())
            self.await_api(deadline)
            for name in (("kube-controller-manager",) if self.controllers else ()) + (NODE_PARTS[1:] if self.full else ()):
                self.start_part(name)
            if self.controllers:
                wait_for(lambda: self.get("/api/v1/namespaces/default/serviceaccounts/default"),
                         "the default ServiceAccount", deadline)
            if self.fake_kubelet:
                self.s_start_fake()
            if self.full:
                self.await_node(deadline)
                wait_for(lambda: self.http(8181, "/ready", host="127.0.0.1")[0] == 200, "DNS to be ready", deadline)
        except BaseException as error:
            if isinstance(error, Exception):
                print(self.log_ends(), file=sys.stderr, flush=True)
            self.stop()
            raise
        return self

    def s_start_fake(self):
        if isinstance(self.fake_kubelet, str):
            ready = {"type": "Ready", "status": "True", "reason": "Fake"}
            room = {"cpu": "1000", "memory": "4Ti", "pods": "100000"}
            self.api("POST", "/api/v1/nodes", {"metadata": {"name": self.fake_kubelet}})
            self.patch(f"/api/v1/nodes/{self.fake_kubelet}/status",
                       {"status": {"capacity": room, "allocatable": room, "conditions": [ready]}})
            self.extra["fake-kubelet"] = [f"--bind={self.fake_kubelet}", *self.extra.get("fake-kubelet", [])]
        self.start_part("fake-kubelet")

    def s_start_world(self, deadline):
        if any((self.directory + "/").startswith(place) for place in HIDDEN) or len(self.directory) > 80:
            raise Failed(f"{self.directory}: choose a shorter one outside of {', '.join(HIDDEN)}")
        os.makedirs(os.path.join(self.directory, "logs"), exist_ok=True)
        watched, self.owner = os.pipe2(os.O_CLOEXEC) if self.owned else (-1, None)
        answer, report = os.pipe2(os.O_CLOEXEC)
        with open(os.path.join(self.directory, "logs", "guard.log"), "wb") as log:
            self.guard = subprocess.Popen(
                [sys.executable, "-B", os.path.join(s_here, "cluster", "guard.py"), self.directory, str(watched), str(report)],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True, cwd="/",
                pass_fds=[number for number in (watched, report) if number >= 0])
        if self.owned:
            os.close(watched)
        os.close(report)
        with os.fdopen(answer, encoding="utf-8") as file:
            said = file.read().strip()
        if said != "ok":
            raise Failed(f"the cluster's namespaces: {said or 'the guard ended'}")
        self.s_load_world(deadline)

    def s_load_world(self, deadline=5.0):
        path = os.path.join(self.directory, "world.json")
        wait_for(lambda: os.path.exists(path), path, deadline)
        with open(path, encoding="utf-8") as file:
            self.world = json.load(file)

    def s_remember(self):
        with open(os.path.join(self.directory, "cluster.json"), "w", encoding="utf-8") as file:
            json.dump({name: getattr(self, name) for name in
                       ("full", "controllers", "fake_kubelet", "extra", "kubelet", "proxy", "audit_on", "programs")}, file)

    @classmethod
    def attach(cls, directory):
        """A cluster that another process started; it stays that one's."""
        self = cls(directory, owned=False)
        try:
            self.s_load_world(0)
            with open(os.path.join(self.directory, "cluster.json"), encoding="utf-8") as file:
                for name, value in json.load(file).items():
                    setattr(self, name, value)
        except (Failed, OSError) as error:
            raise Failed(f"{directory}: no cluster here") from error
        self.files = parts.Files(self.directory, self.world["mark"])
        if guard.start_time(self.world["init"]) != self.world["init_start"]:
            raise Failed(f"{directory}: the cluster has ended")
        return self

    def stop(self, deadline=DEADLINE):
        """All of it, and the folder; may be called twice."""
        if self.keep_logs and os.path.isdir(os.path.join(self.directory, "logs")):
            shutil.copytree(os.path.join(self.directory, "logs"), self.keep_logs, dirs_exist_ok=True)
        if self.owner is not None:
            os.close(self.owner)
            self.owner = None
        elif self.world and guard.start_time(self.world["init"]) == self.world["init_start"]:
            with contextlib.suppress(OSError, ValueError):
                self.s_control({"do": "down"})
        if self.guard:
            self.guard.wait(timeout=deadline)
            self.guard = None
        elif self.world:
            wait_for(lambda: guard.start_time(self.world["guard"]) is None, "the guard to end", deadline)
        self.world = None
        if os.path.exists(self.directory):
            shutil.rmtree(self.directory)

    # --- components

    def s_control(self, request):
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(60)
            connection.connect(os.path.join(self.directory, "control"))
            connection.sendall(json.dumps(request).encode() + b"\n")
            reply = json.loads(connection.makefile("r", encoding="utf-8").readline())
        if "error" in reply:
            raise Failed(f"{request}: {reply['error']}")
        return reply

    def start_part(self, name):
        """Start a component (etcd, kube-apiserver, kubelet, ...) with its settings; does not wait until it serves."""
        argv = parts.command(name, self.files, self.programs, self.controllers)
        if name == "kube-apiserver":
            argv += ["--disable-admission-plugins=ServiceAccount"] if not self.controllers else []
            argv += [f"--audit-policy-file={self.files.path('audit.policy')}",
                     f"--audit-log-path={self.files.path('audit.log')}"] if self.audit_on else []
        env = {"PATH": parts.PATH, "HOME": self.directory, "TMPDIR": "/tmp", "GOGC": GOGC}
        self.s_control({"do": "start", "name": name, "argv": argv + self.extra.get(name, []), "env": env})

    def stop_part(self, name, number=signal.SIGTERM, deadline=DEADLINE):
        """Stop a component and wait for its end. Its data stays; start_part() goes on with them."""
        self.s_control({"do": "kill", "name": name, "number": int(number)})
        wait_for(lambda: not self.running(name), f"{name} to end", deadline)

    def signal_part(self, name, number):
        """SIGSTOP and SIGCONT, say: a component that hangs."""
        self.s_control({"do": "kill", "name": name, "number": int(number)})

    def restart_part(self, name, number=signal.SIGTERM):
        self.stop_part(name, number)
        self.start_part(name)
        if name in API_PARTS:
            self.await_api()

    def parts(self):
        """{name: {"pid" (as the cluster counts), "code" (None while it runs)}}."""
        return self.s_control({"do": "status"})

    def running(self, name):
        part = self.parts().get(name)
        return bool(part) and part["code"] is None

    def pid(self, name):
        """Process id of a running component as this side of the world counts, for /proc."""
        wanted = self.parts()[name]["pid"]
        init = self.world["init"]
        with open(f"/proc/{init}/task/{init}/children", encoding="ascii") as file:
            for pid in map(int, file.read().split()):
                with contextlib.suppress(OSError), open(f"/proc/{pid}/status", encoding="utf-8") as status:
                    if re.search(rf"^NSpid:.*\t{wanted}$", status.read(), re.MULTILINE):
                        return pid
        raise Failed(f"{name} does not run")

    def log(self, name):
        with open(os.path.join(self.directory, "logs", name + ".log"), encoding="utf-8", errors="replace") as file:
            return file.read()

    def log_ends(self, size=1500):
        """The ends of all components' logs, for messages."""
        folder = os.path.join(self.directory, "logs")
        names = sorted(os.listdir(folder)) if os.path.isdir(folder) else []
        return "\n".join(f"--- {name}\n{self.log(name[:-4])[-size:]}" for name in names)

    def await_api(self, deadline=DEADLINE):
        def ready():
            if not self.running("kube-apiserver"):
                raise Failed("the API server ended")
            return self.http(6443, "/readyz")[0] == 200
        wait_for(ready, "the API server to be ready", deadline)

    def await_node(self, deadline=DEADLINE):
        def ready():
            node = self.get(f"/api/v1/nodes/{parts.NODE}")
            conditions = {item["type"]: item["status"] for item in node["status"].get("conditions", [])}
            return conditions.get("Ready") == "True" and not node["spec"].get("taints")
        wait_for(ready, "the node to be ready", deadline)

    # --- the API, from here

    def http(self, port, path, method="GET", body=None, headers=None, host=guard.ADDRESS, timeout=30.0):
        """One request into the cluster's network; (code, bytes). TLS on 6443, and the administrator's token: a
        client's certificate is verified again for each request, a seventh of what the API server did."""
        if port == 6443:
            if not self.context:
                with open(self.files.path("tests.token"), encoding="ascii") as file:
                    self.who = {"Authorization": "Bearer " + file.read()}
                self.context = ssl.create_default_context(cafile=self.files.path("ca.crt"))
            headers = {**self.who, **(headers or {})}
        keep = (port, host) == (6443, guard.ADDRESS)
        connection = self.s_connection(timeout) if keep else None
        connection = connection or s_Connection(self.world["init"], port, self.context if port == 6443 else None, timeout)
        connection.host = host
        try:
            connection.request(method, path, body, headers or {})
            answer = connection.getresponse()
            text = answer.read()
        except BaseException:
            connection.close()
            raise
        if keep:
            self.per_thread.connection = connection
        else:
            connection.close()
        return answer.status, text

    def s_connection(self, timeout):
        """The connection of this thread's last request; None if there is none, or its server has gone since. Handshakes with certificates
        were a third of what the API server did, and more of what a test did."""
        connection, self.per_thread.connection = getattr(self.per_thread, "connection", None), None
        if not connection or not connection.sock:
            return None
        if select.select([connection.sock], [], [], 0)[0]:  # its end: nothing else comes unasked
            connection.close()
            return None
        connection.sock.settimeout(timeout)
        return connection

    def api(self, method, path, body=None, kind="application/json"):
        """One request to the API server as administrator; the object, text where it is none. ApiError if refused."""
        ask = lambda: self.http(6443, path, method, json.dumps(body) if body is not None else None,
                                {"Content-Type": kind, "Accept": "application/json"})
        code, text = ask()
        if code == 500 and b"etcdserver: request timed out" in text and method in ("GET", "PATCH"):
            code, text = ask()  # etcd stood still for seconds; what it may have done can be done twice
        try:
            value = json.loads(text)
        except ValueError:
            value = text.decode(errors="replace")
        if code >= 300:
            raise ApiError(code, value)
        return value

    def get(self, path):
        return self.api("GET", path)

    def logs(self, pod):
        """What its only container has said; "" while there is nothing to be read. To be asked again and again, which `kubectl logs` is
        too dear for."""
        code, text = self.http(6443, f"/api/v1/namespaces/default/pods/{pod}/log")
        return text.decode(errors="replace") if code == 200 else ""

    def find(self, path):
        """get(), or None where there is no such object."""
        try:
            return self.get(path)
        except ApiError as error:
            if error.code == 404:
                return None
            raise

    def patch(self, path, body, kind="application/merge-patch+json"):
        return self.api("PATCH", path, body, kind)

    def set_capacity(self, name, count):
        """Let the node offer an extended resource, nvidia.com/gpu say."""
        self.patch(f"/api/v1/nodes/{parts.NODE}/status", {"status": {"capacity": {name: str(count)}}})
        wait_for(lambda: self.allocatable().get(name) == str(count), f"{count} {name} on the node")

    def allocatable(self):
        return self.get(f"/api/v1/nodes/{parts.NODE}")["status"].get("allocatable", {})

    def metrics(self, path="/metrics"):
        """{(name, frozenset of (label, value)): number} of the API server."""
        found = {}
        for line in self.api("GET", path).splitlines():
            match = re.match(r"(\w+)(?:{(.*)})? (\S+)", line)
            if match:
                labels = frozenset(re.findall(r'(\w+)="((?:[^"\\]|\\.)*)"', match[2] or ""))
                found[match[1], labels] = float(match[3])
        return found

    def requests(self):
        """{(verb, resource, subresource, code): count} that the API server answered since its start, by everybody."""
        counts = {}
        for (name, labels), value in self.metrics().items():
            if name == "apiserver_request_total":
                label = dict(labels)
                key = tuple(label.get(part, "") for part in ("verb", "resource", "subresource", "code"))
                counts[key] = counts.get(key, 0) + int(value)
        return counts

    def audit(self, user=None, agent=None, writes=False, since=0.0):
        """Requests so far as the API server's audit log has them (audit=True), oldest first; agent: its beginning; since:
        received later than that time (Unix). A line is written after the answer: the newest may be missing still."""
        found = []
        with open(self.files.path("audit.log"), encoding="utf-8") as file:
            for line in file:
                if not line.endswith("\n"):
                    break
                event = json.loads(line)
                if (received(event) >= since
                        and (user is None or event["user"].get("username") == user)
                        and (agent is None or event.get("userAgent", "").startswith(agent))
                        and (not writes or event["verb"] not in ("get", "list", "watch"))):
                    found.append(event)
        return found

    def trace(self):
        """What the fake kubelet saw and did: [{"t": seconds since 1970, "event": seen | waiting | running | restarted |
        ended | gone, "pod": "namespace/name"}], in order; a fifth of a second late at most."""
        with open(self.files.path("fake-kubelet.trace"), encoding="utf-8") as file:
            return [json.loads(line) for line in file if line.endswith("\n")]

    def fake_metrics(self):
        """A FakeMetrics (see there) on a socket in the cluster's network; use it in `with`."""
        with s_in_network(self.world["init"]):
            listener = socket.create_server((guard.ADDRESS, 0))
        return fake_metrics.FakeMetrics(self, listener)

    @contextlib.contextmanager
    def slowed(self, cores=0.1):
        """Meanwhile each pod that there is, and has no limit of its own, gets so much of a core: one that trains while a test waits for
        something else leaves it the rest."""
        paths = [path for parent in guard.cgroup_parents() for name in ("cpu.max", "cpu.cfs_quota_us")  # v2, v1
                 for path in glob.glob(f"{parent}/{self.world['mark']}/kubepods/*/pod*/{name}")]
        slow = {path: quota for path in paths if (quota := s_quota(path)) in ("max", "-1")}
        for path in slow:
            s_quota(path, str(int(cores * 100000)))  # microseconds in each tenth of a second
        try:
            yield
        finally:
            for path, quota in slow.items():
                s_quota(path, quota)

    # --- programs in the cluster's network

    def s_env(self, env):
        folder = os.path.dirname(self.programs["kubectl"])
        ours = {"KUBECONFIG": self.kubeconfig, "GOGC": GOGC, "KUBECACHEDIR": self.files.path("kubectl"), guard.MARK: self.world["mark"],
                "PATH": f"{folder}:{os.environ.get('PATH', '')}:{parts.PATH}"}
        return {**os.environ, **ours, **(env or {})}

    def inside(self, argv, all_of_it=False):
        """The command line that runs argv in the network (or also mounts and process ids) of the cluster; same pid."""
        spaces = [f"--net=/proc/{self.world['init']}/ns/net"]
        if all_of_it:
            spaces = ["-t", str(self.world["init"]), "--net", "--mount", "--pid"]
        return ["nsenter", *spaces, "--", *map(str, argv)]

    def exec_in(self, argv, env=None, **options):
        """Start a program in the cluster's network; Popen, its pid the program's own. KUBECONFIG is set, the
        administrator's unless env says otherwise. It is killed with the cluster if not before."""
        return subprocess.Popen(self.inside(argv), env=self.s_env(env), **options)

    def run_in(self, argv, input=None, check=True, deadline=DEADLINE, env=None):
        """The same to its end; CompletedProcess with text."""
        done = subprocess.run(self.inside(argv), env=self.s_env(env), input=input, capture_output=True, text=True,
                              timeout=deadline, check=False, **({} if input is not None else {"stdin": subprocess.DEVNULL}))
        if check and done.returncode != 0:
            raise Failed(f"{' '.join(map(str, argv))}: exit {done.returncode}: {done.stderr[-3000:]}{done.stdout[-1000:]}")
        return done

    def kubectl(self, *args, input=None, check=True, deadline=DEADLINE, env=None):
        return self.run_in([self.programs["kubectl"], *args], input, check, deadline, env)

    def let_go(self, pod, path, *options):
        """Make the file that a container waits for. It may be over, and touch killed with it, before kubectl has heard of touch's end: 137."""
        done = self.kubectl(*options, "exec", pod, "--", "touch", path, check=False)
        check(done.returncode in (0, 137), f"touch {path} in {pod}: exit {done.returncode}: {done.stderr}")

    def await_kind(self, name):
        """Until kubectl knows a kind: what an API server serves stands in what it says of itself a moment later."""
        wait_for(lambda: self.kubectl("get", name, check=False).returncode == 0, f"kubectl to know {name}")

    def apply(self, *objects):
        """Create or change objects (dicts) by kubectl apply."""
        return self.kubectl("apply", "-f", "-", input=json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}))

    def account_kubeconfig(self, account, namespace="default", duration="1h"):
        """A kubeconfig with a token of a ServiceAccount (made when it is not there); its path."""
        path = f"/api/v1/namespaces/{namespace}/serviceaccounts"
        if not self.find(f"{path}/{account}"):
            self.api("POST", path, {"metadata": {"name": account}})
        token = self.kubectl("create", "token", account, "-n", namespace, f"--duration={duration}").stdout.strip()
        return self.files.kubeconfig(f"account-{namespace}-{account}", f"token: {token}", namespace)

    def user_kubeconfig(self, user, *groups):
        """A kubeconfig with a client certificate for a user of that name and groups; its path."""
        subject = "".join(f"/O={group}" for group in groups) + f"/CN={user}"
        self.files.done(self.files.certificate("user-" + user, subject, "extendedKeyUsage=clientAuth"))
        login = ", ".join(f"client-{what}-data: {parts.s_base64(self.files.path(f'user-{user}.{end}'))}"
                          for what, end in (("certificate", "crt"), ("key", "key")))
        return self.files.kubeconfig("user-" + user, login)

    # --- images

    def s_base_images(self):
        path = self.files.path("base.tar")
        images.base_images(path, self.programs["pause"])
        return path

    def ctr(self, *args, check=True):
        return self.run_in([parts.system_program("ctr"), "--address", self.files.path("containerd.sock"), "-n", "k8s.io",
                            *args], check=check)

    def load_image(self, archive, name=None):
        """Give the node the images of a docker or OCI archive. name: what the only image of an OCI archive shall be
        called, docker.io/local/NAME:TAG; its own name there is often a bare tag. Returns once containerd has them."""
        wait_for(lambda: self.ctr("version", check=False).returncode == 0, "containerd to answer", pause=0.05)
        path = self.files.path("named.tar")
        named = images.name_oci(archive, path, name)
        self.ctr("image", "import", path if named else archive)
        if named:
            os.unlink(path)

    def make_image(self, name, files, entrypoint=None, **config):
        """Make an image of files (see images.py) and give it to the node. Names: docker.io/local/NAME:TAG."""
        path = self.files.path("made.tar")
        images.make_image(path, {name: {"files": files, "entrypoint": entrypoint, **config}})
        self.load_image(path)
        os.unlink(path)


# --- tests

def check(condition, text):
    if not condition:
        raise Failed(text)


def main(*tests, **options):
    """Run these tests, or those named on the command line; the exit code tells: 77 where one was skipped and none failed. Those with a
    parameter get the same cluster, made with the options; those without bring their own."""
    wanted = sys.argv[1:] or [test.__name__ for test in tests]
    tests = [test for test in tests if test.__name__ in wanted]
    count = {"passed": 0, "failed": 0, "skipped": 0}

    def run(test, k8s=None):
        begun = time.monotonic()
        try:
            test(*([k8s] if k8s else []))
            count["passed"] += 1
            print(f"ok      {test.__name__} ({time.monotonic() - begun:.1f} s)", flush=True)
        except Skipped as reason:
            count["skipped"] += 1
            print(f"SKIP    {test.__name__}: {reason}", flush=True)
        except Exception as error:  # every failure counts, and the others still run
            count["failed"] += 1
            text = str(error) if isinstance(error, Failed) else traceback.format_exc()
            print(f"FAILED  {test.__name__}: {text}\n{k8s.log_ends() if k8s else ''}", flush=True)

    sharing = [test for test in tests if test.__code__.co_argcount]
    if sharing:
        begun = time.monotonic()
        with Cluster(**options) as k8s:
            print(f"cluster after {time.monotonic() - begun:.1f} s", flush=True)
            for test in sharing:
                run(test, k8s)
    for test in tests:
        if test not in sharing:
            run(test)
    print(", ".join(f"{number} {how}" for how, number in count.items()), flush=True)
    sys.exit(1 if count["failed"] else 77 if count["skipped"] else 0)


# --- for people

def s_up(args):
    reason = missing(not args.api_only)
    if reason:
        sys.exit(f"cluster.py: {reason}")
    if os.path.isdir(args.directory) and os.listdir(args.directory):
        sys.exit(f"cluster.py: {args.directory} is not empty")
    begun = time.monotonic()
    k8s = Cluster(args.directory, full=not args.api_only, controllers=args.controllers or None, owned=False,
                  audit=args.audit, fake_kubelet=args.api_only and args.fake_kubelet and parts.NODE).start()
    print(f"up after {time.monotonic() - begun:.1f} s; its network: nsenter --net=/proc/{k8s.world['init']}/ns/net\n"
          f"export KUBECONFIG={k8s.kubeconfig} (answers only in there), or: {sys.argv[0]} shell {args.directory}")


def s_status(args):
    k8s = Cluster.attach(args.directory)
    for name, part in k8s.parts().items():
        print(f"{name:24} {'running' if part['code'] is None else 'ended with ' + str(part['code'])}")


def s_shell(args):
    k8s = Cluster.attach(args.directory)
    argv = args.rest or [os.environ.get("SHELL", "/bin/sh")]
    env = k8s.s_env({"PS1": "k8s$ "})
    del env[guard.MARK]  # a person's shell outlives the cluster
    os.execvpe("nsenter", k8s.inside(argv), env)


def s_kubectl(args):
    k8s = Cluster.attach(args.directory)
    rest = args.rest[1:] if args.rest[:1] == ["--"] else args.rest
    os.execvpe("nsenter", k8s.inside([k8s.programs["kubectl"], *rest]), k8s.s_env(None))


def s_down(args):
    try:
        Cluster.attach(args.directory).stop()
    except Failed:
        if not os.path.exists(os.path.join(args.directory, "world.json")):
            raise
        shutil.rmtree(args.directory)  # it ended with its guard: the folder is what is left


def s_main():
    parser = argparse.ArgumentParser(description="A Kubernetes of its own on this machine, for the tests.")
    verbs = parser.add_subparsers(required=True, metavar="up|status|kubectl|shell|down")
    for name, function in (("up", s_up), ("status", s_status), ("kubectl", s_kubectl), ("shell", s_shell),
                           ("down", s_down)):
        verb = verbs.add_parser(name)
        verb.set_defaults(function=function)
        if name == "up":
            verb.add_argument("--api-only", action="store_true", help="etcd and the API server alone")
            verb.add_argument("--controllers", action="store_true", help="with the controller manager, also when API only")
            verb.add_argument("--audit", action="store_true", help="keep the requests in DIR/audit.log")
            verb.add_argument("--fake-kubelet", action="store_true", help="pods run without a node, as node-1 (API only)")
        verb.add_argument("directory")
        if name in ("kubectl", "shell"):
            verb.add_argument("rest", nargs=argparse.REMAINDER)
    args = parser.parse_args()
    try:
        args.function(args)
    except Failed as error:
        sys.exit(f"cluster.py: {error}")


if __name__ == "__main__":
    s_main()
