"""Functions and structures for the workers: pickled when prepared, sent once per content."""

from __future__ import annotations

import hashlib
import itertools
import threading
import weakref
from collections import OrderedDict, deque
from collections.abc import Callable
from types import CodeType, FunctionType
from typing import Any

from workbench import by_value, forks
from workbench.runtime.comm.codec import Codec
from workbench.runtime.comm.messages import dumps
from workbench.runtime.shipping.captures import check_size, explain_unpicklable
from workbench.runtime.shipping.closure_snapshot import Snapshot, snapshot
from workbench.runtime.shipping.main_module import carry_main

_MOST_SNAPSHOTS = 64  # per piece of code
# Keeps unreferenced functions for a while, because the same one may run again.
_MOST_RECENT = 256
_MOST_RECENT_BYTES = 64 * 1024 * 1024


class Content:
    """A pickled function. Once it is unreferenced, `forget(id)` is called, on any thread.

    Attributes:
      id: The workers' id for it.
      nbytes: Its pickled size.
    """

    __slots__ = ("__weakref__", "_forget", "id", "nbytes")

    def __init__(self, id: int, nbytes: int, forget: Callable[[int], None]) -> None:
        self.id = id
        self.nbytes = nbytes
        self._forget = forget

    def __del__(self) -> None:
        self._forget(self.id)


class Prepared:
    """A program that is ready to run on the replicas of a gang.

    Attributes:
      function: The workers' id for it, or the program itself if they are in this process.
      name: The user's name for it.
      counts: Whether running it is a user's step, not internal work such as reading a variable.
      structure: Structure of its result, known after the first run; pipelining needs it.
      quiet: Whether the user did not request its steps explicitly; when one fails, only waiting for it raises.
    """

    __slots__ = ("_content", "counts", "function", "name", "quiet", "structure")

    def __init__(self, function: Content | Callable[..., Any], name: str, *, counts: bool) -> None:
        self._content = function  # workers keep the function while this object exists
        self.function: Any = function.id if type(function) is Content else function
        self.name = name
        self.counts = counts
        self.structure: Any = None
        self.quiet = False


class Shipping:
    """Ids for content; `pickled[id]` must first be sent to a worker that does not know the id.

    Functions are not kept forever, because those that capture a number or a batch may differ in each step.

    Attributes:
      codec: How values travel to the workers; within one process, functions are not pickled either.
      pickled: id -> content.
      unused: Ids that were dropped here, but that workers may still know.
    """

    def __init__(self, codec: Codec) -> None:
        self.codec = codec
        self.pickled: dict[int, bytes] = {}
        self.unused: deque[int] = deque()
        self._contents: weakref.WeakValueDictionary[bytes, Content] = weakref.WeakValueDictionary()
        self._recent: OrderedDict[int, Content] = OrderedDict()
        self._recent_bytes = 0
        self._structures: dict[Any, int] = {}
        # The user function's code -> the key of a snapshot -> the snapshot and the pickled function.
        self._known: weakref.WeakKeyDictionary[CodeType, dict[tuple[int, ...], tuple[Snapshot, Content]]] = (
            weakref.WeakKeyDictionary()
        )
        self._next = itertools.count()
        self._lock = forks.lock(threading.Lock())
        if not codec.by_reference:
            carry_main()

    def prepare(self, program: Callable[..., Any], user_function: Callable[..., Any] | None) -> Prepared:
        """Pickles `program`, which calls `user_function` (None for internal work), if it may have changed.

        Raises:
          CaptureError: if it cannot be pickled or captures more than 10 MB; the message names the variable.
        """
        named = program if user_function is None else user_function
        name = getattr(named, "__qualname__", type(named).__qualname__)
        counts = user_function is not None
        if self.codec.by_reference:
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

    def _pickled(self, program: Callable[..., Any], named: Callable[..., Any]) -> Content:
        try:
            pickled = by_value.dumps(program)
        except Exception as error:
            raise explain_unpicklable(named, error) from error
        check_size(named, len(pickled))
        digest = hashlib.sha256(pickled).digest()
        with self._lock:
            content = self._contents.get(digest)
            if content is None:
                content = Content(next(self._next), len(pickled), self._forget)
                self.pickled[content.id] = pickled
                self._contents[digest] = content
            self._keep(content)
        return content

    def _keep(self, content: Content) -> None:
        """Keeps the function, and drops the least recently used ones."""
        if self._recent.pop(content.id, None) is None:
            self._recent_bytes += content.nbytes
        self._recent[content.id] = content
        while len(self._recent) > _MOST_RECENT or self._recent_bytes > _MOST_RECENT_BYTES:
            _, oldest = self._recent.popitem(last=False)
            self._recent_bytes -= oldest.nbytes

    def _forget(self, id: int) -> None:
        # Only atomic operations, because this may run at any point in any thread, even one that holds the lock.
        self.pickled.pop(id, None)
        self.unused.append(id)

    def structure_id(self, spec: Any) -> int:
        """The id of the structure of a call's arguments."""
        known = self._structures.get(spec)
        if known is None:
            known = self._structures[spec] = next(self._next)
            self.pickled[known] = dumps(spec)
        return known
