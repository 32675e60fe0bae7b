"""What people see before there is a cluster: how to get one."""

from __future__ import annotations

from pathlib import Path

import pytest

import workbench as wb
from workbench.runtime import connect_cluster as clusters


@pytest.fixture(autouse=True)
def no_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clusters, "_current", None)


def test_asking_for_collectives_says_how_to_connect() -> None:
    with pytest.raises(wb.errors.FailedPreconditionError, match=r"wb\.connect"):
        wb.collectives()


def test_diagnosing_says_how_to_connect() -> None:
    with pytest.raises(wb.errors.FailedPreconditionError, match=r"wb\.connect"):
        wb.diagnose()


def test_recording_says_how_to_connect(tmp_path: Path) -> None:
    with pytest.raises(wb.errors.FailedPreconditionError, match=r"wb\.connect"):
        wb.record(tmp_path / "run.parquet")
