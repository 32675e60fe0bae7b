"""Data of a recorded run for views that are not based on records: models, bandwidth limits, input, memory."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Final

from workbench.errors import DataCorruption
from workbench.telemetry.limits import Limit
from workbench.telemetry.runs.checksummed import opened, sealed
from workbench.telemetry.told import EpochFacts, InputFacts, MemoryFacts, ResultCourse, SentSteps, Told

LOOKS_KEY: Final = b"workbench.looks"
MAX_MODEL_BYTES: Final = 4 * 1024 * 1024
"""A larger model is left out of the file, which lists it as omitted."""


@dataclass(frozen=True, slots=True)
class Looks:
    """The newest models of a recorded run. Files of earlier versions have none.

    Attributes:
      models: What each view draws, as JSON that has not been checked yet.
      left_out: Views whose models were too large for the file.
      limits: Measured limits of bus bandwidth, by group.
      told: What was known about each group besides its records.
    """

    models: Mapping[str, str] = field(default_factory=dict)
    left_out: tuple[str, ...] = ()
    limits: Mapping[str, Limit] = field(default_factory=dict)
    told: Mapping[str, Told] = field(default_factory=dict)

    def model(self, view: str) -> Any:
        """The model of a view, or None if there is none.

        Raises:
          DataCorruption: if it is not JSON.
        """
        if view not in self.models:
            return None
        try:
            return json.loads(self.models[view])
        except (ValueError, RecursionError) as error:
            raise DataCorruption(f"the model of {view} makes no sense: {error}") from error

    def encode(self) -> bytes:
        """All of it as a checksum and JSON."""
        limits = {
            group: {"copy": dict(limit.copy), "between_hosts": limit.between_hosts}
            for group, limit in self.limits.items()
        }
        fields = {
            "models": dict(self.models),
            "left_out": self.left_out,
            "limits": limits,
            "told": {group: asdict(told) for group, told in self.told.items()},
        }
        return sealed(json.dumps(fields).encode())

    @staticmethod
    def decode(data: bytes) -> Looks:
        """The inverse of `encode`.

        Raises:
          DataCorruption: if the data is damaged.
        """
        what = "what the run has kept of its views"
        try:
            fields = json.loads(opened(data, what))
            return Looks(
                models={str(view): str(text) for view, text in fields["models"].items()},
                left_out=tuple(map(str, fields["left_out"])),
                limits={str(group): _limit(found) for group, found in fields["limits"].items()},
                told={str(group): _told(found) for group, found in _told_in(fields).items()},
            )
        except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
            raise DataCorruption(f"{what} makes no sense: {error}") from error


def _limit(fields: dict[str, Any]) -> Limit:
    between = fields["between_hosts"]
    return Limit(
        copy={int(size): float(rate) for size, rate in fields["copy"].items()},
        between_hosts=None if between is None else float(between),
    )


def _told_in(fields: dict[str, Any]) -> dict[str, Any]:
    """The facts about groups; files of earlier versions have only their cores."""
    known: dict[str, Any] = fields.get("told", {})
    return known or {group: {"cores": cores} for group, cores in fields.get("cores", {}).items()}


def _told(fields: dict[str, Any]) -> Told:
    given, memory, result = fields.get("input"), fields.get("memory"), fields.get("result")
    used, epoch, sent = fields.get("cores_used"), fields.get("epoch"), fields.get("sent")
    return Told(
        cores=int(fields["cores"]),
        input=None
        if given is None
        else InputFacts(
            waited_shares=tuple(map(float, given["waited_shares"])),
            elements=int(given["elements"]),
            element_us=float(given["element_us"]),
            rows=tuple(map(int, given["rows"])),
            empty_for=tuple(map(int, given["empty_for"])),
        ),
        memory=None
        if memory is None
        else MemoryFacts(**{name: int(value) for name, value in memory.items()}),
        result=None if result is None else _result(result),
        cores_used=None if used is None else float(used),
        epoch=None if epoch is None else EpochFacts(**{name: int(value) for name, value in epoch.items()}),
        sent=None if sent is None else _sent(sent),
    )


def _sent(fields: dict[str, Any]) -> SentSteps:
    """As `_result`, for lists that belong together."""
    sent = SentSteps(
        steps=tuple(map(int, fields["steps"])),
        at_ns=tuple(map(int, fields["at_ns"])),
        paused_ns=tuple(map(int, fields.get("paused_ns", ()))),
    )
    if len(sent.steps) != len(sent.at_ns) or len(sent.paused_ns) not in (0, len(sent.steps)):
        raise ValueError("when steps were sent is not known by step")
    return sent


def _result(fields: dict[str, Any]) -> ResultCourse:
    """Checks lists that belong together; otherwise, views would draw nonsense.

    Raises:
      ValueError: if they do not match.
    """
    replicas = tuple(map(_numbers, fields["replicas"]))
    course = ResultCourse(
        name=str(fields["name"]),
        function=str(fields["function"]),
        steps=tuple(map(int, fields["steps"])),
        mean=_numbers(fields["mean"]),
        replicas=replicas,
        low=_numbers(fields["low"]),
        high=_numbers(fields["high"]),
    )
    lines = course.mean, *replicas, *((course.low, course.high) if not replicas else ())
    if any(len(line) != len(course.steps) for line in lines):
        raise ValueError("a number of the steps is not known by step")
    return course


def _numbers(values: list[Any]) -> tuple[float | None, ...]:
    return tuple(None if value is None else float(value) for value in values)
