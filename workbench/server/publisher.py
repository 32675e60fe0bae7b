"""What a job sends to one Jupyter server: always a summary, and the views that are open."""

from __future__ import annotations

import select
import socket
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any, Final

from workbench import forks
from workbench.runtime import Cluster
from workbench.server.channels import CHANNELS, FEED
from workbench.server.frames import Requests, encode
from workbench.server.summary import summarise
from workbench.telemetry.verdicts import Hold, verdicts
from workbench.ui.cluster.cluster_model import DeviceHistory, topology_model
from workbench.ui.models.collectives_model import collectives_frame
from workbench.ui.render.plain_values import plain
from workbench.ui.widgets.sources import Source

ASKING: Final = frozenset({"devices"})
"""Channels whose model needs a query to Dask's scheduler."""
_REST_SECONDS: Final = 0.2  # each update costs the job and the server some milliseconds of CPU
_LOOK_SECONDS: Final = 1.0
_SEND_SECONDS: Final = 10.0
# How long closing waits for the server to receive the last state: a hanging server must not delay a notebook.
_FAREWELL_SECONDS: Final = 1.0


class Publisher:
    """One connection. Its thread sends at most five times a second, and sleeps while nothing happens.

    A slow server gets fewer and larger changes: each is computed after the last one was received.
    """

    def __init__(
        self, cluster: Cluster, sock: socket.socket, published: Mapping[str, Callable[[], Source]]
    ) -> None:
        """Starts serving.

        Args:
          cluster: The cluster to show.
          sock: The socket, owned from now on.
          published: For each channel of results that only the user's code can show: creates a source for the last one
            shown.
        """
        self._cluster = cluster
        self._sock = forks.descriptor(sock)
        self._published = published
        self._requests = Requests(sock)
        self._looks = looks(cluster)
        # Not a pipe: a socket that was closed in the meantime raises, while a descriptor could already belong to
        # another file.
        self._bell, self._ear = map(forks.descriptor, socket.socketpair())
        self._bell.setblocking(False)
        self._wanted: frozenset[str] = frozenset()
        # The server's version of each channel; for the feed, its version.
        self._sent: dict[str, Any] = {}
        # For each channel, what was published, and the source created from it, whose newest state the server has.
        self._sources: dict[str, tuple[Callable[[], Source], Source]] = {}
        self._look_at = 0.0
        self._beat_at = 0.0
        self._members: object = None  # the topology's members that the server has
        self._ending = False
        self._hold = Hold()
        sock.settimeout(_SEND_SECONDS)
        self._thread = threading.Thread(target=self._serve, name="workbench-publisher", daemon=True)
        self._thread.start()

    def wake(self) -> None:
        """Notes that something may have changed. Any thread."""
        try:
            self._bell.send(b"x")
        except OSError:
            pass  # full means already awake; closed means that there is no listener

    def finish(self) -> None:
        """Sends the last state and ends the connection. Call before the cluster closes."""
        self._ending = True
        self.wake()
        if self._thread is not threading.current_thread():
            self._thread.join(_FAREWELL_SECONDS)

    @property
    def ended(self) -> bool:
        """Whether the connection is over."""
        return not self._thread.is_alive()

    def _serve(self) -> None:
        self._cluster.telemetry_listeners.append(self._on_telemetry)
        try:
            self._send_news()
            while not self._ending:
                self._wait()
                self._send_news()
            self._wanted = CHANNELS  # panes keep the last state that they showed, and may still open others
            self._send_news()
        except (OSError, ValueError):
            pass  # the server has gone, or the peer was not one
        finally:
            self._cluster.telemetry_listeners.remove(self._on_telemetry)
            self._sock.close()
            self._bell.close()
            self._ear.close()

    def _on_telemetry(self, batch: bytes) -> None:
        if FEED in self._wanted:  # otherwise, the summary is enough
            self.wake()

    def _wait(self) -> None:
        """Waits until there may be news, at least for the pause between two updates; answers requests while waiting."""
        begin = time.monotonic()
        while not self._ending:
            waited = time.monotonic() - begin
            resting = waited < _REST_SECONDS
            pause = self._pause_seconds()
            until = _REST_SECONDS if resting else pause
            if waited >= pause:
                return
            descriptors = [self._sock] if resting else [self._sock, self._ear]
            ready = _readable(descriptors, until - waited)
            if self._sock in ready:
                for request in self._requests.receive():
                    self._answer(request)
            if self._ear in ready:
                self._ear.recv(4096)
                return

    def _pause_seconds(self) -> float:
        """How long to wait before checking again without a notification."""
        live = (source.interval_seconds for _, source in self._sources.values() if not source.ended)
        return min([_LOOK_SECONDS, *live])

    def _answer(self, request: dict[str, Any]) -> None:
        match request:
            case {"watch": list(channels)}:
                self._wanted = CHANNELS & {str(channel) for channel in channels}
                self._look_at = 0.0
                # A client that closes a view may forget its model; next time, it gets the whole model.
                self._sent = {name: sent for name, sent in self._sent.items() if name in {*self._wanted, ""}}
                self._sources = {name: made for name, made in self._sources.items() if name in self._wanted}
                self.wake()
            case {"do": "close", "call": int(call)}:
                self._reply(call, "")
                threading.Thread(target=self._cluster.close, name="workbench-closing", daemon=True).start()
            case {"do": str(action), "call": int(call)}:
                self._reply(
                    call, f"the notebook that drives this cluster decides: it cannot {action} from here"
                )

    def _reply(self, call: int, problem: str) -> None:
        self._sock.sendall(encode({"call": call, "problem": problem}))

    def _send_news(self) -> None:
        cluster = self._cluster
        snapshot = cluster.feed.snapshot()
        verdict = self._hold.shown(verdicts(snapshot), time.monotonic_ns())
        self._send_if_new("", {"summary": summarise(cluster, snapshot, verdict).as_dict()})
        look = not self._ending and time.monotonic() >= self._look_at
        if look:
            self._look_at = time.monotonic() + _LOOK_SECONDS
        self._send_members()
        for channel in sorted(self._wanted - {FEED}):
            if channel in self._looks:
                # At the end, only what needs no query: the scheduler may hang, and closing must not wait for it.
                if look or (self._ending and channel not in ASKING):
                    self._send_if_new(channel, {"view": channel, "model": self._looks[channel]()})
            elif (make := self._published.get(channel)) is not None:
                self._send_shown(channel, make)
        # Shows a peer without other messages that this process is alive.
        if time.monotonic() >= self._beat_at:
            self._beat_at = time.monotonic() + _LOOK_SECONDS
            self._sock.sendall(encode({"beat": True}))
        if FEED in self._wanted:
            frame = collectives_frame(snapshot, status=cluster.status)
            since, old = self._sent.get(FEED, (0, None))
            if (snapshot.version, frame) != (since, old):
                change = {"since": since} | cluster.feed.delta(since)
                self._sock.sendall(encode({"view": FEED, "frame": frame, "change": change}))
                self._sent[FEED] = change["version"], frame

    def _send_members(self) -> None:
        """Sends the topology after a member came or left, even without viewers: a kernel has no time at exit."""
        gang = self._cluster.gang
        workers = list(gang.workers.values())  # a copy, because other threads replace lost ones
        members = set(gang.groups), {(worker.name, worker.pid, bool(worker.lost)) for worker in workers}
        if members != self._members:
            self._send_if_new("topology", {"view": "topology", "model": self._looks["topology"]()})
            self._members = members

    def _send_shown(self, channel: str, make: Callable[[], Source]) -> None:
        """Sends the whole model once, then its changes."""
        made, source = self._sources.get(channel, (None, None))
        if source is not None and made is make:
            message = source.change()
        else:
            source = make()
            self._sources[channel] = make, source
            message = {"kind": "model", "model": source.model()}
        if message is not None:
            self._sock.sendall(encode({"view": channel} | message))

    def _send_if_new(self, channel: str, message: dict[str, Any]) -> None:
        if self._sent.get(channel) != message:
            self._sock.sendall(encode(message))
            self._sent[channel] = message


def _readable(sockets: list[socket.socket], timeout_seconds: float) -> list[socket.socket]:
    """The sockets that are readable or closed; waits up to `seconds` for the first."""
    poll = select.poll()  # select.select does not support descriptors beyond 1,023
    by_descriptor = {sock.fileno(): sock for sock in sockets}
    for descriptor in by_descriptor:
        poll.register(descriptor, select.POLLIN)
    return [by_descriptor[descriptor] for descriptor, _ in poll.poll(timeout_seconds * 1000)]


def looks(cluster: Cluster) -> dict[str, Callable[[], dict[str, Any]]]:
    """Functions that return a channel's present model, for the channels that are always available."""
    devices = DeviceHistory(cluster)
    return {
        "topology": lambda: plain(topology_model(cluster)),
        "devices": lambda: plain(devices.model()),
    }
