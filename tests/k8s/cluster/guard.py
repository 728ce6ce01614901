#!/usr/bin/env python3
"""guard - keeps one cluster's world and ends it: namespaces of its own, a process 1 in them, and the cleaning up.

    guard.py DIR OWNER REPORT     (file descriptors: a pipe whose end means "the owner is gone", -1 for none; where to
                                   write one line, "ok" or what went wrong)

Three processes. The guard stays in the host's namespaces and waits for the owner's end, a signal, or the end of the
world. A keeper below it unshares network, mounts and process ids and starts process 1, which starts and reaps all
programs of the cluster (`supervise`). Each dies with the one above it (PR_SET_PDEATHSIG), and with process 1 the
kernel kills all that was started in its world, shims and containers too, and drops its mounts and network. What is
left for the guard to remove: processes that only entered the network (they carry a mark in their environment), the
cgroups and the folder. If even the guard is killed, the next one sweeps its cgroups.
"""

import ctypes
import json
import os
import re
import select
import shutil
import signal
import socket
import struct
import subprocess
import sys
import time
import traceback

ADDRESS = "10.89.0.1"  # the node's: not a loopback address, though on the loopback device
MARK = "TT_K8S"
CGROUPS = "/sys/fs/cgroup"
CLONE_NEWNS, CLONE_NEWNET, CLONE_NEWPID = 0x00020000, 0x40000000, 0x20000000
MS_NOSUID, MS_NODEV, MS_NOEXEC, MS_BIND, MS_REC, MS_PRIVATE, MS_SHARED = 2, 4, 8, 4096, 16384, 1 << 18, 1 << 20
PR_SET_PDEATHSIG = 1
# What a kubelet sets for the whole machine at its start: in its world these are plain files that hold it already.
TUNABLES = {"vm/overcommit_memory": 1, "vm/panic_on_oom": 0, "kernel/panic": 10, "kernel/panic_on_oops": 1,
            "kernel/keys/root_maxkeys": 1000000, "kernel/keys/root_maxbytes": 25000000}
# Places that programs of the cluster write to whatever their settings say: what they write stays in their world.
OVERLAID = ("/var/lib", "/var/log")

s_libc = ctypes.CDLL(None, use_errno=True)


def s_call(name, *args):
    if getattr(s_libc, name)(*args) != 0:
        error = ctypes.get_errno()
        raise OSError(error, f"{name}{args}: {os.strerror(error)}")


def s_mount(source, target, kind=None, flags=0, data=None):
    s_call("mount", source.encode(), target.encode(), kind.encode() if kind else None, ctypes.c_ulong(flags),
           data.encode() if data else None)


