"""Codecs: how values travel in messages. They are pickled between processes, and the same objects within one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from workbench.backends.from_gpu import fetched
from workbench.runtime.comm.messages import dumps, unpickled
from workbench.runtime.comm.result_leaves import packed, travelling


class Codec(Protocol):
    """Encodes values for messages, and decodes received ones.

    Attributes:
      by_reference: Whether both ends are in one process and share the objects.
    """

    by_reference: bool

    def encode(self, value: Any) -> Any:
        """Encodes a value for a message.

        Raises:
          Exception: any error of pickling, which calls code of the value's class.
        """

    def decode(self, data: Any, what: str) -> Any:
        """The inverse of `encode`; `what` names the value in the error.

        Raises:
          CaptureError: if the value cannot be created in this process.
        """

    def leaf(self, leaf: Any) -> Any:
        """The form in which a `Handle` at the other end keeps a leaf: (leaf,), or a stand-in for it."""

    def leaves(self, leaves: Sequence[Any]) -> Any:
        """Encodes all leaves of a result for `unpacked`."""

    def on_host(self, values: list[Any]) -> list[Any]:
        """Copies values from devices to the host if they leave the process."""


class Objects:
    """The codec within one process."""

    by_reference: bool = True

    def encode(self, value: Any) -> Any:
        """Returns the value itself."""
        return value

    def decode(self, data: Any, what: str) -> Any:
        """Returns the value itself."""
        return data

    def leaf(self, leaf: Any) -> Any:
        """See `Codec.leaf`."""
        return (leaf,)

    def leaves(self, leaves: Sequence[Any]) -> Any:
        """See `Codec.leaves`."""
        return [(leaf,) for leaf in leaves]

    def on_host(self, values: list[Any]) -> list[Any]:
        """Returns the values unchanged."""
        return values


class Pickled:
    """The codec between processes."""

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
