"""Calls that are about a cluster take a strategy, too; what they cannot take, they name."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import workbench as wb
from workbench.errors import FailedPreconditionError

CALLS: dict[str, Callable[[Any, Path], Any]] = {
    "wb.topology": lambda of, _: wb.topology(of),
    "wb.devices": lambda of, _: wb.devices(of),
    "wb.log": lambda of, _: wb.log(of),
    "wb.diagnose": lambda of, _: wb.diagnose(of),
    "wb.overview": lambda of, _: wb.overview(of),
    "wb.collectives": lambda of, _: wb.collectives(of),
    "wb.record": lambda of, folder: wb.record(folder / "run.parquet", of),
}
NEED_MORE: dict[str, Callable[[Any], Any]] = {
    "wb.dask_pages": wb.dask_pages,
    "wb.dashboard": wb.dashboard,
    "wb.run_cell": lambda of: wb.run_cell("1", of),
    "wb.collectives.sweep": lambda of: wb.collectives.sweep(of),
    "wb.collectives.what_if": lambda of: wb.collectives.what_if(of, size_bytes=1, compute_us=1.0),
}
"""They take no cluster of these tests, or nothing but a strategy."""


def meet() -> None:
    wb.distribute.get_replica_context().all_reduce("sum", np.ones(8, np.float32))


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_it_takes_a_strategy_as_its_cluster(
    call: Callable[[Any, Path], Any], cluster: wb.Cluster, strategy: wb.MirroredStrategy, tmp_path: Path
) -> None:
    for of in (strategy, cluster, None):
        shown = call(of, tmp_path)
        assert repr(shown)
        getattr(shown, "close", lambda: None)()


@pytest.mark.parametrize("call", CALLS, ids=CALLS)
def test_what_it_cannot_take_it_names_with_how_to_call_it(
    call: str, strategy: wb.MirroredStrategy, tmp_path: Path
) -> None:
    for wrong in (strategy.run(lambda: 1), 3, wb.MirroredStrategy, object()):
        with pytest.raises(TypeError, match=rf"got {type(wrong).__name__}; write {call}\(.*strategy\)"):
            CALLS[call](wrong, tmp_path)
    with pytest.raises(FailedPreconditionError, match=rf"the default strategy .* write {call}\("):
        CALLS[call](wb.distribute.get_strategy(), tmp_path)


@pytest.mark.parametrize("call", NEED_MORE, ids=NEED_MORE)
def test_a_value_is_no_cluster_and_no_strategy(call: str, strategy: wb.MirroredStrategy) -> None:
    with pytest.raises((TypeError, wb.errors.InvalidArgumentError), match=r"PerReplica\b"):
        NEED_MORE[call](strategy.run(lambda: 1))


def test_a_recording_of_a_closed_cluster_says_that_it_is_closed(tmp_path: Path) -> None:
    with wb.connect(replicas=1, processes=False, replace=True) as other:
        pass
    with pytest.raises(FailedPreconditionError, match="was closed"):
        wb.record(tmp_path / "run.parquet", other)


def test_the_overview_of_a_recorded_run_says_what_the_run_was_like(tmp_path: Path) -> None:
    with wb.connect(replicas=2, processes=False, replace=True):
        strategy = wb.MirroredStrategy()
        with wb.record(tmp_path / "run.parquet", strategy):
            for _ in range(3):
                strategy.run(meet)
    shown = wb.overview(wb.open_run(tmp_path / "run.parquet"))

    text, html = repr(shown), shown._repr_html_()
    assert text.splitlines()[0].endswith("2 replicas on 1 host, step 2, replay")
    for part in ("Watching: 3 of 20 steps", "steps per second", "2 of 2"):
        assert part in text
        assert part in html
    bundle = shown._repr_mimebundle_(include={"application/vnd.workbench.view+json"})
    view = bundle["application/vnd.workbench.view+json"]
    assert view["view"] == "overview"
    assert view["model"]["overview"]["replicas"] == 2