def s_die_with_parent(parent):
    s_call("prctl", PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:  # it died before we asked
        os._exit(1)


def start_time(pid):
    """In clock ticks after boot; tells a process from a later one with its number. None when there is no such one."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            fields = file.read().rsplit(")", 1)[1].split()
    except OSError:
        return None
    return None if fields[0] in "ZX" else int(fields[19])


def cgroup_parents():
    """Every folder in which a group of ours has to be made: one a controller (v1), or the only one (v2)."""
    if os.path.exists(f"{CGROUPS}/cgroup.controllers"):
        return [CGROUPS]
    return [f"{CGROUPS}/{name}" for name in sorted(os.listdir(CGROUPS))
            if os.path.exists(f"{CGROUPS}/{name}/cgroup.procs")]


def denied():
    """What a guard needs of the kernel and does not get here, in words; None when nothing."""
    with open("/proc/self/status", encoding="ascii") as file:
        permitted = int(re.search(r"^CapEff:\s*(\w+)", file.read(), re.MULTILINE)[1], 16)
    for name, bit in (("CAP_NET_ADMIN", 12), ("CAP_SYS_ADMIN", 21)):
        if not permitted >> bit & 1:
            return name
    parents = cgroup_parents() if os.path.isdir(CGROUPS) else []
    if not parents or any(os.statvfs(path).f_flag & os.ST_RDONLY for path in parents):
        return f"making cgroups below {CGROUPS}"
    return None


def s_make_cgroups(mark):
    for parent in cgroup_parents():
        path = os.path.join(parent, mark)
        os.mkdir(path)
        for name in ("cpuset.mems", "cpuset.cpus"):  # empty in a new group of v1, and then nothing may run in it
            if os.path.exists(f"{parent}/{name}") and os.path.exists(f"{parent}/notify_on_release"):
                with open(f"{parent}/{name}", encoding="ascii") as source:
                    value = source.read()
                with open(f"{path}/{name}", "w", encoding="ascii") as target:
                    target.write(value)


def s_remove_cgroups(mark):
    end = time.monotonic() + 60
    for parent in cgroup_parents():
        path = os.path.join(parent, mark)
        while os.path.isdir(path):
            for folder, _, _ in os.walk(path, topdown=False):
                try:
                    os.rmdir(folder)
                except OSError:  # the kernel is not done with what ended in it
                    pass
            if time.monotonic() > end:
                print(f"guard: {path} could not be removed", flush=True)
                return
            time.sleep(0.01)


def s_sweep():
    """Groups of guards that were killed themselves."""
    for parent in cgroup_parents():
        for name in os.listdir(parent):
            if name.startswith("tutti-k8s-"):
                pid, ticks = (int(part) for part in name.rsplit("-", 2)[1:])
                if start_time(pid) != ticks:
                    s_remove_cgroups(name)


def marked(mark):
    """Processes outside that carry the mark."""
    wanted = f"{MARK}={mark}".encode()
    found = []
    for entry in os.listdir("/proc"):
        if entry.isdigit() and int(entry) != os.getpid():
            try:
                with open(f"/proc/{entry}/environ", "rb") as file:
                    if wanted in file.read().split(b"\0") and start_time(entry) is not None:
                        found.append(int(entry))
            except OSError:
                continue
    return found


def s_kill(pid):
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:  # it has ended, and was reaped, since we looked
        pass


def s_kill_marked(mark):
    end = time.monotonic() + 60
    while (pids := marked(mark)) and time.monotonic() < end:
        for pid in pids:
            s_kill(pid)
        time.sleep(0.01)


# --- process 1 of the world

def s_private_mounts(directory):
    s_mount("none", "/", flags=MS_REC | MS_PRIVATE)
    s_mount("none", "/", flags=MS_REC | MS_SHARED)  # among ourselves, as a kubelet wants it
    s_mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC)
    s_mount("tmpfs", "/run", "tmpfs", MS_NOSUID | MS_NODEV, "mode=755")
    for place in OVERLAID:
        layers = "/run/tutti" + place
        os.makedirs(layers + "/upper")
        os.makedirs(layers + "/work")
        s_mount("overlay", place, "overlay", 0, f"lowerdir={place},upperdir={layers}/upper,workdir={layers}/work")
    for name, value in TUNABLES.items():
        if os.path.exists(f"/proc/sys/{name}"):
            path = os.path.join(directory, "sysctl." + name.replace("/", "."))
            with open(path, "w", encoding="ascii") as file:
                file.write(f"{value}\n")
            s_mount(path, f"/proc/sys/{name}", flags=MS_BIND)


def s_network():
    for command in (f"addr add {ADDRESS}/32 dev lo", "link set lo up"):
        subprocess.run(["ip", *command.split()], check=True, timeout=60)
    with open("/proc/sys/net/ipv4/ip_forward", "w", encoding="ascii") as file:
        file.write("1\n")


class Supervisor:
    """Starts programs, reaps everything, and answers on DIR/control: one JSON object in, one out, a connection each."""

    def __init__(self, directory):
        self.directory = directory
        self.programs = {}  # name -> {"pid", "code" (None while it runs)}
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(os.path.join(directory, "control"))
        self.listener.listen(16)
        self.wake, writer = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda number, frame: None)

    def reap(self):
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            for program in self.programs.values():
                if program["pid"] == pid:
                    program["code"] = os.waitstatus_to_exitcode(status)

    def start(self, name, argv, env):
        program = self.programs.get(name)
        if program and program["code"] is None:
            raise ValueError(f"{name} runs already")
        log = os.path.join(self.directory, "logs", name + ".log")
        pid = os.posix_spawn(argv[0], argv, env, setsid=True, setsigdef=range(1, signal.SIGRTMIN - 2), file_actions=[
            (os.POSIX_SPAWN_OPEN, 0, "/dev/null", os.O_RDONLY, 0),
            (os.POSIX_SPAWN_OPEN, 1, log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644),
            (os.POSIX_SPAWN_DUP2, 1, 2)])
        self.programs[name] = {"pid": pid, "code": None}
        return {}

    def kill(self, name, number):
        program = self.programs[name]
        if program["code"] is None:
            os.kill(program["pid"], number)
        return {}

    def status(self):
        return self.programs

    def answer(self, connection):
        try:
            connection.settimeout(60)
            request = json.loads(connection.makefile("r", encoding="utf-8").readline())
            verb = request.pop("do")
            if verb == "down":
                os._exit(0)
            reply = {"start": self.start, "kill": self.kill, "status": self.status}[verb](**request)
        except Exception as error:  # whatever a client does, the world goes on
            reply = {"error": f"{type(error).__name__}: {error}"}
        try:
            connection.sendall(json.dumps(reply).encode() + b"\n")
        except OSError:
            pass

    def run(self):
        while True:
            ready, _, _ = select.select([self.listener, self.wake], [], [])
            if self.wake in ready:
                os.read(self.wake, 4096)
            self.reap()
            if self.listener in ready:
                connection, _ = self.listener.accept()
                with connection:
                    self.answer(connection)


def s_first_process(directory, parent, report):
    try:
        s_die_with_parent(0)  # the keeper is outside of this world of process ids
        s_private_mounts(directory)
        s_network()
        supervisor = Supervisor(directory)
        os.write(report, b"ok\n")
        os.close(report)
        supervisor.run()
    except BaseException as error:
        traceback.print_exc()
        os.write(report, f"{error}\n".encode())
    os._exit(1)


def s_keeper(directory, parent, report, born):
    """Unshares, forks process 1, tells its number to the guard, and lasts as long as it."""
    try:
        s_die_with_parent(parent)
        s_call("unshare", CLONE_NEWNS | CLONE_NEWNET | CLONE_NEWPID)
        me = os.getpid()
        first = os.fork()
        if first == 0:
            os.close(born)
            s_first_process(directory, me, report)
        os.write(born, struct.pack("i", first))
        os.close(born)
        os.close(report)
        os.waitpid(first, 0)
    except BaseException as error:
        traceback.print_exc()
        os.write(report, f"{error}\n".encode())
    os._exit(1)


# --- the guard

def s_await_end(owner, keeper):
    """Until the owner, the world or our patience with signals ends."""
    reader, writer = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
    signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGCHLD):
        signal.signal(number, lambda number, frame: None)
    watched = [reader] + ([owner] if owner >= 0 else [])
    while os.waitpid(keeper, os.WNOHANG)[0] == 0:
        ready, _, _ = select.select(watched, [], [])
        if owner in ready or (reader in ready and set(os.read(reader, 64)) - {signal.SIGCHLD}):
            os.kill(keeper, signal.SIGKILL)
            os.waitpid(keeper, 0)
            return


def s_clean(directory, mark, first):
    while first and start_time(first[0]) == first[1]:  # the kernel ends all the others before it
        s_kill(first[0])
        time.sleep(0.005)
    s_kill_marked(mark)
    s_remove_cgroups(mark)
    shutil.rmtree(directory, ignore_errors=True)
    if os.path.exists(directory):
        shutil.rmtree(directory)


def main():
    directory, owner, report = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    me = os.getpid()
    mark = f"tutti-k8s-{me}-{start_time(me)}"
    for number in (owner, report):
        if number >= 0:
            os.set_inheritable(number, False)
    first = None
    try:
        s_sweep()
        s_make_cgroups(mark)
        receive, born = os.pipe2(os.O_CLOEXEC)
        keeper = os.fork()
        if keeper == 0:
            if owner >= 0:
                os.close(owner)
            os.close(receive)
            s_keeper(directory, me, report, born)
        os.close(born)
        told = os.read(receive, 4)
        if len(told) == 4:
            pid = struct.unpack("i", told)[0]
            first = (pid, start_time(pid))
            path = os.path.join(directory, "world.json")
            with open(path + ".new", "w", encoding="utf-8") as file:
                json.dump({"mark": mark, "guard": me, "init": pid, "init_start": first[1]}, file)
            os.rename(path + ".new", path)
        os.close(report)
        s_await_end(owner, keeper)
    except BaseException:
        traceback.print_exc()
    finally:
        s_clean(directory, mark, first)


if __name__ == "__main__":
    main()
