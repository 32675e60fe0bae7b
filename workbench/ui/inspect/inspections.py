"""All inspections during a recording, as one model of values, the newest last."""

from __future__ import annotations

from typing import Any, Final

_MOST_VALUES: Final = 256


class Inspections:
    """Concatenates the inspections of a recording."""

    def __init__(self) -> None:
        self._count = 0
        self._values: list[dict[str, Any]] = []
        self._first: dict[str, Any] | None = None

    def with_earlier(self, model: dict[str, Any]) -> dict[str, Any]:
        """Appends the model of a new inspection to the earlier ones; keeps the newest 256 values.

        Args:
          model: A JSON-able `models.inspected.Values`.
        """
        self._count += 1
        before = len(self._values)
        self._values += [_numbered(value, self._count) for value in model["values"]]
        self._first = self._first or _behind(model["first"], before)
        gone = max(0, len(self._values) - _MOST_VALUES)
        del self._values[:gone]
        self._first = _behind(self._first, -gone)
        return model | {
            "values": list(self._values),
            "elements": _behind(model["elements"], before - gone),
            "first": self._first,
        }


def _numbered(value: dict[str, Any], number: int) -> dict[str, Any]:
    """The value, with its inspection's number in its name unless that is the first."""
    return (
        value if number == 1 else value | {"name": f"{value['name'] or value['kind']} (inspection {number})"}
    )


def _behind(found: dict[str, Any] | None, by: int) -> dict[str, Any] | None:
    """Adjusts references to values by number after values were added or removed in front."""
    if found is None or found["value"] + by < 0:
        return None
    return found | {"value": found["value"] + by}
