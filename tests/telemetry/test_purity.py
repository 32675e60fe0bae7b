"""Telemetry pulls in nothing heavy and starts nothing by itself."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.telemetry.simulation import Replicas, steps
from workbench.errors import BackendUnavailable
from workbench.telemetry.feed.feed import Feed

PROGRAM = """
import sys, threading
from workbench.telemetry import clocks, events, records, snapshot
from workbench.telemetry.export import trace_files as exports
from workbench.telemetry.feed import feed
from workbench.telemetry.runs import recorder
from workbench.telemetry.recording import ring
from workbench.telemetry.runs import recorded_run as runs
from workbench.telemetry.export import text
loaded = {"pyarrow", "pandas", "dask", "distributed"} & set(sys.modules)
assert not loaded, loaded
assert threading.active_count() == 1
ring.Ring(8, replica=0)
"""


def test_importing_telemetry_loads_neither_arrow_nor_dask_and_starts_no_thread() -> None:
    subprocess.run([sys.executable, "-c", PROGRAM], check=True, timeout=60)


WITH_ARROW = """
import sys
from tests.telemetry.simulation import Replicas, steps
from workbench.telemetry.feed.feed import Feed
from workbench.telemetry.runs.recorder import Recorder
from workbench.telemetry.runs.recorded_run import open_run
replicas = Replicas(["a", "b"])
replicas.record(*steps(5, [0, 3]))
feed = Feed()
with Recorder(sys.argv[1]) as recorder:
    for data in replicas.drain():
        feed.ingest(data)
        recorder.add(data)
run = open_run(sys.argv[1])
assert run.span().records == len(feed.to_arrow()) == len(run.to_arrow()) == 10
assert run.snapshot().table == feed.table()
assert "pyarrow" in sys.modules
assert "pandas" not in sys.modules
"""


def test_recording_and_opening_a_run_does_not_load_pandas(tmp_path: Path) -> None:
    """Which takes 0.3 s and 40 MB in every worker and in the notebook."""
    root = Path(__file__).parents[2]
    subprocess.run(
        [sys.executable, "-c", WITH_ARROW, tmp_path / "run.parquet"], check=True, timeout=60, cwd=root
    )


def test_the_ring_alone_needs_not_even_numpy() -> None:
    program = (
        "import sys; from workbench.telemetry.recording.ring import Ring; Ring(8, replica=0); "
        "assert 'numpy' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)


def test_without_pandas_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    replicas = Replicas(["a"])
    replicas.record(*steps(1, [0]))
    feed = Feed()
    feed.ingest(replicas.drain()[0])
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(BackendUnavailable, match=r"pip install pandas, or use to_arrow\(\)"):
        feed.to_pandas()
