"""The parts of DI-engine that talk to an operator, without the parts that compute.

DI-engine's modules are imported as they are installed from PyPI, file by file. What they import at their top and never use
on this path (torch and the like, gigabytes of it) is replaced by placeholders, and the packages' __init__ files, which
import everything there is, are left out.
"""
import importlib
import importlib.machinery
import importlib.util
import logging
import sys
import types

NEVER_USED_HERE = ("torch", "treetensor", "ditk")
PACKAGES = ("ding.utils", "ding.worker", "ding.worker.coordinator", "ding.worker.adapter")
UTILS = {  # what comm_coordinator asks of the package ding.utils, and the file that has it
    "LockContext": "lock_helper",
    "LockContextType": "lock_helper",
    "get_operator_server_kwargs": "k8s_helper",
    "exist_operator_server": "k8s_helper",
}


class Absent:
    def __init__(self, *args, **kwargs):
        pass


class Placeholder(types.ModuleType):
    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return type(name, (Absent,), {})


class PlaceholderFinder:
    @staticmethod
    def find_spec(name, path=None, target=None):
        if name.split(".")[0] in NEVER_USED_HERE:
            return importlib.machinery.ModuleSpec(name, PlaceholderFinder, is_package=True)
        return None

    @staticmethod
    def create_module(spec):
        return Placeholder(spec.name)

    @staticmethod
    def exec_module(module):
        module.__path__ = []


def bare_package(name):
    """A package whose __init__ is not run, at the place where it is installed."""
    parent, _, last = name.rpartition(".")
    module = types.ModuleType(name)
    module.__path__ = [f"{list(sys.modules[parent].__path__)[0]}/{last}"]
    module.__package__ = name
    sys.modules[name] = module
    setattr(sys.modules[parent], last, module)
    return module


def load():
    """DI-engine's CommCoordinator, LearnerAggregator, OperatorServer and Slave classes."""
    sys.meta_path.append(PlaceholderFinder)  # last: what is installed is used
    importlib.import_module("ding")
    for name in PACKAGES:
        bare_package(name)
    utils = sys.modules["ding.utils"]
    for attribute, file in UTILS.items():
        setattr(utils, attribute, getattr(importlib.import_module(f"ding.utils.{file}"), attribute))
    utils.build_logger = lambda path, name, need_tb: (logging.getLogger(name), None)  # its own writes tables with torch
    parts = types.SimpleNamespace()
    parts.CommCoordinator = importlib.import_module("ding.worker.coordinator.comm_coordinator").CommCoordinator
    parts.LearnerAggregator = importlib.import_module("ding.worker.adapter.learner_aggregator").LearnerAggregator
    parts.OperatorServer = importlib.import_module("ding.worker.coordinator.operator_server").OperatorServer
    parts.server_kwargs = utils.get_operator_server_kwargs
    parts.Slave = importlib.import_module("ding.interaction").Slave
    return parts
