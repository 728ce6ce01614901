"""parts - the files and command lines of the programs that make up a cluster."""

import json
import os
import secrets
import shutil
import subprocess

from guard import ADDRESS

NODE = "node-1"
SERVER = f"https://{ADDRESS}:6443"
SERVICES = "10.96.0.0/16"
PODS = "10.89.1.0/16"
ETCD = "http://127.0.0.1:2379"
CNI_PLUGINS = "/usr/lib/cni"
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

KUBECONFIG = """apiVersion: v1
kind: Config
clusters:
- name: test
  cluster:
    server: {server}
    certificate-authority-data: {ca}
users:
- name: {user}
  user: {{{login}}}
contexts:
- name: {user}
  context: {{cluster: test, user: {user}, namespace: {namespace}}}
current-context: {user}
"""

CONTAINERD = """version = 2
root = "{d}/containerd/root"
state = "/run/containerd/state"
disabled_plugins = ["io.containerd.snapshotter.v1.btrfs", "io.containerd.snapshotter.v1.aufs",
  "io.containerd.snapshotter.v1.zfs", "io.containerd.snapshotter.v1.devmapper"]
[grpc]
  address = "{d}/containerd.sock"
[plugins."io.containerd.internal.v1.opt"]
  path = "{d}/containerd/opt"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "docker.io/local/pause:1"
  restrict_oom_score_adj = true
  netns_mounts_under_state_dir = true
  tolerate_missing_hugetlb_controller = true
  disable_apparmor = true
  stream_server_address = "127.0.0.1"
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "{cni}"
    conf_dir = "{d}/cni"
  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = "{snapshotter}"
"""
# What every container is made of; else containerd's own.
RUNTIME = """    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
      base_runtime_spec = "{spec}"
"""

# Pods hang on routed pairs, not on a bridge: all their traffic passes the node's own tables, so service addresses work
# between pods, and who is called sees the caller's own address.
CNI = {"cniVersion": "0.4.0", "name": "pods", "plugins": [{
    "type": "ptp", "ipam": {"type": "host-local", "ranges": [[{"subnet": "10.89.0.0/16", "rangeStart": "10.89.1.0",
                                                               "gateway": ADDRESS}]],
                            "routes": [{"dst": "0.0.0.0/0"}]}}, {"type": "portmap", "capabilities": {"portMappings": True}}]}

KUBELET = {
    "apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration", "address": ADDRESS,
    "authentication": {"anonymous": {"enabled": False}, "webhook": {"enabled": True}}, "authorization": {"mode": "Webhook"},
    "cgroupDriver": "cgroupfs", "failCgroupV1": False, "enforceNodeAllocatable": [], "failSwapOn": False,
    "clusterDNS": [ADDRESS], "clusterDomain": "cluster.local", "oomScoreAdj": 0, "localStorageCapacityIsolation": False,
    "evictionHard": {"memory.available": "0%", "nodefs.available": "0%", "nodefs.inodesFree": "0%",
                     "imagefs.available": "0%"},
    "imageGCHighThresholdPercent": 100, "maxPods": 250, "nodeStatusUpdateFrequency": "2s", "nodeLeaseDurationSeconds": 8,
    "registryPullQPS": 0, "eventRecordQPS": 0, "serializeImagePulls": False, "syncFrequency": "20s"}

PROXY = {
    "apiVersion": "kubeproxy.config.k8s.io/v1alpha1", "kind": "KubeProxyConfiguration", "mode": "iptables",
    "clusterCIDR": "10.89.0.0/16", "hostnameOverride": NODE, "metricsBindAddress": "127.0.0.1:10249",
    "healthzBindAddress": "127.0.0.1:10256", "iptables": {"minSyncPeriod": "100ms"},
    "conntrack": {"maxPerCore": 0, "min": 0, "tcpEstablishedTimeout": "0s", "tcpCloseWaitTimeout": "0s"}}

COREFILE = """.:53 {{
    errors
    ready 127.0.0.1:8181
    kubernetes cluster.local in-addr.arpa {{
        kubeconfig {d}/dns.kubeconfig
        pods verified
        ttl 1
    }}
}}
"""

AUDIT = {"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "omitStages": ["RequestReceived"],
         "rules": [{"level": "None", "nonResourceURLs": ["/*"]}, {"level": "Metadata"}]}

# name: (user, groups) of those who come with a token of the static list
USERS = {"controllers": ("system:kube-controller-manager", ""), "scheduler": ("system:kube-scheduler", ""),
         "proxy": ("system:kube-proxy", ""), "kubelet": (f"system:node:{NODE}", "system:nodes"),
         "dns": ("tutti:dns", "system:masters"), "tests": ("admin", "system:masters")}


def s_write(path, content):
    with open(path, "w", encoding="utf-8") as file:
        file.write(content if isinstance(content, str) else json.dumps(content))


