"""The server's connection to one announced cluster, shared by all clients."""

from __future__ import annotations

import asyncio
import logging
import os
import socket
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final

from workbench.errors import FailedPreconditionError, UnavailableError
from workbench.runtime.comm.unix_listener import peer_uid
from workbench.runtime.deploy.registry import Entry
from workbench.server import frames
from workbench.server.channels import CHANNELS, FEED
from workbench.server.mirror import Mirror

_CONNECT_SECONDS: Final = 5.0
_RETRY_SECONDS: Final = 5.0
STALE_SECONDS: Final = 5.0
"""A process that has sent no heartbeat for this long, instead of one per second, is suspended or fully occupied."""
_LIMIT_BYTES: Final = 1024 * 1024
_log = logging.getLogger("workbench")

_Shown = tuple[dict[str, Any] | None, dict[str, Any], dict[str, str]]
"""A summary, a feed's frame, and the status of each model that has one."""


class JobLink:
    """What the server knows about a cluster from its process. Used by the server's event loop only.

    Attributes:
      entry: Its entry in the registry.
      summary: See `summary.Summary`; None until it has arrived.
      mirror: Its feed.
      feed_frame: What belongs to the feed besides its snapshot.
      models: The newest model of each other channel.
      versions: How often each channel has changed.
      ended: Whether the process closed the cluster, or is gone; the data stays.
      retry_at: When to connect again if the process is still alive, by the event loop's clock.
    """

    def __init__(self, entry: Entry, changed: Callable[[], None]) -> None:
        """Connects; `changed` is called whenever there is something new."""
        self.entry = entry
        self.summary: dict[str, Any] | None = None
        self.mirror = Mirror()
        self.feed_frame: dict[str, Any] = {}
        self.models: dict[str, dict[str, Any]] = {}
        self.versions: dict[str, int] = {}
        self.ended = False
        self.retry_at = 0.0
        self._changed = changed
        # For each channel, the version in which its whole model arrived, and everything replaced in it since.
        self._parts: dict[str, tuple[int, dict[str, Any]]] = {}
        self._wanted: frozenset[str] = frozenset()
        self._writer: asyncio.StreamWriter | None = None
        self._calls: dict[int, tuple[str, asyncio.Future[str]]] = {}
        self._call = 0
        self._silence: asyncio.TimerHandle | None = None
        self._before_silence: _Shown | None = None
        self._task = asyncio.ensure_future(self._run())

    def watch(self, channels: frozenset[str]) -> None:
        """Requests only these channels from the process."""
        if channels != self._wanted:
            self._wanted = channels
            self._send({"watch": sorted(channels)})

    def news(self, channel: str, seen: int) -> tuple[str, dict[str, Any]]:
        """What a client with version `seen` of a channel's model needs, 0 for none.

        Returns:
          "part" and the replaced parts of the model, some of which the client may have; or "model" and the whole.
        """
        whole, part = self._parts[channel]
        return ("part", part) if seen >= whole else ("model", self.models[channel])

    async def ask(self, action: str, timeout_seconds: float, **arguments: int) -> None:
        """Requests an action from the process.

        Raises:
          UnavailableError: if it does not answer in time.
          FailedPreconditionError: if it refuses; the message says why.
        """
        if self.ended or self._writer is None:
            raise UnavailableError(f"the process of cluster {self.entry.id} is not there any more")
        self._call += 1
        call = self._call
        answer: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._calls[call] = action, answer
        self._send({"do": action, "call": call, **arguments})
        try:
            problem = await asyncio.wait_for(answer, timeout_seconds)
        except TimeoutError as error:
            raise UnavailableError(
                f"the process of cluster {self.entry.id} did not answer within {timeout_seconds:.0f} s"
            ) from error
        finally:
            self._calls.pop(call, None)
        if problem:
            raise FailedPreconditionError(problem)

    async def close(self) -> None:
        """Ends the connection; the cluster continues."""
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)

    def _send(self, message: dict[str, Any]) -> None:
        if self._writer is not None and not self.ended:
            self._writer.write(frames.encode(message))

    async def _run(self) -> None:
        try:
            reader, writer = await asyncio.wait_for(
                asyncio.open_unix_connection(self.entry.socket, limit=_LIMIT_BYTES), _CONNECT_SECONDS
            )
            self._writer = writer
            own: socket.socket = writer.get_extra_info("socket")
            if peer_uid(own) != os.getuid():
                raise PermissionError(f"{self.entry.socket} belongs to another user")
            if self._wanted:
                self._send({"watch": sorted(self._wanted)})
            while True:
                message = await frames.read(reader)
                self._take(message)
                if "beat" not in message:
                    self._changed()
        except (OSError, EOFError, TimeoutError):
            pass  # the process has gone
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            # Another version of workbench, or another program: its messages are not understood.
            _log.warning("cluster %s is not shown any more: %r", self.entry.id, error)
        finally:
            self._end()

    def _take(self, message: dict[str, Any]) -> None:
        if self._before_silence is not None:
            self._show(*self._before_silence)
            self._before_silence = None
        if self._silence is not None:
            self._silence.cancel()
        # Only after the first heartbeat: processes that hold workers send only what is new.
        if self._silence is not None or "beat" in message:
            self._silence = asyncio.get_running_loop().call_later(STALE_SECONDS, self._fall_silent)
        match message:
            case {"summary": dict(summary)}:
                self.summary = summary
                self._count("")
            case {"view": str(channel), "frame": dict(frame), "change": dict(change)} if channel == FEED:
                self.mirror.take(change)
                self.feed_frame = frame
                self._count(FEED)
            case {"view": str(channel), "model": dict(model)} if channel in CHANNELS:
                self._replace(channel, model)
            case {"view": str(channel), "part": dict(part)} if channel in self.models:
                whole, before = self._parts[channel]
                self.models[channel] = self.models[channel] | part
                self._parts[channel] = whole, before | part
                self._count(channel)
            case {"call": int(call), "problem": str(problem)}:
                _, answer = self._calls.get(call, ("", None))
                if answer is not None and not answer.done():
                    answer.set_result(problem)

    def _fall_silent(self) -> None:
        """Called when a process has stopped sending: its views may be out of date."""
        statuses = {channel: model["status"] for channel, model in self.models.items() if "status" in model}
        self._before_silence = self.summary, self.feed_frame, statuses
        stale = {"status": "stale"}
        summary = None if self.summary is None else self.summary | stale
        frame = self.feed_frame | stale if self.feed_frame else {}
        self._show(summary, frame, dict.fromkeys(statuses, "stale"))

    def _show(self, summary: dict[str, Any] | None, frame: dict[str, Any], statuses: dict[str, str]) -> None:
        self.summary = summary
        self.feed_frame = frame
        if frame:
            self._count(FEED)
        for channel, status in statuses.items():
            self._replace(channel, self.models[channel] | {"status": status})
        self._changed()

    def _replace(self, channel: str, model: dict[str, Any]) -> None:
        self.models[channel] = model
        self._count(channel)
        self._parts[channel] = self.versions[channel], {}

    def _count(self, channel: str) -> None:
        self.versions[channel] = self.versions.get(channel, 0) + 1

    def _end(self) -> None:
        self.ended = True
        if self._silence is not None:
            self._silence.cancel()
        self.retry_at = asyncio.get_running_loop().time() + _RETRY_SECONDS
        if self._writer is not None:
            self._writer.close()
        if self.summary is not None:
            strategies = [one | {"status": "stopped"} for one in self.summary["strategies"]]
            # A new number, which sessions compare with the one that they last sent.
            end = {"status": "stopped", "replicas_live": 0, "strategies": strategies}
            self.summary = {**self.summary, **end}
        if self.feed_frame:
            self.feed_frame = self.feed_frame | {"status": "stopped"}
            self._count(FEED)
        for channel, model in list(self.models.items()):
            if "status" in model:
                with suppress(KeyError, TypeError, AttributeError):  # from another version of workbench
                    self._replace(channel, _stopped(model))
        for action, answer in self._calls.values():
            if not answer.done():  # a process that was asked to close closes its socket
                answer.set_result("" if action.startswith("close") else "its process has ended")
        self._changed()


def _stopped(model: dict[str, Any]) -> dict[str, Any]:
    """The model of a topology, or of devices, after its cluster has ended, so that the last state no longer applies."""
    over = {"status": "stopped"}
    parts: dict[str, list[Any]] = {
        part: [each | over for each in model[part]] for part in ("strategies",) if part in model
    }
    if "devices" in model:
        nothing = {"use_percent": None, "memory_bytes": None}
        parts["devices"] = [device | over | nothing for device in model["devices"]]
    if "hosts" in model:
        parts["hosts"] = [
            host | {"workers": list(map(_stopped_worker, host["workers"]))} for host in model["hosts"]
        ]
    return model | over | parts


def _stopped_worker(worker: dict[str, Any]) -> dict[str, Any]:
    over = {"busy": False, "doing": "stopped"}
    devices = [
        device | {"replicas": [each | over for each in device["replicas"]]} for device in worker["devices"]
    ]
    return worker | {"status": "stopped", "detail": "", "memory_bytes": None, "devices": devices}
