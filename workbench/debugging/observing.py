"""Observed functions: checks their numbers, dumps the results of their operations, or both."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from workbench.debugging import numerics
from workbench.debugging.dump.options import DumpOptions
from workbench.debugging.dump.recording import recording
from workbench.debugging.dump.session import current_writer
from workbench.debugging.dump.watched import unwatched, watched


@dataclass(frozen=True, slots=True)
class Observation:
    """What is done with a function; sent to the replicas.

    Attributes:
      checked: Whether NaN and infinity are errors.
      dump: What to dump, None for nothing.
    """

    checked: bool
    dump: DumpOptions | None

    def call(
        self, fn: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any], place: Place
    ) -> Any:
        """Calls a function, and returns its result.

        Args:
          fn: The user's function.
          args: Positional arguments.
          kwargs: Keyword arguments.
          place: Where it runs.

        Raises:
          NotFinite: if it is checked, and computes something that is not finite.
        """
        with contextlib.ExitStack() as stack:
            if self.checked:
                stack.enter_context(numerics.checking(place.text))
            if self.dump is None:
                result = fn(*args, **kwargs)
            else:
                stack.enter_context(
                    recording(self.dump, host=place.host, replica=place.replica, step=place.step)
                )
                args, kwargs = watched((tuple(args), dict(kwargs)))
                result = unwatched(fn(*args, **kwargs))
            return numerics.check(result, place.what)


@dataclass(frozen=True, slots=True)
class Place:
    """Where an observed function runs.

    Attributes:
      text: For errors, such as "on replica 1 at step 17".
      what: The description of its result, for errors.
      host: Name of the host.
      replica: The replica, -1 in the notebook.
      step: The user's step, -1 outside steps.
    """

    text: str
    what: str
    host: str = ""
    replica: int = -1
    step: int = -1


def current() -> Observation | None:
    """What is done with functions from now on, None for nothing."""
    writer = current_writer()
    if writer is None:
        return _CHECKED if numerics.is_enabled() else None
    return Observation(numerics.is_enabled(), writer.options)


_CHECKED = Observation(True, None)