def s_base64(path):
    import base64
    with open(path, "rb") as file:
        return base64.b64encode(file.read()).decode()


class Files:
    """All files below the folder of a cluster that its programs read."""

    def __init__(self, directory, mark):
        self.d = directory
        self.mark = mark

    def path(self, name):
        return os.path.join(self.d, name)

    def write(self, node, kubelet, proxy, folders):
        """node: whether there is one. kubelet, proxy: settings over ours. folders: {in containers: here}."""
        for name in ("cni", "containerd/root", "kubelet", "kubectl"):
            os.makedirs(self.path(name), exist_ok=True)
        self.certificates()
        tokens = {name: secrets.token_hex(16) for name in USERS}
        s_write(self.path("tokens.csv"), "".join(f'{tokens[name]},{user},{name},"{groups}"\n'
                                                 for name, (user, groups) in USERS.items()))
        for name, token in tokens.items():
            self.kubeconfig(name, f"token: {token}")
        s_write(self.path("tests.token"), tokens["tests"])
        self.kubeconfig("admin", f"client-certificate-data: {s_base64(self.path('admin.crt'))}, "
                        f"client-key-data: {s_base64(self.path('admin.key'))}")
        s_write(self.path("audit.policy"), AUDIT)
        if node:
            self.write_node(kubelet, proxy, folders)

    def write_node(self, kubelet, proxy, folders):
        runtime = RUNTIME.format(spec=self.path("container.json")) if folders else ""
        s_write(self.path("containerd.toml"), CONTAINERD.format(d=self.d, cni=CNI_PLUGINS, snapshotter=self.snapshotter()) + runtime)
        if folders:
            self.write_spec(folders)
        s_write(self.path("cni/10-pods.conflist"), CNI)
        s_write(self.path("resolv.conf"), "")
        settings = dict(KUBELET, cgroupRoot="/" + self.mark, containerRuntimeEndpoint=f"unix://{self.d}/containerd.sock",
                        tlsCertFile=self.path("kubelet.crt"), tlsPrivateKeyFile=self.path("kubelet.key"),
                        resolvConf=self.path("resolv.conf"), volumePluginDir=self.path("kubelet/plugins"), **kubelet)
        settings["authentication"] = dict(KUBELET["authentication"], x509={"clientCAFile": self.path("ca.crt")})
        s_write(self.path("kubelet.json"), settings)
        s_write(self.path("proxy.json"), dict(PROXY, clientConnection={"kubeconfig": self.path("proxy.kubeconfig")},
                                              **proxy))
        s_write(self.path("Corefile"), COREFILE.format(d=self.d))

    def write_spec(self, folders):
        spec = json.loads(subprocess.run([system_program("ctr"), "oci", "spec"], capture_output=True, check=True, timeout=60).stdout)
        spec["mounts"] += [{"destination": place, "type": "bind", "source": source, "options": ["rbind", "ro", "nosuid", "nodev"]}
                           for place, source in folders.items()]
        s_write(self.path("container.json"), spec)

    def snapshotter(self):
        """Overlay on overlay (a container as machine) is refused by the kernel: there the slow one."""
        kind = subprocess.run(["stat", "-f", "-c", "%T", self.d], capture_output=True, text=True, check=True, timeout=60)
        return "native" if "overlay" in kind.stdout else "overlayfs"

    def openssl(self, *args):
        return subprocess.Popen(["openssl", *args], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                stderr=subprocess.PIPE, text=True)

    def certificate(self, name, subject, *extensions, signed=True):
        args = ["req", "-x509", "-config", self.path("openssl.cnf"), "-newkey", "ec", "-pkeyopt",
                "ec_paramgen_curve:prime256v1", "-nodes", "-days", "30", "-subj", subject, "-keyout",
                self.path(name + ".key"), "-out", self.path(name + ".crt")]
        for extension in extensions:
            args += ["-addext", extension]
        if signed:
            args += ["-CA", self.path("ca.crt"), "-CAkey", self.path("ca.key")]
        return self.openssl(*args)

    def certificates(self):
        s_write(self.path("openssl.cnf"), "[req]\ndistinguished_name = dn\n[dn]\n")
        self.done(self.certificate("ca", "/CN=tutti-test-ca", "basicConstraints=critical,CA:TRUE", signed=False))
        client, server = "extendedKeyUsage=clientAuth", "extendedKeyUsage=serverAuth"
        names = ("subjectAltName=DNS:kubernetes,DNS:kubernetes.default,DNS:kubernetes.default.svc,"
                 f"DNS:kubernetes.default.svc.cluster.local,DNS:localhost,IP:{ADDRESS},IP:127.0.0.1,IP:10.96.0.1")
        self.done(self.certificate("admin", "/O=system:masters/CN=admin", client),
                  self.certificate("server", "/CN=kube-apiserver", server, names),
                  self.certificate("to-kubelet", "/O=system:masters/CN=kube-apiserver", client),
                  self.certificate("kubelet", f"/CN={NODE}", server, f"subjectAltName=DNS:{NODE},IP:{ADDRESS}"),
                  self.openssl("ecparam", "-genkey", "-noout", "-name", "prime256v1", "-out", self.path("accounts.key")))

    def done(self, *processes):
        for process in processes:
            _, text = process.communicate(timeout=60)
            if process.returncode != 0:
                raise RuntimeError(f"openssl: {text}")

    def kubeconfig(self, name, login, namespace="default"):
        path = self.path(name + ".kubeconfig")
        s_write(path, KUBECONFIG.format(server=SERVER, ca=s_base64(self.path("ca.crt")), user=name, login=login,
                                        namespace=namespace))
        os.chmod(path, 0o600)
        return path


