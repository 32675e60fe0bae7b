"""`time.sleep` where replicas are threads of this process."""

from __future__ import annotations

import time

import pytest

import workbench as wb
from workbench.runtime.replica import interruptible_sleep

ORIGINAL = time.sleep


def test_sleep_is_replaced_while_replicas_live_here_only() -> None:
    with wb.connect(replicas=2, processes=False, replace=True):
        assert time.sleep is not ORIGINAL
        assert time.sleep.__doc__ == ORIGINAL.__doc__
    assert time.sleep is ORIGINAL


def test_the_last_user_puts_the_original_back() -> None:
    one, other = object(), object()
    for user in (one, other):
        interruptible_sleep.install(user)
    for _ in range(2):
        interruptible_sleep.uninstall(one)
        assert time.sleep is not ORIGINAL
    interruptible_sleep.uninstall(other)
    assert time.sleep is ORIGINAL


@pytest.mark.parametrize("seconds", [0, 0.001, 3 * interruptible_sleep.PIECE_SECONDS])
def test_a_replica_sleeps_as_long_as_it_says(seconds: float) -> None:
    def step() -> float:
        before = time.monotonic()
        time.sleep(seconds)
        return time.monotonic() - before

    with wb.connect(replicas=2, processes=False, replace=True):
        assert min(wb.MirroredStrategy().run(step).values) >= seconds


@pytest.mark.parametrize(("seconds", "kind"), [(-1, ValueError), ("long", TypeError), (None, TypeError)])
def test_a_replica_cannot_sleep_for_what_is_no_time(seconds: object, kind: type[Exception]) -> None:
    with wb.connect(replicas=1, processes=False, replace=True), pytest.raises(kind):
        wb.OneDeviceStrategy("CPU:0").run(lambda: time.sleep(seconds))  # type: ignore[arg-type]
