"""Telemetry pulls in nothing heavy and starts nothing by itself."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.telemetry.simulation import Replicas, steps
from workbench.errors import BackendUnavailable
from workbench.telemetry.feed import Feed

PROGRAM = """
import sys, threading
from workbench.telemetry import clocks, events, exports, feed, recorder, records, ring, runs, snapshot, text
loaded = {"pyarrow", "pandas", "dask", "distributed"} & set(sys.modules)
assert not loaded, loaded
assert threading.active_count() == 1
ring.Ring(8, replica=0)
"""


def test_importing_telemetry_loads_neither_arrow_nor_dask_and_starts_no_thread() -> None:
    subprocess.run([sys.executable, "-c", PROGRAM], check=True, timeout=60)


def test_the_ring_alone_needs_not_even_numpy() -> None:
    program = (
        "import sys; from workbench.telemetry.ring import Ring; Ring(8, replica=0); "
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
