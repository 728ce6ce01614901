"""fake_metrics - a metrics API (metrics.k8s.io/v1beta1) whose numbers a test sets, for a HorizontalPodAutoscaler.

It serves in the test's own process, on a socket in the cluster's network, and is registered as a real one is: an
APIService, a Service and its Endpoints in kube-system.
"""

import datetime
import http.server
import json
import ssl
import threading
import urllib.parse

from guard import ADDRESS

GROUP = "metrics.k8s.io"
API = f"/apis/{GROUP}/v1beta1"
NAME = "fake-metrics"


class FakeMetrics:
    """Every pod uses .cpu millicores, those whose name has an entry in .of so much. Set them at any time."""

    def __init__(self, k8s, listener):
        """listener: a bound TCP socket in the cluster's network; taken over."""
        self.k8s, self.cpu, self.of = k8s, 100, {}
        self.asked = 0
        files = k8s.files
        files.done(files.certificate(NAME, f"/CN={NAME}", "extendedKeyUsage=serverAuth"))
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(files.path(NAME + ".crt"), files.path(NAME + ".key"))
        self.port = listener.getsockname()[1]
        self.server = http.server.ThreadingHTTPServer((ADDRESS, self.port), self.handler(), bind_and_activate=False)
        self.server.socket.close()
        self.server.socket = context.wrap_socket(listener, server_side=True)
        self.server.server_activate()
        self.thread = threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        self.thread.start()
        self.register()

    def register(self):
        services = "/api/v1/namespaces/kube-system/services"
        self.k8s.api("POST", services, {"metadata": {"name": NAME}, "spec": {"ports": [{"port": 443,
                                                                                       "targetPort": self.port}]}})
        self.k8s.api("POST", "/api/v1/namespaces/kube-system/endpoints", {  # the aggregator reads no slices
            "metadata": {"name": NAME}, "subsets": [{"addresses": [{"ip": ADDRESS}], "ports": [{"port": self.port}]}]})
        self.k8s.api("POST", "/apis/apiregistration.k8s.io/v1/apiservices", {
            "metadata": {"name": f"v1beta1.{GROUP}"}, "spec": {
                "group": GROUP, "version": "v1beta1", "insecureSkipTLSVerify": True, "groupPriorityMinimum": 100,
                "versionPriority": 100, "service": {"namespace": "kube-system", "name": NAME, "port": 443}}})

    def answer(self, path, query):
        if path == API:
            return {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": f"{GROUP}/v1beta1", "resources": [
                {"name": "pods", "singularName": "", "namespaced": True, "kind": "PodMetrics", "verbs": ["get", "list"]}]}
        if not path.startswith(API + "/namespaces/") or not path.endswith("/pods"):
            return None
        self.asked += 1
        selector = urllib.parse.urlencode({"labelSelector": query.get("labelSelector", [""])[0]})
        pods = self.k8s.get(f"/api/v1/{path[len(API) + 1:]}?{selector}")["items"]
        return {"kind": "PodMetricsList", "apiVersion": f"{GROUP}/v1beta1", "metadata": {}, "items": [
            self.usage(pod) for pod in pods if pod["status"].get("phase") == "Running"]}

    def usage(self, pod):
        cpu = self.of.get(pod["metadata"]["name"], self.cpu)
        now = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
        return {"metadata": {"name": pod["metadata"]["name"], "namespace": pod["metadata"]["namespace"],
                             "labels": pod["metadata"].get("labels", {})}, "timestamp": now, "window": "10s",
                "containers": [{"name": container["name"], "usage": {"cpu": f"{cpu}m", "memory": "10Mi"}}
                               for container in pod["spec"]["containers"]]}

    def handler(self):
        metrics = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self):
                url = urllib.parse.urlsplit(self.path)
                try:
                    found = metrics.answer(url.path, urllib.parse.parse_qs(url.query))
                    code, text = (200 if found else 404), json.dumps(found or {"kind": "Status", "code": 404}).encode()
                except Exception as error:  # the API server was stopped, say
                    code, text = 503, json.dumps({"kind": "Status", "message": str(error)}).encode()
                self.send_response(code)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.wfile.write(text)

            def log_message(self, *_):
                pass
        return Handler

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()
