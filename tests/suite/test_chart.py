#!/usr/bin/env python3
"""k8s/helm/tutti without Helm: its version is the project's, its copies are what they are copies of, every value has a word of explanation
and a rule in the schema. What it makes of them: tests/k8s/test_helm.py."""

import json
import os
import pathlib
import re
import unittest

SOURCE = pathlib.Path(os.environ["TT_SOURCE_DIR"])
CHART = SOURCE / "k8s/helm/tutti"
COPIES = {"crds/aggregatorconfig.yaml": "crd/aggregatorconfig.yaml", "crds/dijob.yaml": "crd/dijob.yaml", "crds/tfjob.yaml": "crd/tfjob/tfjob.yaml",
          "dashboard.json": "monitoring/dashboard.json", "dashboard-elasticdl.json": "monitoring/elasticdl/dashboard.json"}
# Values that are objects of Kubernetes': what stands in their defaults is not ours to explain.
WHOLE = {"resources", "affinity"}


def values():
    """(dotted name, whether it is an object of values, whether a comment stands above it) of each key, but for what is in WHOLE."""
    path, above = [], ""
    for line in (CHART / "values.yaml").read_text("utf-8").splitlines():
        found = re.match(r"( *)([A-Za-z]\w*):(.*)$", line)
        if found:
            depth = len(found[1]) // 2
            path = path[:depth] + [found[2]]
            if not WHOLE & set(path[:-1]):
                yield ".".join(path), found[3].strip() == "" and path[-1] not in WHOLE, above.lstrip().startswith("#")
        above = line


def known(schema, rules, prefix=""):
    """The dotted names that the schema has rules for, an object's without a list of its own as one."""
    for name, rule in rules.get("properties", {}).items():
        while "$ref" in rule:
            rule = schema["definitions"][rule["$ref"].rsplit("/", 1)[1]]
        yield prefix + name
        yield from known(schema, rule, f"{prefix}{name}.")


class Chart(unittest.TestCase):
    def test_version_is_the_projects(self):
        version = re.search(r"project\(tutti VERSION (\S+)", (SOURCE / "CMakeLists.txt").read_text("utf-8"))[1]
        found = dict(re.findall(r'^(version|appVersion): "?([^"\s]+)', (CHART / "Chart.yaml").read_text("utf-8"), re.M))
        self.assertEqual(found, {"version": version, "appVersion": version}, "k8s/helm/tutti/Chart.yaml, and the project's in CMakeLists.txt")

    def test_copies_are_what_they_are_copies_of(self):
        there = {str(path.relative_to(CHART / "files")) for path in (CHART / "files").rglob("*") if path.is_file()}
        self.assertEqual(there, set(COPIES))
        for copy, source in COPIES.items():
            self.assertEqual((CHART / "files" / copy).read_bytes(), (SOURCE / "k8s" / source).read_bytes(),
                             f"they differ: cp k8s/{source} k8s/helm/tutti/files/{copy}")

    def test_every_value_is_explained(self):
        silent = [name for name, is_section, explained in values() if not explained and not is_section]
        self.assertEqual(silent, [], "a comment in values.yaml, above each")

    def test_the_schema_knows_every_value_and_no_other(self):
        schema = json.loads((CHART / "values.schema.json").read_text("utf-8"))
        self.assertEqual({name for name, _, _ in values()}, set(known(schema, schema)) - {"global"})
        self.assertIs(schema["additionalProperties"], False)


if __name__ == "__main__":
    unittest.main()
