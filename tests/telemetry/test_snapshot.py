"""What a snapshot's parts say of themselves."""

from __future__ import annotations

import pytest

from workbench.telemetry.snapshot import EventItem


@pytest.mark.parametrize(
    ("group", "generation", "expected"),
    [("S/1", 2, True), ("S/2", 2, False), ("S/1", 1, False), ("S/1", 3, False)],
)
def test_an_event_is_of_its_group_in_its_generation(group: str, generation: int, expected: bool) -> None:
    event = EventItem("k", "lifecycle", "step_failed", "", 0, "error", 0, "", 7, "", 2, "S/1")
    assert event.is_of(group, generation) is expected


def test_an_event_that_names_no_group_is_of_every_group_in_its_generation() -> None:
    event = EventItem("k", "alert", "replica_lost", "", 0, "error", 0, "", 7, "", 2)
    assert event.is_of("S/1", 2)
    assert event.is_of("S/2", 2)
    assert not event.is_of("S/1", 3)
