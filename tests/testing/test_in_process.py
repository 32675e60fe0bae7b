"""Checks and faults where replicas are threads of this process."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import workbench as wb
from workbench.errors import FailedPreconditionError
from workbench.testing import Collective, Killed, assert_collectives, inject


@wb.function
def step(x: Any) -> Any:
    ctx = wb.distribute.get_replica_context()
    return ctx.all_gather(ctx.all_reduce("mean", x), axis=0)


def test_a_strategy_a_table_and_a_recorded_run_can_be_checked(tmp_path: Path) -> None:
    with wb.connect(replicas=2, processes=False, replace=True) as cluster:
        strategy = wb.MirroredStrategy()
        with wb.record(tmp_path / "run.parquet", cluster):
            strategy.run(step, args=(np.ones(5),))
        assert_collectives(strategy, ["all_reduce", "all_gather"])
        assert_collectives(wb.collectives(strategy), ["all_reduce", "all_gather"])
    assert_collectives(
        wb.open_run(tmp_path / "run.parquet"), [Collective("all_reduce", redop="mean", count=5), "all_gather"]
    )


def test_the_process_of_the_notebook_is_never_killed() -> None:
    with wb.connect(replicas=2, processes=False, replace=True):
        own = wb.MirroredStrategy()
        with pytest.raises(FailedPreconditionError, match="which will not be killed"):
            own.run(inject(step, Killed(1)), args=(np.ones(5),)).values
