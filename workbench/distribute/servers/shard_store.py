"""ShardStore: the arrays of one server, and their updates."""

from __future__ import annotations

import contextlib
import heapq
import statistics
import threading
from collections import deque
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from workbench.distribute.servers.applied import Applied
from workbench.distribute.servers.finite_updates import require_finite
from workbench.distribute.servers.function_optimizer import Steps
from workbench.distribute.servers.held import Held, change
from workbench.distribute.servers.recent_rate import RecentRate
from workbench.distribute.servers.update_rules import slots_of
from workbench.errors import FailedPreconditionError, InvalidArgumentError
from workbench.runtime.services.frames import Array, Fields

_WRITES: Final = frozenset(("create", "update", "drop", "restore"))
_REMEMBERED: Final = 64


class ShardStore:
    """Answers reads and applies updates, each update once.

    Attributes:
      held: Key -> held variable.
      applied: The applied updates.
      record: See `__init__`.
      counts: Numbers of reads, updates, repeated updates and stale steps; a server that replaces this one continues
        them.
    """

    def __init__(
        self,
        record: Callable[[Fields, list[Array]], None] = lambda fields, arrays: None,
        name: str = "a parameter server",
    ) -> None:
        """An empty store.

        Args:
          name: The name of the server, for messages.
          record: Called with each change before it is made; an exception refuses the change.
        """
        self.held: dict[str, Held] = {}
        self.applied = Applied()
        self.counts = {"reads": 0, "updates": 0, "repeated": 0, "stale": 0}
        self.record = record
        self._name = name
        self._steps = Steps()
        self._rate = RecentRate()
        self._ages: deque[int] = deque(maxlen=_REMEMBERED)
        self._lock = threading.Lock()

    def answer(self, fields: Fields, arrays: list[Array]) -> tuple[Fields, list[Array]]:
        """The reply to one request.

        Raises:
          FailedPreconditionError: for a variable that is not here.
          InvalidArgumentError: for an unknown request.
        """
        with self._lock:
            match fields["method"]:
                case "read":
                    held = self._of(fields)
                    self.counts["reads"] += 1
                    return {"version": held.version}, [held.array.copy()]
                case "gather":
                    held = self._of(fields)
                    self.counts["reads"] += 1
                    return {"version": held.version}, [held.array.take(arrays[0], axis=0)]
                case "slots":
                    held = self._of(fields)
                    kept = slots_of(dict(held.slots), fields["slots"], held.array)
                    return {"steps": held.steps}, [slot.copy() for slot in kept]
                case "describe":
                    return self._described(fields.get("most")), []
                case method if method in _WRITES:
                    return self._write(fields, arrays), []
        raise InvalidArgumentError(f"a parameter server has no method {fields['method']!r}")

    def replay(self, fields: Fields, arrays: list[Array]) -> None:
        """Repeats a change that an earlier server recorded; a change that failed there fails again."""
        with contextlib.suppress(Exception):  # its sender got the error; later changes still count
            self._apply(fields, arrays)

    def _write(self, fields: Fields, arrays: list[Array]) -> Fields:
        if "stream" in fields and self.applied.knows(fields):
            self.counts["repeated"] += 1
            return {"applied": False, "repeated": True}
        if fields["method"] == "update":
            held = self._of(fields)
            age = held.version - fields.get("read", held.version)
            if age > fields.get("max_staleness", age):
                self.counts["stale"] += 1
                return {"applied": False, "staleness": age}
            if fields["how"] == "function":
                fields, arrays = self._called(held, fields, arrays)
            if place := fields.get("checked"):
                require_finite(held, fields, arrays, f"on {self._name}", place)
        self.record(fields, arrays)
        self._apply(fields, arrays)
        if fields["method"] == "update":
            self._rate.add()
            if "read" in fields:
                self._ages.append(age)
        return {"applied": True}

    def _called(self, held: Held, fields: Fields, arrays: list[Array]) -> tuple[Fields, list[Array]]:
        """Makes the change of a user's function. The journal stores its results, so a replay does not call it."""
        pickled, gradient, *rows = arrays
        kept = dict(
            zip(fields["slots"], slots_of(dict(held.slots), fields["slots"], held.array), strict=True)
        )
        where: Any = rows[0] if rows else ...
        name = fields["key"].rpartition("@")[0]
        values, slots = self._steps.call(
            pickled.tobytes(),
            fields["name"],
            f"{self._name}, variable '{name}:0', update {held.version + 1},",
            held.array[where],
            gradient,
            {slot: array[where].copy() for slot, array in kept.items()},
            held.steps + 1,
        )
        return {**fields, "how": "set"}, [values, *slots.values(), *rows]

    def _apply(self, fields: Fields, arrays: list[Array]) -> None:
        if "stream" in fields:
            self.applied.add(fields)
        match fields["method"]:
            case "create":
                self.held[fields["key"]] = Held(np.array(arrays[0]))
            case "restore":
                self._restore(fields, arrays)
            case "drop":
                for key in fields["keys"]:
                    self.held.pop(key, None)
            case "update":
                held = self._of(fields)
                change(held, fields, arrays)
                held.version += 1
                self.counts["updates"] += 1

    def _of(self, fields: Fields) -> Held:
        held = self.held.get(fields["key"])
        if held is None:
            name = fields["key"].rpartition("@")[0]
            raise FailedPreconditionError(
                f"the parameter server does not hold the variable '{name}:0': its notebook object was deleted, or its "
                f"strategy was closed; create it again"
            )
        return held

    def _described(self, most: int | None) -> Fields:
        """Descriptions of the variables here, the largest first, up to a limit."""
        count = len(self.held) if most is None else most
        largest = heapq.nlargest(count, self.held.items(), key=lambda each: each[1].array.nbytes)
        return {
            "variables": [
                [
                    key,
                    held.array.dtype.name,
                    held.array.shape,
                    held.array.nbytes,
                    sum(slot.nbytes for slot in held.slots.values()),
                    held.version,
                ]
                for key, held in largest
            ],
            "hidden": len(self.held) - len(largest),
            "nbytes": self.nbytes,
            "counts": self.counts,
            "updates_per_second": self._rate.per_second,
            "staleness": [self._ages[-1], round(statistics.median(self._ages))]
            if self._ages
            else [None, None],
        }

    # -- the whole content, for a new journal
    # ----------------------------------------------------------------------------------------

    def contents(self) -> list[tuple[Fields, list[Array]]]:
        """Changes that turn an empty store into this one; called while a change is recorded."""
        changes: list[tuple[Fields, list[Array]]] = [
            (
                {
                    "method": "restore",
                    "key": key,
                    "version": held.version,
                    "steps": held.steps,
                    "slots": list(held.slots),
                },
                [held.array, *held.slots.values()],
            )
            for key, held in self.held.items()
        ]
        return [
            *changes,
            ({"method": "restore", "applied": self.applied.contents(), "counts": self.counts}, []),
        ]

    def _restore(self, fields: Fields, arrays: list[Array]) -> None:
        if "applied" in fields:
            self.applied = Applied.of(fields["applied"])
            self.counts |= fields["counts"]
            return
        array, *slots = map(np.array, arrays)
        named = dict(zip(fields["slots"], slots, strict=True))
        self.held[fields["key"]] = Held(array, fields["version"], named, fields["steps"])

    @property
    def nbytes(self) -> int:
        """Memory of all arrays."""
        return sum(
            array.nbytes for held in self.held.values() for array in (held.array, *held.slots.values())
        )
