"""podrig - pods without a cluster: each a process in namespaces of its own, with what a container of a DIJob gets and
nothing more: an address on a bridge, its host name, PID 1, a read-only root, emptyDirs, the Secret's file, the
environment, a user that is not root and has no capabilities. A hosts file is the name service.

The whole "cluster" lives in a network namespace of its own; when its processes are gone nothing is left of it.
"""

import itertools
import os
import random
import shutil
import signal
import subprocess
import sys

from rig import DEADLINE, Failed, SOURCE, TUTTI, check, equal, wait_for

NAMESPACE = "default"
PORTS = {"coordinator": 22273, "collector": 22270, "learner": 22271, "aggregator": 22272}
USER = 65532
# Never given twice: the kernel takes a pod's end of the bridge away some time after the pod.
NUMBERS = itertools.count(2)
TOOLS = ("unshare", "nsenter", "ip", "setpriv", "chroot", "mount")

# As PID 1 of a container's namespaces: makes its root, becomes tutti.
BOOT = r"""
set -e
root=$DIR/root
mkdir -p "$root"
mount -t tmpfs -o mode=755 tmpfs "$root"
for d in usr lib lib64 bin sbin; do
    [ -e "/$d" ] || continue
    if [ -L "/$d" ]; then cp -P "/$d" "$root/$d"; else mkdir "$root/$d" && mount --bind "/$d" "$root/$d"; fi
done
mkdir -p "$root/etc/tutti/curve" "$root/proc" "$root/dev" "$root/tmp" "$root/var/lib/tutti" \
    "$root/opt/bin" "$root/opt/share/tutti/configs"
cp /etc/ld.so.cache "$root/etc/"
echo "hosts: files" >"$root/etc/nsswitch.conf"
touch "$root/etc/hosts" "$root/opt/bin/tutti" "$root/dev/null" "$root/dev/urandom"
mount --bind /dev/null "$root/dev/null"
mount --bind /dev/urandom "$root/dev/urandom"
mount --bind "$HOSTS" "$root/etc/hosts"
mount --bind "$SECRET" "$root/etc/tutti/curve"
mount --bind "$TUTTI" "$root/opt/bin/tutti"
mount --bind "$CONFIGS" "$root/opt/share/tutti/configs"
mount --bind "$DIR/tmp" "$root/tmp"
mount --bind "$DIR/run" "$root/var/lib/tutti"
mount -t proc proc "$root/proc"
mount -o remount,ro "$root"
cd /
exec env -i $ENVIRONMENT "$(command -v chroot)" "$root" "$(command -v setpriv)" --reuid "$USER" --regid "$USER" --groups "$USER" \
    --no-new-privs --bounding-set -all --inh-caps -all /opt/bin/tutti "$@"
"""


def enter():
    """Run the rest of this program in a network namespace of its own, or end as skipped."""
    if os.environ.get("TT_POD_NET"):
        return
    if os.geteuid() != 0 or any(shutil.which(tool) is None for tool in TOOLS):
        print(f"skipped: needs root and {', '.join(TOOLS)}")
        sys.exit(77)
    if subprocess.run(["unshare", "-n", "-m", "-p", "-u", "--fork", "true"], check=False).returncode != 0:
        print("skipped: no namespaces here")
        sys.exit(77)
    os.environ["TT_POD_NET"] = "1"
    os.execvp("unshare", ["unshare", "-n", "-m", sys.executable, *sys.argv])


def _run(*command):
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    check(done.returncode == 0, f"{' '.join(command)}: {done.stderr}")


