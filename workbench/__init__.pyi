from workbench import compat as compat
from workbench import data as data
from workbench import debugging as debugging
from workbench import distribute as distribute
from workbench import errors as errors
from workbench import io as io
from workbench import nn as nn
from workbench import testing as testing
from workbench.checkpoint.checkpoint import Checkpoint as Checkpoint
from workbench.checkpoint.checkpoint_manager import CheckpointManager as CheckpointManager
from workbench.checkpoint.checkpoint_manager import latest_checkpoint as latest_checkpoint
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
from workbench.ui.cluster.overview import overview as overview
from workbench.ui.collectives.view import collectives as collectives
from workbench.ui.field_terms import field_terms as field_terms
from workbench.ui.inspect.dump import open_dump as open_dump
from workbench.ui.inspect.inspection import inspect as inspect
from workbench.ui.layouts import layout as layout
from workbench.ui.progress import progress as progress
from workbench.ui.report import report as report
from workbench.ui.runs.recording import record as record
from workbench.ui.runs.replay import open_run as open_run
from workbench.ui.runs.run_list import runs as runs
from workbench.ui.sharding.explain_sharding import explain_sharding as explain_sharding

__version__: str
