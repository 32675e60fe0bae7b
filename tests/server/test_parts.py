"""The pieces between a job and a page: frames, rates, the server's copy of a feed, a client's session."""

from __future__ import annotations

import asyncio
import json
import socket
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.telemetry.reading import drained
from tests.telemetry.simulation import MS, Call, Replicas
from workbench.server import frames
from workbench.server.channels import CHANNEL_OF, CHANNELS, FEED
from workbench.server.mirror import Mirror
from workbench.server.rates import Bucket
from workbench.server.session import MAX_WATCHED, Session
from workbench.server.watched_runs import WatchedRuns
from workbench.telemetry.delta import merge
from workbench.telemetry.feed.feed import Feed
from workbench.telemetry.snapshot import Snapshot
from workbench.ui.models.messages import MODELS
from workbench.ui.runs.recorded_runs import Folder, RecordedRuns

ID = "0badcafe"


# -- frames


def test_requests_are_cut_at_their_lengths_however_they_arrive() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        requests = frames.Requests(ours)
        data = frames.encode({"a": 1}) + frames.encode({"b": "é"})
        seen = []
        for byte in data:
            theirs.sendall(bytes([byte]))
            seen += requests.receive()

        assert seen == [{"a": 1}, {"b": "é"}]


@pytest.mark.parametrize(
    "data",
    [b"\xff\xff\xff\xff", b"\x02\x00\x00\x00[]", b"\x04\x00\x00\x00\x80\x04N.", b"\x01\x00\x00\x00x"],
    ids=["long", "list", "pickle", "text"],
)
def test_what_is_no_request_is_refused(data: bytes) -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        theirs.sendall(data)
        with pytest.raises(ValueError):
            frames.Requests(ours).receive()


def test_a_message_that_is_too_long_is_refused_before_it_is_read() -> None:
    async def read() -> None:
        reader = asyncio.StreamReader()
        reader.feed_data((frames.MAX_ANSWER_BYTES + 1).to_bytes(4, "little"))
        await asyncio.wait_for(frames.read(reader), 10)

    with pytest.raises(ValueError, match="more than"):
        asyncio.run(read())


# -- rates


def test_a_bucket_gives_its_burst_and_then_its_rate() -> None:
    now = [0.0]
    bucket = Bucket(2.0, 3, now_seconds=lambda: now[0])

    assert [bucket.take() for _ in range(4)] == [True, True, True, False]
    now[0] = 0.5
    assert [bucket.take() for _ in range(2)] == [True, False]
    now[0] = 1000.0
    assert [bucket.take() for _ in range(4)] == [True, True, True, False]


# -- the server's copy of a feed


def as_json(value: Any) -> Any:
    return json.loads(json.dumps(value))


def a_feed(steps: int) -> tuple[Feed, Replicas]:
    replicas = Replicas(["a", "b"])
    return Feed(now_ns=lambda: steps * 10 * MS), replicas


@given(st.lists(st.sampled_from(["record", "job", "fast", "slow"]), max_size=30))
def test_every_client_comes_to_the_jobs_snapshot_whenever_it_is_served(actions: list[str]) -> None:
    feed, replicas = a_feed(len(actions))
    mirror, sent = Mirror(), 0
    clients = {name: as_json(Snapshot().as_dict()) for name in ("fast", "slow")}

    def serve(name: str) -> None:
        change = as_json(mirror.change(clients[name]["version"]))
        clients[name] = as_json(merge(clients[name], change))

    def tell() -> None:
        nonlocal sent
        change = as_json({"since": sent} | feed.delta(sent))
        mirror.take(change)
        sent = change["version"]

    for step, action in enumerate(actions):
        if action == "record":
            begin = step * 10 * MS
            replicas.record(Call([begin, begin + MS], begin + 3 * MS, step=step))
            for ring in replicas.rings:
                feed.ingest(drained(ring))
        elif action == "job":
            tell()
        else:
            serve(action)
    tell()
    for name in clients:
        serve(name)

    whole = as_json(feed.snapshot().as_dict())
    assert as_json(mirror.state) == whole
    assert clients == {"fast": whole, "slow": whole}