class Pod:
    """A sandbox with the network, and one container in it. kill() and restart() are a crash and what the kubelet does
    about it: the same pod, address and volumes; a new process."""

    def __init__(self, cluster, role, name, args, env):
        self.cluster, self.role, self.name, self.args, self.env = cluster, role, name, args, env
        self.number = next(NUMBERS)
        self.address = f"10.77.{self.number // 256}.{self.number % 256}"
        self.dir = os.path.join(cluster.world.path, f"{name}.{self.number}")
        for folder in ("tmp", "run"):
            os.makedirs(os.path.join(self.dir, folder))
            os.chmod(os.path.join(self.dir, folder), 0o777)
        self.starts = 0
        self.process = None
        self.sandbox = subprocess.Popen(["unshare", "-n", "-u", "-i", "sh", "-c", f"hostname {name} && echo up && read x"],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        cluster.world.started.append(self.sandbox)
        equal(self.sandbox.stdout.readline(), "up\n", "a sandbox's first words")
        self._connect()
        cluster.world.started.append(self)
        self.restart()

    def _environment(self):
        url = f"{self.cluster.job}-coordinator.{NAMESPACE}:{PORTS['coordinator']}"
        env = {"KUBERNETES_POD_NAMESPACE": NAMESPACE, "KUBERNETES_POD_NAME": self.name,
               "KUBERNETES_SERVER_URL": "http://di-server.di-system:8080", "KUBERNETES_COORDINATOR_URL": url,
               f"{self.role.upper()}_PORT": str(PORTS[self.role]), "TT_E2E": self.cluster.world.mark, **self.env}
        env.update({key: value for key, value in os.environ.items() if "SAN_OPTIONS" in key or key == "TT_LOG"})
        return env

    def restart(self):
        """Start the container (again): the same pod, address and volumes; a new process."""
        self.starts += 1
        self.out_path = os.path.join(self.dir, f"out.{self.starts}")
        self.err_path = os.path.join(self.dir, f"{self.name}.{self.starts}.log")
        env = {"PATH": os.environ["PATH"], "DIR": self.dir, "POD": self.name, "HOSTS": self.cluster.hosts,
               "SECRET": self.cluster.secret, "TUTTI": TUTTI, "CONFIGS": os.path.join(SOURCE, "configs"),
               "USER": str(USER), "TT_E2E": self.cluster.world.mark,
               "ENVIRONMENT": " ".join(f"{key}={value}" for key, value in self._environment().items())}
        with open(self.out_path, "w", encoding="utf-8") as out, open(self.err_path, "w", encoding="utf-8") as err:
            self.process = subprocess.Popen(
                ["nsenter", "-t", str(self.sandbox.pid), "-n", "-u", "-i", "unshare", "-m", "-p", "--fork", "sh", "-c",
                 BOOT, "boot", self.role, *self.args], env=env, stdin=subprocess.DEVNULL, stdout=out, stderr=err, text=True)
        self.pid = wait_for(self._child, f"the first process of {self.name}")
        return self

    def _child(self):
        with open(f"/proc/{self.process.pid}/task/{self.process.pid}/children", encoding="utf-8") as file:
            children = file.read().split()
        return int(children[0]) if children else None

    def _connect(self):
        host, pid = f"v{self.number}", str(self.sandbox.pid)
        _run("ip", "link", "add", host, "type", "veth", "peer", "name", "eth0", "netns", pid)
        _run("ip", "link", "set", host, "master", "br0", "up")
        inside = ["nsenter", "-t", pid, "-n", "ip"]
        _run(*inside, "link", "set", "lo", "up")
        _run(*inside, "address", "add", f"{self.address}/16", "dev", "eth0")
        _run(*inside, "link", "set", "eth0", "up")
        _run(*inside, "route", "add", "default", "via", "10.77.0.1")

    def serve(self):
        """Its headless service: from now on the pod has a name."""
        self.cluster.names[f"{self.name}.{NAMESPACE}"] = self.address
        self.cluster.write_names()
        return self

    def poll(self):
        return self.process.poll()

    def send_signal(self, number):
        """To PID 1 of the pod, as the kubelet does."""
        try:
            os.kill(self.pid, number)
        except ProcessLookupError:
            pass  # it has ended by itself

    def kill(self):
        """kill -9 of the container."""
        self.send_signal(signal.SIGKILL)
        self.process.wait()
        return self

    def wait(self, deadline=DEADLINE):
        try:
            return self.process.wait(timeout=deadline)
        except subprocess.TimeoutExpired as late:
            raise Failed(f"{self.name} did not end within {deadline} s") from late

    def stop(self, deadline=DEADLINE):
        """SIGTERM and the grace period; its exit code. The service goes with the pod."""
        self.send_signal(signal.SIGTERM)
        code = self.wait(deadline)
        self.forget()
        return code

    def lose(self):
        """The pod's node is gone: container, network and volumes."""
        self.send_signal(signal.SIGKILL)
        self.process.wait()
        self.sandbox.kill()
        self.sandbox.wait()
        self.forget()
        return self

    def forget(self):
        self.cluster.names.pop(f"{self.name}.{NAMESPACE}", None)
        self.cluster.write_names()

    def log(self):
        """Whole lines: the last one may be on its way."""
        with open(self.err_path, encoding="utf-8", errors="replace") as file:
            text = file.read()
        return text[:text.rfind("\n") + 1]

    def out(self):
        with open(self.out_path, encoding="utf-8") as file:
            return file.read()


class Cluster:
    def __init__(self, world, job="cartpole"):
        self.world, self.job = world, job
        self.names, self.pods = {}, []
        os.chmod(world.path, 0o755)
        self.hosts = os.path.join(world.path, "hosts")
        self.write_names()
        self.secret = os.path.join(world.path, "secret")
        os.makedirs(self.secret)
        if subprocess.run(["ip", "link", "show", "br0"], capture_output=True, check=False).returncode != 0:
            _run("ip", "link", "set", "lo", "up")
            _run("ip", "link", "add", "br0", "type", "bridge")
            _run("ip", "address", "add", "10.77.0.1/16", "dev", "br0")
            _run("ip", "link", "set", "br0", "up")
        self._make_key()

    def _make_key(self):
        """What the operator puts into the Secret; mounted, it belongs to root and the pod's group."""
        key = os.path.join(self.secret, "curve.key")
        done = self.world.tutti("key")
        check(done.returncode == 0, f"tutti key: {done.stderr}")
        with open(key, "w", encoding="utf-8") as file:
            file.write(done.stdout)
        os.chown(key, 0, USER)
        os.chmod(key, 0o440)

    def write_names(self):
        """In place, because the file is mounted into the pods, and never empty in between: a pod may be looking."""
        lines = ["127.0.0.1 localhost\n", *(f"{address} {name}\n" for name, address in self.names.items())]
        text = "".join(lines).encode()
        file = os.open(self.hosts, os.O_WRONLY | os.O_CREAT, 0o644)
        os.pwrite(file, text, 0)
        os.ftruncate(file, len(text))
        os.close(file)

    def pod(self, role, *args, env=None):
        """A pod and, a moment later, its service."""
        suffix = "".join(random.choices("bcdfghjklmnpqrstvwxz2456789", k=5))
        name = f"{self.job}-coordinator" if role == "coordinator" else f"{self.job}-{role}-{suffix}"
        pod = Pod(self, role, name, args, env or {})
        self.pods.append(pod)
        return pod.serve()
