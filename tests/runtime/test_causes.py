"""A step that was cut short by the failure of a later one, which a faster replica had come to, raises that failure."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import workbench as wb


@pytest.fixture(scope="module", params=[True, False], ids=["processes", "threads"])
def strategy(request: pytest.FixtureRequest) -> Iterator[wb.MirroredStrategy]:
    with wb.connect(replicas=2, processes=request.param):
        yield wb.MirroredStrategy()


@wb.function
def step(number: int, failed: str) -> int:
    """Replica 0 fails in step 1; replica 1 only leaves step 0 when that has happened."""
    rank = wb.distribute.get_replica_context().replica_id_in_sync_group
    if rank == 0 and number == 1:
        Path(failed).touch()
        raise ValueError("the cause")
    while rank == 1 and number == 0 and failed and not Path(failed).exists():
        pass
    return number


@pytest.fixture
def values(strategy: wb.MirroredStrategy, tmp_path: Path) -> list[wb.distribute.PerReplica]:
    strategy.local_results(strategy.run(step, args=(7, "")))
    failed = str(tmp_path / "failed")
    return [strategy.run(step, args=(number, failed)) for number in range(2)]


def test_the_value_of_the_step_that_failed_raises_the_cause(
    strategy: wb.MirroredStrategy, values: list[wb.distribute.PerReplica]
) -> None:
    with pytest.raises(ValueError, match="the cause"):
        strategy.local_results(values[1])


def test_waiting_for_all_steps_raises_the_cause_once(
    strategy: wb.MirroredStrategy, values: list[wb.distribute.PerReplica]
) -> None:
    with pytest.raises(ValueError, match="the cause"):
        strategy.group.wait()
    strategy.group.wait()


def test_the_value_of_the_step_before_is_there_or_raises_the_cause(
    strategy: wb.MirroredStrategy, values: list[wb.distribute.PerReplica]
) -> None:
    outcomes = []
    for value in values:
        try:
            outcomes.append(strategy.local_results(value))
        except ValueError as error:
            outcomes.append(str(error).splitlines()[0].partition(": ")[2])

    assert outcomes in ([(0, 0), "the cause"], ["the cause", "the cause"])
