"""What a recorded run knows of views that are not made of records: models, limits of bandwidth, numbers of cores."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from workbench.errors import DataCorruption
from workbench.telemetry.limits import Limit
from workbench.telemetry.runs.checksummed import opened, sealed

LOOKS_KEY: Final = b"workbench.looks"
MAX_MODEL_BYTES: Final = 4 * 1024 * 1024
"""A larger model is left out of the file, and named among those."""


@dataclass(frozen=True, slots=True)
class Looks:
    """The newest models of a recorded run. Files of earlier versions have none.

    Attributes:
      models: View -> what it draws, as JSON; nobody has looked at what is in them yet.
      left_out: Views whose models were too large for the file.
      limits: Measured limits of bus bandwidth, by group.
      cores: How many cores the replicas of a group have together, by group.
    """

    models: Mapping[str, str] = field(default_factory=dict)
    left_out: tuple[str, ...] = ()
    limits: Mapping[str, Limit] = field(default_factory=dict)
    cores: Mapping[str, int] = field(default_factory=dict)

    def model(self, view: str) -> Any:
        """The model of a view, or None if there is none.

        Raises:
          DataCorruption: if it is no JSON.
        """
        if view not in self.models:
            return None
        try:
            return json.loads(self.models[view])
        except (ValueError, RecursionError) as error:
            raise DataCorruption(f"the model of {view} makes no sense: {error}") from error

    def encode(self) -> bytes:
        """All of it as checksum and JSON."""
        limits = {
            group: {"copy": dict(limit.copy), "between_hosts": limit.between_hosts}
            for group, limit in self.limits.items()
        }
        fields = {
            "models": dict(self.models),
            "left_out": self.left_out,
            "limits": limits,
            "cores": dict(self.cores),
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
                cores={str(group): int(cores) for group, cores in fields.get("cores", {}).items()},
            )
        except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
            raise DataCorruption(f"{what} makes no sense: {error}") from error


def _limit(fields: dict[str, Any]) -> Limit:
    between = fields["between_hosts"]
    return Limit(
        copy={int(size): float(rate) for size, rate in fields["copy"].items()},
        between_hosts=None if between is None else float(between),
    )
