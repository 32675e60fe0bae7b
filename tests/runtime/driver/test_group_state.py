"""The states of a group, over every sequence of changes up to a length, without processes."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from workbench.runtime.driver.group_state import TRANSITIONS, Change, GroupState, Phase

LENGTH = 6
CLOSED = Change.CLOSED
SPOILING = {Change.FAILED, Change.LOST, Change.INTERRUPTED, Change.OUTDATED, Change.LATE}


def sequences() -> list[tuple[list[Change], list[Phase]]]:
    """All that can happen to a new group in so many changes, with the phases before, between and after them."""
    found: list[tuple[list[Change], list[Phase]]] = [([], [Phase.STALE])]
    done = []
    for _ in range(LENGTH):
        found = [
            ([*changes, change], [*phases, after])
            for changes, phases in found
            for change, after in TRANSITIONS[phases[-1]].items()
            if change is not CLOSED or phases[-1] is not Phase.CLOSED
        ]
        done += [one for one in found if one[1][-1] is Phase.CLOSED]
        found = [one for one in found if one[1][-1] is not Phase.CLOSED]
    return found + done


@pytest.fixture(scope="module")
def every() -> list[tuple[list[Change], list[Phase]]]:
    return sequences()


def test_there_are_many_sequences_and_all_phases_in_them(
    every: list[tuple[list[Change], list[Phase]]],
) -> None:
    assert len(every) > 10_000
    assert {phase for _, phases in every for phase in phases} == set(Phase)


def test_a_state_goes_through_the_phases_of_the_table(every: list[tuple[list[Change], list[Phase]]]) -> None:
    for changes, phases in every[::97]:
        state = GroupState()
        seen = [state.phase]
        for change in changes:
            state.after(change)
            seen.append(state.phase)
        assert seen == phases


def test_only_a_new_connection_makes_a_group_ready(every: list[tuple[list[Change], list[Phase]]]) -> None:
    for changes, phases in every:
        for change, (before, after) in zip(changes, itertools.pairwise(phases), strict=True):
            if after is Phase.READY and before is not Phase.READY:
                assert change is Change.CONNECTED


def test_nothing_that_goes_wrong_leaves_a_group_ready(every: list[tuple[list[Change], list[Phase]]]) -> None:
    for changes, phases in every:
        for change, after in zip(changes, phases[1:], strict=True):
            assert not (change in SPOILING and after is Phase.READY)


def test_nothing_is_connected_under_replicas_that_may_still_run(
    every: list[tuple[list[Change], list[Phase]]],
) -> None:
    for changes, phases in every:
        late = False
        for change, before in zip(changes, phases, strict=False):
            assert not (change is Change.CONNECTED and late)
            late = (late or change is Change.LATE) and change is not Change.SETTLED
            if before is Phase.CLOSED:
                break


def test_waits_are_given_up_only_for_replicas_that_are_late(
    every: list[tuple[list[Change], list[Phase]]],
) -> None:
    for changes, phases in every:
        for change, before in zip(changes, phases, strict=False):
            assert change is not Change.GAVE_UP or before in (Phase.OVERDUE, Phase.GIVEN_UP)


@pytest.mark.parametrize(
    "change", sorted(set(Change) - {Change.CONNECTED}, key=str), ids=lambda change: change.value
)
def test_a_closed_group_stays_closed(change: Change) -> None:
    state = GroupState()
    state.after(CLOSED)
    state.after(change)
    assert state.phase is Phase.CLOSED


def test_every_change_can_happen_and_closing_always_can() -> None:
    assert set().union(*TRANSITIONS.values()) == set(Change)
    assert all(CLOSED in changes for changes in TRANSITIONS.values())
    assert set(TRANSITIONS) == set(Phase)


def test_a_group_that_is_ready_is_not_connected_again() -> None:
    state = GroupState()
    state.after(Change.CONNECTED)
    with pytest.raises(KeyError):
        state.after(Change.CONNECTED)


class Counts(RuleBasedStateMachine):
    """Steps are sent, end and are committed in their order, while the group is connected again and again."""

    def __init__(self) -> None:
        super().__init__()
        self.state = GroupState()
        self.serials = itertools.count(1)
        self.sent: list[tuple[int, int]] = []
        self.succeeded: list[tuple[int, int]] = []
        self.connections = 0

    @rule(users=st.booleans())
    def send(self, users: bool) -> None:
        number = self.state.number if users else -1
        self.state.number += users
        self.sent.append((next(self.serials), number))
        self.state.sent()

    @precondition(lambda self: self.sent)
    @rule(succeeds=st.booleans())
    def end(self, succeeds: bool) -> None:
        step = self.sent.pop(0)
        self.state.ended()
        if succeeds:
            self.succeeded.append(step)
            self.state.commit(*step)

    @rule()
    def connect(self) -> None:
        self.state.begin_to_connect()
        self.connections += 1

    @invariant()
    def counts_agree(self) -> None:
        state = self.state
        assert state.in_flight == len(self.sent)
        assert state.committed == (self.succeeded[-1][0] if self.succeeded else 0)
        assert (
            state.committed_step
            == max((number for _, number in self.succeeded), default=-1)
            < max(state.number, 1)
        )
        assert (state.epoch, state.generation) == (self.connections, max(0, self.connections - 1))


TestCounts = Counts.TestCase
