"""What a feed was told of groups: what is news."""

from __future__ import annotations

from workbench.telemetry.feed.told_of_groups import ToldOfGroups
from workbench.telemetry.told import SentSteps


def test_cores_used_that_hardly_change_do_not_change_what_is_said() -> None:
    told = ToldOfGroups()
    told.set_cores("g", 2)
    assert told.set_cores_used("g", 0.23)
    assert told.of("g").contested_cores == 0
    for used in (0.26, 0.24, 0.27, 0.22):  # about the limit
        assert not told.set_cores_used("g", used)
        assert told.of("g").contested_cores == 0
    assert told.set_cores_used("g", 0.4)
    assert told.of("g").contested_cores == 2
    assert told.set_cores_used("g", None)
    assert told.of("g").cores_used is None


def test_a_step_that_was_sent_is_news_once() -> None:
    told = ToldOfGroups()
    told.set_cores("g", 2)
    assert told.set_sent("g", SentSteps((0,), (10,)))
    assert not told.set_sent("g", SentSteps((0,), (10,)))
    assert told.set_sent("g", SentSteps((0, 1), (10, 20)))
    assert told.of("g").sent == SentSteps((0, 1), (10, 20))
    assert told.of("g").cores == 2
