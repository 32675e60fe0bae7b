"""Functions and structures on their way to the workers: pickled now, sent once per content."""

from __future__ import annotations

import hashlib
import itertools
import threading
import weakref
from collections.abc import Callable
from types import CodeType, FunctionType
from typing import Any

import cloudpickle

from workbench.runtime.captures import check_size, explain_unpicklable
from workbench.runtime.main_module import carry_main
from workbench.runtime.snapshot import Snapshot, snapshot
from workbench.runtime.wire import dumps

_MOST_SNAPSHOTS = 64  # of one piece of code


class Prepared:
    """A program that is ready to run on the replicas of a gang.

    Attributes:
      function: Id under which the workers know it, or the program itself where they are in this process.
      name: The user's name for it.
      counts: Running it is a step of the user's; else it is internal work such as reading a variable.
      structure: Structure of its result, once a first run has shown it; what pipelining needs.
    """

    __slots__ = ("counts", "function", "name", "structure")

    def __init__(self, function: int | Callable[..., Any], name: str, *, counts: bool) -> None:
        self.function = function
        self.name = name
        self.counts = counts
        self.structure: Any = None


class Shipping:
    """Ids for content; `pickled[id]` is what a worker that does not know the id must be sent first."""

    def __init__(self, *, by_reference: bool) -> None:
        self.by_reference = by_reference
        self.pickled: dict[int, bytes] = {}
        self._ids: dict[bytes, int] = {}
        self._structures: dict[Any, int] = {}
        # By the code of the user's function and the key of a snapshot: that snapshot, and the id of what was pickled.
        self._known: weakref.WeakKeyDictionary[CodeType, dict[tuple[int, ...], tuple[Snapshot, int]]] = (
            weakref.WeakKeyDictionary()
        )
        self._next = itertools.count()
        self._lock = threading.Lock()
        if not by_reference:
            carry_main()

    def prepare(self, program: Callable[..., Any], user_function: Callable[..., Any] | None) -> Prepared:
        """Pickles `program`, which calls `user_function` (None for internal work), if it may have changed.

        Raises:
          CaptureError: if it does not pickle or takes along more than 10 MB; the text names the variable.
        """
        named = program if user_function is None else user_function
        name = getattr(named, "__qualname__", type(named).__qualname__)
        counts = user_function is not None
        if self.by_reference:
            return Prepared(program, name, counts=counts)
        now = snapshot(program) if type(user_function) is FunctionType else None
        if user_function is None or now is None:
            return Prepared(self._pickled(program, named), name, counts=counts)
        known = self._known.setdefault(user_function.__code__, {})
        before = known.get(now.key)
        if before is None:
            if len(known) >= _MOST_SNAPSHOTS:
                known.clear()
            before = known[now.key] = now, self._pickled(program, named)
        return Prepared(before[1], name, counts=counts)

    def _pickled(self, program: Callable[..., Any], named: Callable[..., Any]) -> int:
        try:
            pickled = cloudpickle.dumps(program, protocol=5)
        except Exception as error:
            raise explain_unpicklable(named, error) from error
        check_size(named, len(pickled))
        return self._intern(pickled)

    def structure_id(self, spec: Any) -> int:
        """The id of the structure of a call's arguments."""
        known = self._structures.get(spec)
        if known is None:
            known = self._structures[spec] = self._intern(dumps(spec))
        return known

    def _intern(self, pickled: bytes) -> int:
        digest = hashlib.sha256(pickled).digest()
        with self._lock:
            known = self._ids.get(digest)
            if known is None:
                known = self._ids[digest] = next(self._next)
                self.pickled[known] = pickled
            return known
