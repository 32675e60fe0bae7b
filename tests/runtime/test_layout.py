"""How many replicas there are when nobody says a number."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from workbench.errors import InvalidArgumentError
from workbench.runtime.layout import check_minimum, check_tpu, default_replicas, layout


@pytest.mark.parametrize(
    ("cores", "mebibytes", "replicas"),
    [
        (2, 24 << 10, 2),
        (64, 2 << 10, 4),  # a small share of a large machine
        (8, 511, 1),
        (1, 24 << 10, 1),
    ],
)
def test_worker_processes_fit_into_cores_and_memory(
    monkeypatch: pytest.MonkeyPatch, cores: int, mebibytes: int, replicas: int
) -> None:
    monkeypatch.setattr("workbench.allowance.cores", lambda: cores)
    monkeypatch.setattr("workbench.allowance.memory_bytes", lambda: mebibytes << 20)

    assert default_replicas(processes=True) == replicas
    assert len(layout(None, None, None, 1, processes=True)) == replicas
    assert layout(None, None, None, 1, processes=False) == {"0": ("a", cores)}


def test_a_number_that_was_asked_for_is_what_there_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("workbench.allowance.cores", lambda: 1)
    monkeypatch.setattr("workbench.allowance.memory_bytes", lambda: 1 << 30)

    assert len(layout(4, None, None, 1, processes=True)) == 4


def test_a_cluster_of_numpys_numbers_is_laid_out() -> None:
    wanted = layout(4, 2, None, 1, True)
    assert layout(np.int64(4), np.int32(2), None, np.int64(1), True) == wanted  # type: ignore[arg-type]


def test_a_smallest_number_of_replicas_of_numpys_becomes_one_of_pythons() -> None:
    assert type(check_minimum(np.int64(2), 2)) is int  # type: ignore[arg-type]
    assert check_minimum(None) is None
    with pytest.raises(InvalidArgumentError, match=r"^minimum_replicas=3 is more than the 2 that there are"):
        check_minimum(3, 2)


@pytest.mark.parametrize("wrong", [0, True, 2.0, "2"])
def test_what_is_no_number_of_replicas_is_refused(wrong: Any) -> None:
    with pytest.raises(
        InvalidArgumentError, match=f"^replicas must be an integer of at least 1, got {wrong!r}$"
    ):
        layout(wrong, None, None, 1, True)


@pytest.mark.parametrize("wrong", [0, True, 2.0, "8"])
def test_what_is_no_number_of_tpu_cores_is_refused(wrong: Any) -> None:
    says = f"^tpu must be an integer of at least 1, the TPU cores of a host, or 'auto' for all .*, got {wrong!r}$"
    with pytest.raises(InvalidArgumentError, match=says):
        check_tpu(wrong, None, None, 1, True)
    check_tpu(np.int64(8), None, None, 1, True)
    check_tpu("auto", None, None, 1, True)
