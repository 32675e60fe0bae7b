"""When steps were sent to replicas, which tells pauses of the notebook from steps that compute for long."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import pytest

from tests.until import until
from workbench.runtime.cluster import Cluster
from workbench.runtime.driver.group import Group
from workbench.telemetry.feed.step_window import STEPS


@dataclass
class Notebook:
    """IPython's shell, as far as cells have numbers."""

    execution_count: int = 1


@pytest.fixture
def notebook(monkeypatch: pytest.MonkeyPatch) -> Notebook:
    import IPython

    shell = Notebook()
    monkeypatch.setattr(IPython, "get_ipython", lambda: shell)
    return shell


def test_each_step_of_the_user_is_sent_between_its_call_and_its_end(group: Group) -> None:
    assert group.sent_steps() is None
    step = group.prepare(_meet, user_function=_meet)
    times = [time.monotonic_ns()]
    for _ in range(3):
        group.run(step)
        times.append(time.monotonic_ns())

    sent = group.sent_steps()
    assert sent is not None
    assert sent.steps == (0, 1, 2)
    assert all(called < at < ended for called, at, ended in zip(times, sent.at_ns, times[1:], strict=False))


def test_the_time_between_two_cells_is_a_pause(group: Group, notebook: Notebook) -> None:
    step = group.prepare(_meet, user_function=_meet)
    group.run(step)
    ended_ns = time.monotonic_ns()
    time.sleep(0.1)
    group.run(step)  # in the same cell, whose loop did something else
    notebook.execution_count += 1
    group.run(group.prepare(lambda env: None))  # which is not a user step
    time.sleep(0.2)
    group.run(step)

    sent = group.sent_steps()
    assert sent is not None
    assert sent.paused_ns[0] == sent.paused_ns[1] == 0
    assert 0.2e9 <= sent.paused_ns[2] < sent.at_ns[2] - ended_ns - 0.1e9


def test_no_pause_is_told_of_while_a_step_of_a_former_cell_may_be_under_way(
    group: Group, notebook: Notebook
) -> None:
    step = group.prepare(_meet, user_function=_meet)
    group.run(step)
    group.run(step, pipelined=True)
    time.sleep(0.1)  # when the step ended within it is unknown
    for _ in range(2):
        notebook.execution_count += 1
        group.run(step)

    sent = group.sent_steps()
    assert sent is not None
    assert sent.paused_ns[:3] == (0, 0, 0)
    assert sent.paused_ns[3] > 0


def test_work_of_the_library_is_no_step(group: Group) -> None:
    group.run(group.prepare(lambda env: None))
    assert group.sent_steps() is None


def test_no_more_is_known_than_views_draw(group: Group) -> None:
    step = group.prepare(_nothing, user_function=_nothing)
    for _ in range(STEPS + 2):
        group.run(step)
    sent = group.sent_steps()
    assert sent is not None
    assert sent.steps == tuple(range(2, STEPS + 2))


def test_the_feed_is_told_and_a_step_lies_before_its_collectives(cluster: Cluster, group: Group) -> None:
    step = group.prepare(_meet, user_function=_meet)
    for _ in range(2):
        group.run(step)
    cluster.flush_telemetry()

    until(lambda: len(_items(cluster)) == 2, "the records of two steps")
    told = cluster.feed.told(group.name).sent
    assert told == group.sent_steps()
    assert told is not None
    first, second = _items(cluster)
    assert told.at_ns[0] < min(first.enter_ns) <= first.last_end_ns < told.at_ns[1] < min(second.enter_ns)


def _nothing(env: Any) -> None:
    pass


def _meet(env: Any) -> None:
    env.communicator.barrier()


def _items(cluster: Cluster) -> Any:
    groups = cluster.feed.snapshot().groups
    return groups[0].items if groups else ()
