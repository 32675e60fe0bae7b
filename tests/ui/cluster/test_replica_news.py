"""What stands out about replicas, and how busy they are, as a feed tells it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.telemetry.simulation import MS, Replicas, steps
from workbench.telemetry.feed.feed import Feed
from workbench.ui.cluster.replica_news import replica_news

LATE = 3


def fed(size: int, *, bad: int | None = None) -> Feed:
    """Of 30 steps in which one replica came half a step late; replica `bad` gave NaN in the last ones."""
    replicas = Replicas(["a"] * size)
    late = [MS // 2 if replica == LATE else 0 for replica in range(size)]
    for call in steps(30, late):
        for at, ring in enumerate(replicas.rings):
            inputs = "not finite" if at == bad and call.step >= 20 else "finite"
            one = Replicas([""], size=size, rings=[])
            one.rings = [ring]
            one.record(replace(call, enter_ns=[call.enter_ns[at]], inputs=inputs))
    feed = Feed()
    for data in replicas.drain():
        feed.ingest(data)
    return feed


@pytest.mark.parametrize("size", [4, 40])  # including more than have lanes
def test_each_replica_has_a_busy_share_and_the_late_one_is_named(size: int) -> None:
    news = replica_news(fed(size), "run")["g", 0]

    assert news.of(LATE) == "late"
    assert [replica for replica in range(size) if news.of(replica)] == [LATE]
    assert set(news.busy_shares) == set(range(size))
    assert news.busy_shares[LATE] == pytest.approx(1.0, abs=0.02)
    assert news.busy_shares[0] == pytest.approx(0.5, abs=0.02)


def test_the_replica_that_gives_nan_is_named() -> None:
    news = replica_news(fed(4, bad=1), "run")["g", 0]

    assert [news.of(replica) for replica in range(4)] == ["", "not finite", "", "late"]


def test_of_another_run_nothing_is_known() -> None:
    feed = fed(4)

    assert list(replica_news(feed, "run")) == [("g", 0)]
    assert replica_news(feed, "another") == {}
