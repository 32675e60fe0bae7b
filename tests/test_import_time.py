"""What is loaded: by `import workbench` next to nothing, so that it is instant, and never what nobody uses."""

from __future__ import annotations

import subprocess
import sys

import pytest

from workbench import runtime

HEAVY = [
    "cryptography",
    "cupy",
    "dask",
    "distributed",
    "ipywidgets",
    "IPython",
    "anywidget",
    "crc32c",
    "jax",
    "numpy",
    "optree",
]
HEAVY += ["pandas", "panel", "psutil", "pyarrow", "torch", "tornado"]


def loaded_after(statement: str) -> set[str]:
    """Names of the top-level modules that a fresh interpreter holds after `statement`."""
    code = f"{statement}; import sys; print(*{{name.partition('.')[0] for name in sys.modules}})"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True
    )
    return set(done.stdout.split())


def test_importing_workbench_loads_no_library() -> None:
    assert loaded_after("import workbench").isdisjoint(HEAVY)


def test_listing_the_public_names_loads_no_library() -> None:
    assert loaded_after("import workbench; dir(workbench)").isdisjoint(HEAVY)


def test_the_command_line_starts_without_the_libraries() -> None:
    assert loaded_after("import workbench.cli").isdisjoint(HEAVY)


@pytest.mark.parametrize("processes", [False, True])
def test_no_process_of_an_embedded_cluster_loads_dasks_dashboard(processes: bool) -> None:
    # It would import all of Bokeh, if that is installed.
    program = f"""
import sys, workbench as wb
with wb.connect(replicas=1, processes={processes}):
    found = wb.OneDeviceStrategy("CPU:0").run(lambda: "distributed.dashboard" in sys.modules)
    print("distributed.dashboard" in sys.modules, found.values)
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=100
    )
    assert done.stdout == "False (False,)\n"


@pytest.mark.parametrize(
    "statement",
    [
        "import workbench as wb; wb.open_run, wb.runs, wb.report",
        "import workbench.dashboards.serving, workbench.cli.dashboard",
        "import workbench.server.extension",
    ],
    ids=["in a notebook", "in a dashboard", "in a Jupyter server"],
)
def test_where_nothing_runs_recorded_runs_are_opened_without_dask(statement: str) -> None:
    assert loaded_after(statement).isdisjoint({"dask", "distributed", "optree", "pandas"})


def test_a_worker_does_not_load_what_only_the_notebook_needs() -> None:
    code = "import workbench.runtime.deploy.plugin, workbench.distribute.strategies.mirrored, sys; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True
    )
    loaded = set(done.stdout.split())
    assert "workbench.runtime.worker.host" in loaded
    assert loaded.isdisjoint(
        {"workbench.runtime.cluster", "workbench.runtime.driver.gang.gang", "workbench.telemetry.feed.feed"}
    )


def test_every_name_of_the_runtime_can_be_imported() -> None:
    assert {getattr(runtime, name).__name__ for name in runtime.__all__} == set(runtime.__all__)
    assert not hasattr(runtime, "no_such_name")
