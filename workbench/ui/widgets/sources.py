"""What widgets show, and which part of it changes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from workbench.ui.render.plain_values import plain

Message = dict[str, Any]


class Source(Protocol):
    """What a widget shows. Called by several threads, but by one at a time.

    Attributes:
      view: Name of the view, see `models.messages.MODELS`.
      interval_seconds: How often it is worth asking for changes; infinite where there are none.
    """

    view: str
    interval_seconds: float

    def model(self) -> Message:
        """The whole model, JSON-able."""
        ...

    def change(self) -> Message | None:
        """The message that brings views up to date since the last call, or None if nothing happened."""
        ...

    def answer(self, request: Message) -> Message | None:
        """The message that answers what a person asked for in the view, or None if that does not concern it."""
        ...

    @property
    def ended(self) -> bool:
        """Whether nothing will change any more."""
        ...


class Given:
    """A JSON-able model that is made when it is first asked for, and changes only where a person asks for that."""

    def __init__(
        self,
        view: str,
        make: Callable[[], Message],
        answer: Callable[[Message], Message | None] | None = None,
    ) -> None:
        """Makes the source.

        Args:
          view: Name of the view.
          make: Gives the model.
          answer: Gives another model for a request, or None.
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
    """A model that is there already."""

    def __init__(self, view: str, model: Any, answer: Callable[[Message], Any] | None = None) -> None:
        """Makes the source.

        Args:
          view: Name of the view.
          model: One of the classes of `models.messages.MODELS`.
          answer: Gives another model for a request, or None.
        """

        def answered(request: Message) -> Message | None:
            found = None if answer is None else answer(request)
            return None if found is None else plain(found)

        now = plain(model)
        super().__init__(view, lambda: now, answered)


class Polled:
    """A model that is made anew each time, and sent where it differs."""

    def __init__(
        self, view: str, make: Callable[[], Any], *, interval_seconds: float, ended: Callable[[], bool]
    ) -> None:
        """Makes the source.

        Args:
          view: Name of the view.
          make: Gives the model.
          interval_seconds: How often.
          ended: Whether it stays as it is from now on.
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
        """None: there is nothing to ask."""
        return None

    @property
    def ended(self) -> bool:
        """As `Source.ended`."""
        return self._ended()
