"""What k8s/monitoring has, on a cluster: a ServiceMonitor that finds its Service, and a dashboard that asks for nothing which is not there."""

import json
import os
import re

from cluster import check, wait_for

K8S = os.path.join(os.environ["TT_SOURCE_DIR"], "k8s")


def _service_monitors(k8s):
    """The kind that Prometheus' operator brings, with any fields."""
    version = {"name": "v1", "served": True, "storage": True,
               "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}}
    k8s.apply({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "servicemonitors.monitoring.coreos.com"},
               "spec": {"group": "monitoring.coreos.com", "scope": "Namespaced", "versions": [version],
                        "names": {"kind": "ServiceMonitor", "plural": "servicemonitors", "singular": "servicemonitor"}}})
    k8s.await_kind("servicemonitor")


def _page(k8s, space, monitor):
    """Of the one Service that it finds, at the port that it names; who is behind it the API server may hear a moment later."""
    wanted = ",".join(f"{key}={value}" for key, value in monitor["selector"]["matchLabels"].items())
    (service,) = k8s.get(f"/api/v1/namespaces/{space}/services?labelSelector={wanted}")["items"]
    (port,) = service["spec"]["ports"]
    (endpoint,) = monitor["endpoints"]
    check((endpoint["port"], endpoint["path"]) == (port["name"], "/metrics"), endpoint)
    path = f"/api/v1/namespaces/{space}/services/{service['metadata']['name']}:{port['name']}/proxy/metrics"
    return wait_for(lambda: k8s.api("GET", path), f"an answer of {path}")


def check_folder(k8s, folder, space, least):
    """Typed as docs say; every name that the dashboard asks for, and there are so many at least, is one that the page has. And taken away again."""
    _service_monitors(k8s)
    k8s.kubectl("apply", "-k", os.path.join(K8S, folder))
    (monitor,) = k8s.get(f"/apis/monitoring.coreos.com/v1/namespaces/{space}/servicemonitors")["items"]
    page = _page(k8s, space, monitor["spec"])
    kinds = dict(re.findall(r"(?m)^# TYPE (\S+) (\S+)$", page))
    there = set(kinds) | {f"{name}_{part}" for name, kind in kinds.items() if kind == "histogram" for part in ("bucket", "sum", "count")}
    (board,) = k8s.get(f"/api/v1/namespaces/{space}/configmaps?labelSelector=grafana_dashboard=1")["items"]
    board = json.loads(board["data"]["dashboard.json"])
    texts = [target["expr"] for panel in board["panels"] for target in panel["targets"]] + [one["query"] for one in board["templating"]["list"]]
    asked = {name for text in texts for name in re.findall(r"\b(?:tutti|workqueue|rest_client|process)_\w+", re.sub(r'"[^"]*"', "", text))}
    check(len(asked) >= least and not asked - there, f"nobody has {sorted(asked - there)} of {sorted(asked)}")
    k8s.kubectl("delete", "-k", os.path.join(K8S, folder))
