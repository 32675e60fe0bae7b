"""Stages that call a user's function once per element: map, filter, take_while.

Order is kept. What the function raises reaches the caller with its own type and a note that names stage and
element.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from workbench.data.passes import Pass
from workbench.data.spec import UNKNOWN_CARDINALITY, TensorSpec, spec_of
from workbench.data.stage import Opener, Pipeline, Stage
from workbench.data.stages import probe
from workbench.data.structure import Array, Structure, flatten_result
from workbench.data.tables import Failed, Leaves, Run, items, single
from workbench.errors import InvalidArgumentError

_ONE_BOOL = TensorSpec((), np.bool_)


@dataclass(frozen=True, eq=False)
class Map(Stage):
    """Replaces each element by what `fn` returns for it.

    Attributes:
      fn: The function; a tuple element is unpacked over its arguments.
      num_parallel_calls: How many threads call it, 0 for the caller's own.
      deterministic: Whether results keep the order of the elements when several threads work.
    """

    name: ClassVar[str] = "map"
    fn: Callable[..., Any]
    num_parallel_calls: int = 0
    deterministic: bool = True

    def open(self, upstream: Opener, current: Pass) -> Iterator[Run]:
        """Starts one pass over what `upstream()` starts."""
        if self.num_parallel_calls > 1:
            yield from self._threaded(upstream, current)
            return
        for index, (leaves, structure, ids) in enumerate(items(upstream(), current.provenance)):
            try:
                result = self._called(leaves, structure, index)
            except Exception as error:
                yield Failed(error)
            else:
                yield single(*result, ids)

    def _called(self, leaves: Leaves, structure: Structure, index: int) -> tuple[Leaves, Structure]:
        try:
            return flatten_result(probe.call(self.fn, structure.pack(leaves)))
        except Exception as error:
            note_place(error, self.text, index)
            raise

    def _threaded(self, upstream: Opener, current: Pass) -> Iterator[Run]:
        waiting: deque[tuple[Future[tuple[Leaves, Structure]], Array | None]] = deque()
        with ThreadPoolExecutor(self.num_parallel_calls, thread_name_prefix="wb-map") as pool:
            try:
                for index, (leaves, structure, ids) in enumerate(items(upstream(), current.provenance)):
                    waiting.append((pool.submit(self._called, leaves, structure, index), ids))
                    if len(waiting) >= 2 * self.num_parallel_calls:
                        yield self._next_done(waiting)
                while waiting:
                    yield self._next_done(waiting)
            finally:
                for future, _ in waiting:
                    future.cancel()

    def _next_done(self, waiting: deque[tuple[Future[tuple[Leaves, Structure]], Array | None]]) -> Run:
        if not self.deterministic:
            for position, (future, ids) in enumerate(waiting):
                if future.done():
                    del waiting[position]
                    return _result(future, ids)
        return _result(*waiting.popleft())

    def element_spec(self, upstream: Pipeline) -> Any:
        """The nested spec of an element after this stage."""
        try:
            return probe.result_spec(self.fn, upstream)
        except Exception:
            element = upstream.first()
            leaves, structure = flatten_result(probe.call(self.fn, element))
            return structure.pack([spec_of(leaf) for leaf in leaves])

    def describe(self) -> str:
        """The stage as a short text."""
        return f"map({_name(self.fn)})"


def _result(future: Future[tuple[Leaves, Structure]], ids: Array | None) -> Run:
    # The function is the user's and may take as long as it likes; the pool's threads cannot die before it returns.
    error = future.exception(timeout=None)
    if isinstance(error, Exception):
        return Failed(error)
    return single(*future.result(timeout=None), ids)


@dataclass(frozen=True, eq=False)
class Filter(Stage):
    """Keeps the elements for which `fn` says True.

    Attributes:
      fn: Predicate; a tuple element is unpacked over its arguments.
    """

    name: ClassVar[str] = "filter"
    keeps_batches: ClassVar[bool] = True
    fn: Callable[..., Any]

    def open(self, upstream: Opener, current: Pass) -> Iterator[Run]:
        """Starts one pass over what `upstream()` starts."""
        for run, row in _kept(self, self.fn, upstream):
            if isinstance(run, Failed):
                yield run
            elif row is not None:
                yield Run(run.table, range(row, row + 1))

    def cardinality(self, upstream: Pipeline) -> int:
        """Number of elements after this stage."""
        return UNKNOWN_CARDINALITY

    def describe(self) -> str:
        """The stage as a short text."""
        return f"filter({_name(self.fn)})"


@dataclass(frozen=True, eq=False)
class TakeWhile(Stage):
    """Stops at the first element for which `fn` says False.

    Attributes:
      fn: Predicate; a tuple element is unpacked over its arguments.
    """

    name: ClassVar[str] = "take_while"
    keeps_batches: ClassVar[bool] = True
    fn: Callable[..., Any]

    def open(self, upstream: Opener, current: Pass) -> Iterator[Run]:
        """Starts one pass over what `upstream()` starts."""
        for run, row in _kept(self, self.fn, upstream):
            if isinstance(run, Failed):
                yield run
            elif row is None:
                return
            else:
                yield Run(run.table, range(row, row + 1))

    def cardinality(self, upstream: Pipeline) -> int:
        """Number of elements after this stage."""
        return UNKNOWN_CARDINALITY

    def describe(self) -> str:
        """The stage as a short text."""
        return f"take_while({_name(self.fn)})"


def check_predicate(fn: Callable[..., Any], upstream: Pipeline, stage: str) -> None:
    """Refuses a predicate whose result is no scalar bool, as far as made-up values can tell.

    Raises:
      TypeError: if it does not take the elements' components.
      InvalidArgumentError: if it returns something else.
    """
    try:
        element_spec = upstream.element_spec
    except Exception:
        return
    probe.check_arguments(fn, element_spec, stage)
    try:
        spec = probe.result_spec(fn, upstream)
    except Exception:
        return
    if spec != _ONE_BOOL:
        raise InvalidArgumentError(_predicate_text(fn, stage, spec))


def _kept(stage: Stage, fn: Callable[..., Any], upstream: Opener) -> Iterator[tuple[Run, int | None]]:
    """Each element as its run and row, the row None if `fn` says False; or why it could not say."""
    index = 0
    for run in upstream():
        pack = run.table.structure.pack
        for row in run.indices():
            try:
                answer = probe.call(fn, pack(run.table.row(row)))
                if not isinstance(answer, bool | np.bool_) and _spec_or_none(answer) != _ONE_BOOL:
                    raise InvalidArgumentError(_predicate_text(fn, stage.name, answer))
            except Exception as error:
                note_place(error, stage.text, index)
                yield Failed(error), None
            else:
                yield run, row if answer else None
            index += 1


def _spec_or_none(value: Any) -> Any:
    return spec_of(value) if isinstance(value, np.ndarray | np.generic) else None


def _predicate_text(fn: Callable[..., Any], stage: str, got: Any) -> str:
    return f"{stage}: {_name(fn)} must return one bool per element, got {got!r:.80}; use .all() or .any()"


def note_place(error: BaseException, stage: str, index: int) -> None:
    """Notes on `error` where in the pipeline it happened."""
    error.add_note(f"in stage {stage} of a dataset, at element {index}")


def _name(fn: Callable[..., Any]) -> str:
    return str(getattr(fn, "__name__", type(fn).__name__))
