"""Codecs: how values travel in messages, pickled between processes, or as the objects themselves within one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from workbench.backends.from_gpu import fetched
from workbench.runtime.comm.messages import dumps, unpickled
from workbench.runtime.comm.result_leaves import packed, travelling


class Codec(Protocol):
    """Makes values fit for messages, and values of what has come.

    Attributes:
      by_reference: Both ends are in one process, and share the objects.
    """

    by_reference: bool

    def encode(self, value: Any) -> Any:
        """A value as a message carries it.

        Raises:
          Exception: whatever pickling raises, which calls code of whatever the value is.
        """

    def decode(self, data: Any, what: str) -> Any:
        """The inverse of `encode`; `what` it is, for the error.

        Raises:
          CaptureError: if it cannot be made in this process.
        """

    def leaf(self, leaf: Any) -> Any:
        """A leaf as `Handle` keeps it at the other end: itself as (leaf,), or what stands for it."""

    def leaves(self, leaves: Sequence[Any]) -> Any:
        """All leaves of a result, as `unpacked` takes them."""

    def on_host(self, values: list[Any]) -> list[Any]:
        """Values that shall leave the devices that they are on, if they leave the process."""


class Objects:
    """Within one process."""

    by_reference: bool = True

    def encode(self, value: Any) -> Any:
        """The value itself."""
        return value

    def decode(self, data: Any, what: str) -> Any:
        """The value itself."""
        return data

    def leaf(self, leaf: Any) -> Any:
        """See `Codec.leaf`."""
        return (leaf,)

    def leaves(self, leaves: Sequence[Any]) -> Any:
        """See `Codec.leaves`."""
        return [(leaf,) for leaf in leaves]

    def on_host(self, values: list[Any]) -> list[Any]:
        """The values as they are."""
        return values


class Pickled:
    """Between processes."""

    by_reference: bool = False

    def encode(self, value: Any) -> Any:
        """See `Codec.encode`."""
        return dumps(value)

    def decode(self, data: Any, what: str) -> Any:
        """See `Codec.decode`."""
        return unpickled(data, what)

    def leaf(self, leaf: Any) -> Any:
        """See `Codec.leaf`."""
        return travelling(leaf)

    def leaves(self, leaves: Sequence[Any]) -> Any:
        """See `Codec.leaves`."""
        return packed(leaves)

    def on_host(self, values: list[Any]) -> list[Any]:
        """See `Codec.on_host`."""
        return [fetched(value) for value in values]


OBJECTS, PICKLED = Objects(), Pickled()
