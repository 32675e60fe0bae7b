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
    from workbench import io as io
    from workbench import testing as testing
    from workbench.dashboards.dashboard import dashboard as dashboard
    from workbench.dashboards.dask_pages import dask_pages as dask_pages
    from workbench.device_names import device as device
    from workbench.device_spec import DeviceSpec as DeviceSpec
    from workbench.distribute.arrays.indexed_slices import IndexedSlices as IndexedSlices
    from workbench.distribute.arrays.reduce_op import ReduceOp as ReduceOp
    from workbench.distribute.function import function as function
    from workbench.distribute.strategies.mirrored import MirroredStrategy as MirroredStrategy
    from workbench.distribute.strategies.multi_worker import (
        MultiWorkerMirroredStrategy as MultiWorkerMirroredStrategy,
    )
    from workbench.distribute.strategies.one_device import OneDeviceStrategy as OneDeviceStrategy
    from workbench.distribute.strategies.tpu import TPUStrategy as TPUStrategy
    from workbench.distribute.variables.aggregation import VariableAggregation as VariableAggregation
    from workbench.distribute.variables.aggregation import VariableSynchronization as VariableSynchronization
    from workbench.distribute.variables.variable import Variable as Variable
    from workbench.runtime.cluster import Cluster as Cluster
    from workbench.runtime.connect_cluster import connect as connect
    from workbench.runtime.connect_cluster import current_cluster as current_cluster
    from workbench.ui.cells.replica_cells import run_cell as run_cell
    from workbench.ui.cluster.cluster_views import devices as devices
    from workbench.ui.cluster.cluster_views import log as log
    from workbench.ui.cluster.cluster_views import topology as topology
    from workbench.ui.cluster.diagnosis import diagnose as diagnose
    from workbench.ui.collectives.view import collectives as collectives
    from workbench.ui.inspect.inspection import inspect as inspect
    from workbench.ui.layouts import layout as layout
    from workbench.ui.progress import progress as progress
    from workbench.ui.report import report as report
    from workbench.ui.runs.recording import record as record
    from workbench.ui.runs.replay import open_run as open_run
    from workbench.ui.runs.run_list import runs as runs
    from workbench.ui.sharding.explain_sharding import explain_sharding as explain_sharding

__version__ = "0.1.0"

_MODULES = frozenset({"data", "debugging", "distribute", "errors", "io", "testing"})

_EXPORTS = {
    "explain_sharding": "workbench.ui.sharding.explain_sharding",
    "DeviceSpec": "workbench.device_spec",
    "device": "workbench.device_names",
    "VariableAggregation": "workbench.distribute.variables.aggregation",
    "VariableSynchronization": "workbench.distribute.variables.aggregation",
    "function": "workbench.distribute.function",
    "IndexedSlices": "workbench.distribute.arrays.indexed_slices",
    "MirroredStrategy": "workbench.distribute.strategies.mirrored",
    "MultiWorkerMirroredStrategy": "workbench.distribute.strategies.multi_worker",
    "OneDeviceStrategy": "workbench.distribute.strategies.one_device",
    "ReduceOp": "workbench.distribute.arrays.reduce_op",
    "TPUStrategy": "workbench.distribute.strategies.tpu",
    "Variable": "workbench.distribute.variables.variable",
    "Cluster": "workbench.runtime.cluster",
    "connect": "workbench.runtime.connect_cluster",
    "current_cluster": "workbench.runtime.connect_cluster",
    "dashboard": "workbench.dashboards.dashboard",
    "dask_pages": "workbench.dashboards.dask_pages",
    "diagnose": "workbench.ui.cluster.diagnosis",
    "collectives": "workbench.ui.collectives.view",
    "devices": "workbench.ui.cluster.cluster_views",
    "log": "workbench.ui.cluster.cluster_views",
    "topology": "workbench.ui.cluster.cluster_views",
    "inspect": "workbench.ui.inspect.inspection",
    "layout": "workbench.ui.layouts",
    "progress": "workbench.ui.progress",
    "record": "workbench.ui.runs.recording",
    "run_cell": "workbench.ui.cells.replica_cells",
    "open_run": "workbench.ui.runs.replay",
    "report": "workbench.ui.report",
    "runs": "workbench.ui.runs.run_list",
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
