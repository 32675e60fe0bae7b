"""Clusters for checkpoints, with replicas in processes, so that values are elsewhere than the notebook; and faults."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import workbench as wb
from workbench import faults

Arm = Callable[..., None]


@pytest.fixture(scope="module")
def three() -> Iterator[wb.Cluster]:
    """Three replicas in processes of their own."""
    with wb.connect(replicas=3, replace=True) as cluster:
        yield cluster


@pytest.fixture
def arm(monkeypatch: pytest.MonkeyPatch) -> Iterator[Arm]:
    """Puts faults at points of this process, in the place of those before; none after the test."""

    def rules(*rules: dict[str, Any]) -> None:
        faults._counts.clear()
        monkeypatch.setenv("WB_FAULTS", json.dumps(rules))
        faults.arm()

    yield rules
    rules()
