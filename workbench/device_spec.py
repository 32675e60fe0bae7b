"""DeviceSpec: describes a device by job, replica, task, type and index, all optional."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any

from workbench.errors import WrongType

_SHORT_TYPES = frozenset({"CPU", "GPU", "TPU", "CUSTOM", "EPU"})


# Without slots, because a dataclass with slots raises a TypeError about super() for an unknown attribute.
@dataclass(frozen=True, eq=False, repr=False)
class DeviceSpec:
    """Describes a device, or all devices that agree in the given fields; immutable (as tf.DeviceSpec).

    Attributes:
      job: Name of the job, such as "worker"; other values are turned into text.
      replica: Number of the replica within the job.
      task: Number of the task within the job; in workbench, the number of the host.
      device_type: "CPU", "GPU", "TPU", or any other name; "cpu" and "gpu" become upper case.
      device_index: Position among the devices of that type on the host; None means any.

    Raises:
      ValueError: if `replica`, `task` or `device_index` is not an integer.
      TypeError: if one of them is neither a number nor a text.

    >>> wb.DeviceSpec(job="worker", device_type="gpu", device_index=1).to_string()
    '/job:worker/device:GPU:1'
    """

    job: str | None = None
    replica: int | None = None
    task: int | None = None
    device_type: str | None = None
    device_index: int | None = None
    _text: str = field(init=False, default="")

    def __post_init__(self) -> None:
        if self.job is not None:
            object.__setattr__(self, "job", str(self.job))
        if self.device_type is not None:
            kind = str(self.device_type)
            object.__setattr__(self, "device_type", kind.upper() if kind in ("cpu", "gpu") else kind)
        for name in ("replica", "task", "device_index"):
            object.__setattr__(self, name, _integer(name, getattr(self, name)))
        object.__setattr__(self, "_text", self._canonical())

    def _canonical(self) -> str:
        parts = [
            f"/{name}:{getattr(self, name)}"
            for name in ("job", "replica", "task")
            if getattr(self, name) is not None
        ]
        if self.device_type is not None:  # an index has no meaning without a type
            parts.append(
                f"/device:{self.device_type}:{'*' if self.device_index is None else self.device_index}"
            )
        return "".join(parts)

    @classmethod
    def from_string(cls, spec: str | None) -> DeviceSpec:
        """Reads '/job:worker/replica:0/task:1/device:GPU:0', with parts in any order, or 'GPU:0' for short.

        An index '*' means any. Only CPU, GPU, TPU, CUSTOM and EPU have the short form. If job, replica or task is given
        twice, the last one counts.

        Raises:
          ValueError: if a part is unknown, a number is not one, or there is a second device type.
          WrongType: if it is not a text.
        """
        if not isinstance(spec, str | None):
            raise WrongType(f"a device is a text such as 'CPU:0', got {type(spec).__name__} {spec!r:.60}")
        found: dict[str, Any] = {}
        for part in (spec or "").split("/"):
            if not part:
                continue
            name, *rest = part.split(":")
            match name, rest:
                case (("job" | "replica" | "task"), [value]):
                    found[name] = value
                    continue
                case "device", [kind, index]:
                    pass
                case _, [] if name.upper() in _SHORT_TYPES:
                    kind, index = name.upper(), "*"
                case _, [index] if name.upper() in _SHORT_TYPES:
                    kind = name.upper()
                case _:
                    raise ValueError(
                        f"unknown part {part!r} in the device {spec!r}; a device reads 'CPU:0' or "
                        "'/job:worker/replica:0/task:0/device:GPU:1', or a part of it"
                    )
            if "device_type" in found:
                raise ValueError(
                    f"the device {spec!r} has two types, {found['device_type']!r} and {kind!r}; give one"
                )
            found.update(device_type=kind, device_index=None if index == "*" else index)
        try:
            return cls(**found)
        except ValueError as error:
            raise ValueError(f"{error}, in the device {spec!r}") from None

    def parse_from_string(self, spec: str) -> DeviceSpec:
        """Returns a new spec read from `spec`; this one does not change."""
        return type(self).from_string(spec)

    def to_string(self) -> str:
        """The canonical text, '/job:…/replica:…/task:…/device:TYPE:INDEX' without the parts that are None."""
        return self._text

    def make_merged_spec(self, dev: DeviceSpec) -> DeviceSpec:
        """Returns a new spec in which the fields of `dev` override those of this one.

        Raises:
          TypeError: if `dev` is not a `DeviceSpec`.
        """
        if not isinstance(dev, DeviceSpec):
            raise TypeError(
                f"make_merged_spec needs a DeviceSpec, got {dev!r}; use DeviceSpec.from_string for a text"
            )
        theirs = dev._given()
        return type(self)(**{**self._given(), **{k: v for k, v in theirs.items() if v is not None}})

    def replace(self, **kwargs: str | int | None) -> DeviceSpec:
        """Returns a new spec with the given fields replaced; None clears a field.

        Raises:
          TypeError: if a keyword is not a field of DeviceSpec.
        """
        return type(self)(**{**self._given(), **kwargs})

    def _given(self) -> dict[str, Any]:
        return {item.name: getattr(self, item.name) for item in fields(self) if item.init}

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self._text == other._text

    def __hash__(self) -> int:
        return hash(self._text)

    def __str__(self) -> str:
        return self._text

    def __repr__(self) -> str:
        given = ", ".join(f"{name}={value!r}" for name, value in self._given().items() if value is not None)
        return f"DeviceSpec({given})"


def _integer(name: str, value: Any) -> int | None:
    try:
        return None if value is None else int(value)
    except (TypeError, ValueError, OverflowError) as error:  # the last one is infinity's
        kind = TypeError if isinstance(error, TypeError) else ValueError
        raise kind(f"{name} must be an integer, got {value!r}") from None