# -- a client's session


class FakeLink:
    """As much of a link to a job as a session sees."""

    def __init__(self) -> None:
        self.mirror = Mirror()
        self.feed_frame = {"status": "live"}
        self.models: dict[str, dict[str, Any]] = {}
        self.versions: dict[str, int] = {}

    def tell(self, channel: str, model: dict[str, Any]) -> None:
        self.models[channel] = model
        self.versions[channel] = self.versions.get(channel, 0) + 1

    def news(self, channel: str, seen: int) -> tuple[str, dict[str, Any]]:
        return "model", self.models[channel]


@pytest.fixture
def link() -> FakeLink:
    return FakeLink()


@pytest.fixture
def session(link: FakeLink) -> Session:
    clusters: Any = SimpleNamespace(links={ID: link}, describe=list, update_wanted=lambda: None)
    return Session(clusters, WatchedRuns(RecordedRuns(Folder(Path()))))


def watch(session: Session, *pairs: tuple[str, str]) -> None:
    session.take(json.dumps({"watch": pairs}))


def models(session: Session) -> list[dict[str, Any]]:
    return [message for text in session.due() if (message := json.loads(text))["type"] == "model"]


def test_only_what_is_open_is_sent_and_only_once(session: Session, link: FakeLink) -> None:
    link.tell("topology", {"n": 1})
    link.tell("devices", {"n": 2})
    assert models(session) == []

    watch(session, (ID, "topology"))
    assert [message["model"] for message in models(session)] == [{"n": 1}]
    assert models(session) == []


def test_a_slow_client_gets_the_newest_state(session: Session, link: FakeLink) -> None:
    watch(session, (ID, "topology"))
    link.tell("topology", {"n": 0})
    assert len(models(session)) == 1
    for n in range(1, 11):
        link.tell("topology", {"n": n})

    (message,) = models(session)
    assert message["model"] == {"n": 10}


def test_a_view_that_is_opened_again_gets_its_state_again(session: Session, link: FakeLink) -> None:
    link.tell("topology", {"n": 0})
    watch(session, (ID, "topology"))
    assert len(models(session)) == 1
    watch(session)
    watch(session, (ID, "topology"))
    assert len(models(session)) == 1


def test_a_job_that_was_connected_again_is_told_of_from_the_beginning(
    session: Session, link: FakeLink
) -> None:
    watch(session, (ID, FEED))
    link.versions[FEED] = 3
    link.mirror.state["version"] = 7
    assert [m["change"]["since"] for m in map(json.loads, session.due()) if m["type"] == "feed"] == [0]

    again = FakeLink()
    again.versions[FEED] = 3
    session._clusters.links[ID] = again  # type: ignore[assignment]
    assert [m["change"]["since"] for m in map(json.loads, session.due()) if m["type"] == "feed"] == [0]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        '{"watch": 1}',
        '{"watch": [["0badcafe", "topology", 1]]}',
        '{"watch": [["../../etc", "topology"]]}',
        '{"watch": [["127.0.0.1:22", "topology"]]}',
        '{"watch": [["0badcafe", "__class__"]]}',
        '{"watch": [["0badcafe", "runs"]]}',
        '{"watch": [["", "topology"]]}',
        '{"watch": [], "host": "evil.com"}',
        json.dumps({"watch": [[ID, "topology"]] * (MAX_WATCHED + 1)}),
    ],
)
def test_anything_but_a_list_of_ids_and_channels_is_refused(session: Session, text: str) -> None:
    with pytest.raises(ValueError):
        session.take(text)
    assert session.wanted() == {}


# -- views


def test_every_view_has_a_channel() -> None:
    assert set(CHANNEL_OF) == set(MODELS) - {"runs", "replay"}
    assert set(CHANNEL_OF.values()) == CHANNELS