def command(name, files, programs, controllers):
    """The command line of a program. programs: {name: path}. controllers: which the controller manager runs."""
    p = files.path
    lines = {
        "etcd": ["--name=test", f"--data-dir={p('etcd')}", f"--listen-client-urls={ETCD}", "--unsafe-no-fsync",
                 f"--advertise-client-urls={ETCD}", "--listen-peer-urls=http://127.0.0.1:2380", "--log-level=warn",
                 "--initial-advertise-peer-urls=http://127.0.0.1:2380", "--initial-cluster=test=http://127.0.0.1:2380",
                 "--quota-backend-bytes=4294967296"],
        "kube-apiserver": [
            f"--etcd-servers={ETCD}", "--secure-port=6443", f"--advertise-address={ADDRESS}", f"--cert-dir={p('apiserver')}",
            f"--tls-cert-file={p('server.crt')}", f"--tls-private-key-file={p('server.key')}",
            f"--client-ca-file={p('ca.crt')}", f"--token-auth-file={p('tokens.csv')}", "--authorization-mode=Node,RBAC",
            "--service-account-issuer=https://kubernetes.default.svc", f"--service-account-key-file={p('accounts.key')}",
            f"--service-account-signing-key-file={p('accounts.key')}", f"--service-cluster-ip-range={SERVICES}",
            f"--kubelet-client-certificate={p('to-kubelet.crt')}", f"--kubelet-client-key={p('to-kubelet.key')}",
            f"--kubelet-certificate-authority={p('ca.crt')}", "--kubelet-preferred-address-types=InternalIP",
            f"--requestheader-client-ca-file={p('ca.crt')}", "--requestheader-allowed-names=kube-apiserver",
            "--requestheader-username-headers=X-Remote-User", "--requestheader-group-headers=X-Remote-Group",
            "--requestheader-extra-headers-prefix=X-Remote-Extra-", f"--proxy-client-cert-file={p('to-kubelet.crt')}",
            f"--proxy-client-key-file={p('to-kubelet.key')}", "--allow-privileged=true", "--enable-aggregator-routing=true", "--shutdown-delay-duration=0s"],
        "kube-controller-manager": [
            f"--kubeconfig={p('controllers.kubeconfig')}", f"--service-account-private-key-file={p('accounts.key')}",
            f"--authentication-kubeconfig={p('controllers.kubeconfig')}",
            f"--authorization-kubeconfig={p('controllers.kubeconfig')}",
            f"--root-ca-file={p('ca.crt')}", "--use-service-account-credentials=true", "--leader-elect=false",
            f"--controllers={controllers}", "--bind-address=127.0.0.1", f"--cert-dir={p('controllers')}",
            "--node-monitor-period=1s", "--node-monitor-grace-period=10s"],
        "kube-scheduler": [f"--kubeconfig={p('scheduler.kubeconfig')}", "--leader-elect=false", "--bind-address=127.0.0.1",
                           f"--authentication-kubeconfig={p('scheduler.kubeconfig')}",
                           f"--authorization-kubeconfig={p('scheduler.kubeconfig')}", f"--cert-dir={p('scheduler')}"],
        "containerd": ["--config", p("containerd.toml")],
        "kubelet": [f"--config={p('kubelet.json')}", f"--kubeconfig={p('kubelet.kubeconfig')}", f"--node-ip={ADDRESS}",
                    f"--hostname-override={NODE}", f"--root-dir={p('kubelet')}", f"--cert-dir={p('kubelet/pki')}"],
        "kube-proxy": [f"--config={p('proxy.json')}"],
        "coredns": ["-conf", p("Corefile")],
        "fake-kubelet": [f"--kubeconfig={p('tests.kubeconfig')}", f"--trace={p('fake-kubelet.trace')}"]}
    return [programs[name], *lines[name]]


def system_program(name):
    return shutil.which(name, path=PATH)
