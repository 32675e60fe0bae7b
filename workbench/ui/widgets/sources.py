"""What widgets show, and how it changes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from workbench.ui.render.plain_values import plain

Message = dict[str, Any]


class Source(Protocol):
    """What a widget shows. Called by several threads, but one at a time.

    Attributes:
      view: Name of the view, see `models.messages.MODELS`.
      interval_seconds: How often to check for changes; infinite if there are none.
    """

    view: str
    interval_seconds: float

    def model(self) -> Message:
        """The whole model, JSON-able."""
        ...

    def change(self) -> Message | None:
        """The message with the changes since the last call, or None if there are none."""
        ...

    def answer(self, request: Message) -> Message | None:
        """The message that answers a request from the view, or None for a request that it does not handle."""
        ...

    @property
    def ended(self) -> bool:
        """Whether nothing will change any more."""
        ...


class Given:
    """A JSON-able model that is created on first use, and changes only on request."""

    def __init__(
        self,
        view: str,
        make: Callable[[], Message],
        answer: Callable[[Message], Message | None] | None = None,
    ) -> None:
        """Creates the source.

        Args:
          view: Name of the view.
          make: Returns the model.
          answer: Returns another model for a request, or None.
        """
        self.view = view
        self.interval_seconds = float("inf")
        self._make = make
        self._answer = answer
        self._model: Message | None = None

    def model(self) -> Message:
        """As `Source.model`."""
        if self._model is None:
            self._model = self._make()
        return self._model

    def change(self) -> Message | None:
        """None: it does not change."""
        return None

    def answer(self, request: Message) -> Message | None:
        """As `Source.answer`."""
        found = None if self._answer is None else self._answer(request)
        if found is None:
            return None
        self._model = found
        return {"kind": "model", "model": found}

    @property
    def ended(self) -> bool:
        """It never changes."""
        return True


class Fixed(Given):
    """A model that already exists."""

    def __init__(self, view: str, model: Any, answer: Callable[[Message], Any] | None = None) -> None:
        """Creates the source.

        Args:
          view: Name of the view.
          model: One of the classes of `models.messages.MODELS`.
          answer: Returns another model for a request, or None.
        """

        def answered(request: Message) -> Message | None:
            found = None if answer is None else answer(request)
            return None if found is None else plain(found)

        now = plain(model)
        super().__init__(view, lambda: now, answered)


class Polled:
    """A model that is created each time, and sent if it differs."""

    def __init__(
        self, view: str, make: Callable[[], Any], *, interval_seconds: float, ended: Callable[[], bool]
    ) -> None:
        """Creates the source.

        Args:
          view: Name of the view.
          make: Returns the model.
          interval_seconds: How often to create it.
          ended: Whether it no longer changes.
        """
        self.view = view
        self.interval_seconds = interval_seconds
        self._make = make
        self._ended = ended
        self._sent: Message | None = None

    def model(self) -> Message:
        """As `Source.model`."""
        self._sent = plain(self._make())
        return self._sent

    def change(self) -> Message | None:
        """As `Source.change`."""
        before = self._sent
        now = self.model()
        return None if now == before else {"kind": "model", "model": now}

    def answer(self, request: Message) -> Message | None:
        """None: it answers no requests."""
        return None

    @property
    def ended(self) -> bool:
        """As `Source.ended`."""
        return self._ended()
