"""TPUStrategy where there are no TPU devices: how to get some."""

from __future__ import annotations

import pytest

import workbench as wb


def test_without_a_cluster_the_error_says_how_to_emulate() -> None:
    with pytest.raises(wb.errors.FailedPreconditionError, match=r"no cluster.*wb.connect\(tpu=8\)"):
        wb.TPUStrategy()


def test_on_cpu_devices_the_error_says_how_to_emulate() -> None:
    with (
        wb.connect(replicas=2, processes=False, replace=True),
        pytest.raises(wb.errors.FailedPreconditionError, match=r"2 CPU devices; wb.connect\(tpu=8\)"),
    ):
        wb.TPUStrategy()


@pytest.mark.parametrize("tpu", [0, True, "8"])
def test_a_number_of_cores_that_is_none_is_refused(tpu: object) -> None:
    with pytest.raises(wb.errors.InvalidArgumentError, match="at least 1"):
        wb.connect(tpu=tpu)  # type: ignore[arg-type]


def test_a_layout_of_cpu_replicas_does_not_go_with_it() -> None:
    with pytest.raises(wb.errors.InvalidArgumentError, match="leave out replicas"):
        wb.connect(tpu=4, replicas=4)
