"""workbench: drive many devices from a notebook, and see what happens there.

`import workbench as wb` is cheap: a name below is imported when it is first used.
"""

from __future__ import annotations

import importlib
import sys
from typing import TYPE_CHECKING, Any

from workbench import cluster_listeners

if TYPE_CHECKING:  # the same names, for type checkers and editors; tests/test_public_api.py compares the two
    from workbench import data as data
    from workbench import debugging as debugging
    from workbench import distribute as distribute
    from workbench import errors as errors
    from workbench import testing as testing
    from workbench.dashboards.dashboard import dashboard as dashboard
    from workbench.dashboards.dask_pages import dask_pages as dask_pages
    from workbench.device_spec import DeviceSpec as DeviceSpec
    from workbench.devices import device as device
    from workbench.distribute.aggregation import VariableAggregation as VariableAggregation
    from workbench.distribute.aggregation import VariableSynchronization as VariableSynchronization
    from workbench.distribute.function import function as function
    from workbench.distribute.indexed_slices import IndexedSlices as IndexedSlices
    from workbench.distribute.mirrored import MirroredStrategy as MirroredStrategy
    from workbench.distribute.multi_worker import MultiWorkerMirroredStrategy as MultiWorkerMirroredStrategy
    from workbench.distribute.one_device import OneDeviceStrategy as OneDeviceStrategy
    from workbench.distribute.reduce_op import ReduceOp as ReduceOp
    from workbench.distribute.tpu import TPUStrategy as TPUStrategy
    from workbench.distribute.variable import Variable as Variable
    from workbench.runtime.cluster import Cluster as Cluster
    from workbench.runtime.current import connect as connect
    from workbench.runtime.current import current_cluster as current_cluster
    from workbench.ui.called import collectives as collectives
    from workbench.ui.cluster_views import devices as devices
    from workbench.ui.cluster_views import log as log
    from workbench.ui.cluster_views import topology as topology
    from workbench.ui.diagnosis import diagnose as diagnose
    from workbench.ui.inspection import inspect as inspect
    from workbench.ui.layouts import layout as layout
    from workbench.ui.progress import progress as progress
    from workbench.ui.recording import record as record
    from workbench.ui.replay import open_run as open_run
    from workbench.ui.replica_cells import run_cell as run_cell
    from workbench.ui.report import report as report
    from workbench.ui.run_list import runs as runs
    from workbench.ui.sharding import explain_sharding as explain_sharding

__version__ = "0.1.0"

# Of these, collectives and devices can also be called.
_MODULES = frozenset({"collectives", "data", "debugging", "devices", "distribute", "errors", "testing"})

_EXPORTS = {
    "explain_sharding": "workbench.ui.sharding",
    "DeviceSpec": "workbench.device_spec",
    "device": "workbench.devices",
    "VariableAggregation": "workbench.distribute.aggregation",
    "VariableSynchronization": "workbench.distribute.aggregation",
    "function": "workbench.distribute.function",
    "IndexedSlices": "workbench.distribute.indexed_slices",
    "MirroredStrategy": "workbench.distribute.mirrored",
    "MultiWorkerMirroredStrategy": "workbench.distribute.multi_worker",
    "OneDeviceStrategy": "workbench.distribute.one_device",
    "ReduceOp": "workbench.distribute.reduce_op",
    "TPUStrategy": "workbench.distribute.tpu",
    "Variable": "workbench.distribute.variable",
    "Cluster": "workbench.runtime.cluster",
    "connect": "workbench.runtime.current",
    "current_cluster": "workbench.runtime.current",
    "dashboard": "workbench.dashboards.dashboard",
    "dask_pages": "workbench.dashboards.dask_pages",
    "diagnose": "workbench.ui.diagnosis",
    "log": "workbench.ui.cluster_views",
    "topology": "workbench.ui.cluster_views",
    "inspect": "workbench.ui.inspection",
    "layout": "workbench.ui.layouts",
    "progress": "workbench.ui.progress",
    "record": "workbench.ui.recording",
    "run_cell": "workbench.ui.replica_cells",
    "open_run": "workbench.ui.replay",
    "report": "workbench.ui.report",
    "runs": "workbench.ui.run_list",
}

__all__ = [*_EXPORTS, *sorted(_MODULES)]


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        value: Any = importlib.import_module(f"workbench.{name}")
    elif name in _EXPORTS:
        value = getattr(importlib.import_module(_EXPORTS[name]), name)
        globals()[name] = value  # the next use finds it at once
    else:
        raise AttributeError(f"module 'workbench' has no attribute {name!r}")
    return value


def _announce(cluster: Cluster) -> None:
    """Makes a cluster appear in JupyterLab, and to `workbench dashboard`, by itself."""
    importlib.import_module("workbench.server.announcing").announce(cluster)


cluster_listeners.listeners.append(_announce)


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])


if "IPython" in sys.modules:  # in a notebook, objects are drawn and cells wait for their steps
    importlib.import_module("workbench.ui.notebook").install()
