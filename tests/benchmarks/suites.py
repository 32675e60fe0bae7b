"""What there is to run: the scripts of each suite, in the order in which they take turns."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Job:
    """One script in one interpreter.

    Attributes:
      who: What it measures, as a reader knows it.
      command: The module below tests.benchmarks, and its arguments.
      environment: Name of the interpreter.
      needs: Distributions that must be installed there.
    """

    who: str
    command: str
    environment: str = "ours"
    needs: tuple[str, ...] = ()


def _peer(who: str, command: str, *needs: str) -> Job:
    return Job(who, f"peers.{command}", "peers", needs)


def _tensorflow(who: str, command: str) -> Job:
    return Job(who, f"peers.{command}", "tensorflow", ("tensorflow-cpu",))


def _all_reduce(replicas: int) -> tuple[Job, ...]:
    n = f"--replicas {replicas}"
    return (
        Job("workbench", f"ours.all_reduce {n}"),
        _peer("OpenMPI", f"mpi_all_reduce {n}", "mpi4py", "mpirun"),
        Job("workbench, communicator alone", f"ours.communicator {n}"),
        _peer("gloo", f"gloo_all_reduce {n}", "torch"),
        Job("workbench, threads", f"ours.all_reduce {n} --threads 1"),
        _peer("JAX", f"jax_all_reduce {n}", "jax"),
        _tensorflow("TF, default", f"tf_all_reduce {n}"),
        _tensorflow("TF ReductionToOneDevice", f"tf_all_reduce {n} --ops ReductionToOneDevice"),
    )


def _import(library: str, environment: str = "ours", distribution: str = "") -> Job:
    needs = (distribution or library,) if library != "workbench" else ()
    return Job(library, f"startup --library {library} --who {library}", environment, needs)


INPUT_FILES = Job("the files", "ours.input.files", needs=("pyarrow",))

SUITES: dict[str, tuple[Job, ...]] = {
    "dispatch": (
        Job("floor", "peers.floor_dispatch"),
        Job("workbench", "ours.dispatch"),
        Job("workbench", "ours.timeline"),
        _tensorflow("TF", "tf_dispatch"),
        _peer("JAX", "jax_dispatch", "jax"),
        Job("workbench, threads", "ours.dispatch --threads 1"),
        Job("Dask", "peers.dask_dispatch"),
        _peer("ipyparallel", "ipyparallel_dispatch", "ipyparallel"),
    ),
    "all_reduce": (Job("memcpy", "peers.memcpy"), *_all_reduce(2), *_all_reduce(4)),
    "training": (
        Job("NumPy alone", "peers.numpy_training"),
        Job("workbench", "ours.training"),
        _peer("JAX", "jax_training", "jax"),
        _tensorflow("TF", "tf_training"),
        Job("workbench, threads", "ours.training --threads 1"),
        _peer("PyTorch alone", "torch_training --replicas 1", "torch"),
        _peer("PyTorch DDP", "torch_training", "torch"),
    ),
    "traced": (
        Job("workbench", "ours.traced", needs=("jax",)),
        Job("JAX", "peers.jax_traced", needs=("jax",)),
    ),
    "startup": (
        _import("workbench"),
        _import("distributed"),
        _import("jax", "peers"),
        _import("torch", "peers"),
        _import("tensorflow", "tensorflow", "tensorflow-cpu"),
        Job("workbench", "startup --who workbench"),
        Job("Dask LocalCluster", "startup --who LocalCluster"),
        Job("ipyparallel", "startup --who ipyparallel", "peers", ("ipyparallel",)),
        Job("workbench, threads", "startup --who workbench-threads"),
    ),
    "failure": (Job("workbench", "ours.failure"),),
    "servers": (
        Job("workbench", "ours.servers"),
        _tensorflow("TF", "tf_servers"),
        _tensorflow("TF, servers in one process", "tf_servers --servers inprocess"),
    ),
    "checkpoints": (Job("workbench", "ours.checkpoints"),),
    "debugging": (Job("workbench", "ours.debugging", needs=("jax",)),),
    "telemetry": (Job("workbench", "ours.telemetry"), Job("workbench", "ours.telemetry_fold")),
    "input": (
        INPUT_FILES,
        Job("workbench", "ours.input.memory"),
        Job("workbench", "ours.input.readers", needs=("pyarrow",)),
        _peer("Python loop", "input.python_loops", "google-crc32c"),
        _peer("DataLoader", "input.torch_dataloader", "torch", "google-crc32c"),
        _peer("Grain", "input.grain_datasets", "grain"),
        _tensorflow("tf.data", "input.tf_datasets"),
        Job("workbench", "ours.input.ahead"),
        Job("workbench", "ours.input.distributed"),
        Job("workbench", "ours.input.service"),
        _tensorflow("TF MirroredStrategy", "input.tf_distributed"),
        _tensorflow("tf.data service", "input.tf_service"),
        Job("workbench", "ours.input.bounded_memory"),
    ),
    "scaling": (
        Job("workbench, threads", "ours.scaling"),
        Job("workbench, one worker process", "ours.scaling --threads 0"),
    ),
    "views": (
        Job("workbench", "ours.views.inspection"),
        Job("workbench", "ours.views.flood", needs=("jupyter_client",)),
        Job("workbench", "ours.views.pane", needs=("jupyterlab", "playwright")),
        Job("workbench", "ours.views.frames", needs=("playwright",)),
        Job("workbench", "ours.views.crowd", needs=("jupyterlab", "playwright")),
        _peer("treescope", "views.treescope_prints", "treescope", "jax"),
        Job("workbench", "ours.views.sharding", needs=("jax",)),
        Job("workbench", "ours.views.page", needs=("panel", "playwright")),
        _peer("Dask /status", "views.dask_page", "distributed", "bokeh", "playwright"),
        _peer("TensorBoard", "views.tensorboard_page", "tensorboard", "playwright"),
        _peer("Monarch", "views.monarch_page", "torchmonarch", "playwright"),
        _peer(
            "nvdashboard",
            "views.nvdashboard_page",
            "jupyterlab-nvdashboard",
            "distributed",
            "bokeh",
            "playwright",
        ),
    ),
    "soak": (Job("workbench", "ours.soak"),),
}
