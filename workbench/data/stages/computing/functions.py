"""Stages that call a user's function once per element: map, filter, take_while.

Order is kept. An error of the function reaches the caller with its own type and a note that names stage and element.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import chain, islice
from typing import Any, ClassVar

import numpy as np

from workbench.data.background.arrivals import Arrival
from workbench.data.background.parallel_calls import ParallelCalls
from workbench.data.blocks.calls import BlockCalls, blocks_wanted, tunes_blocks
from workbench.data.blocks.straight_code import require_no_effect
from workbench.data.options import AUTOTUNE, Options
from workbench.data.passes import Pass
from workbench.data.spec import UNKNOWN_CARDINALITY, TensorSpec, fits, spec_of
from workbench.data.stage import Opener, Pipeline, Stage, calls_functions
from workbench.data.stages.computing import made_up, probe
from workbench.data.structure import Structure, flatten_element
from workbench.data.tables import Failed, Item, Leaves, Run, attempts, single
from workbench.errors import InvalidArgumentError, OutOfRangeError, WrongType
from workbench.runtime.user_code.notebook_cells import file_name

_ONE_BOOL = TensorSpec((), np.bool_)
_MOST_CHECKED_BYTES = 64 * 1024
_MOST_CALLED = 8  # functions; otherwise each `map` of a long chain would call all earlier ones


@dataclass(frozen=True, eq=False)
class Map(Stage):
    """Replaces each element by what `fn` returns for it.

    Attributes:
      fn: The function; a tuple element is unpacked over its arguments.
      num_parallel_calls: How many calls at a time, AUTOTUNE to measure it, 0 for the reader's own thread.
      deterministic: Whether parallel calls keep the order of the elements; None for what the options say.
    """

    name: ClassVar[str] = "map"
    sees_failures: ClassVar[bool] = True
    calls_functions: ClassVar[bool] = True
    fn: Callable[..., Any]
    num_parallel_calls: int = 0
    deterministic: bool | None = None

    def open(self, upstream: Opener, current: Pass) -> Iterator[Run]:
        """Starts one pass over the runs of `upstream()`."""
        blocks = BlockCalls(self.fn, partial(probe.call, self.fn), self.called, current.meter)
        runs = upstream()
        if self.num_parallel_calls == 0:
            if blocks_wanted(current.options):
                yield from self._in_blocks(runs, blocks, current)
            else:
                yield from self._one_by_one(attempts(runs, current.provenance), 0)
            return
        arrival = current.arrival(self.deterministic)
        follows = arrival is not None and arrival.known  # order that calls for blocks would not have changed
        if self.num_parallel_calls == AUTOTUNE and tunes_blocks(current.options) and not follows:
            first = list(islice(runs, 1))
            runs = chain(first, runs)
            if any(blocks.suits(run) for run in first):
                yield from self._in_blocks(runs, blocks, current)
                return
        yield from self._in_parallel(attempts(runs, current.provenance), current, arrival)

    def _in_blocks(self, runs: Iterator[Run], blocks: BlockCalls, current: Pass) -> Iterator[Run]:
        """Results for many rows at a time, if they are the same."""
        index = 0
        for run in runs:
            for part in blocks.parts(run):
                computed = blocks.block(part, index)
                if computed is None:
                    yield from self._one_by_one(attempts(iter((part,)), current.provenance), index)
                else:
                    yield computed
                index += len(part)

    def _one_by_one(self, attempted: Iterator[Item | Failed], index: int) -> Iterator[Run]:
        """Results for elements, the first of which is number `index`."""
        for item in attempted:
            if isinstance(item, Failed):
                yield item
                continue
            leaves, structure, ids = item
            try:
                made = single(*self.called(leaves, structure, index), ids)
            except Exception as error:
                made = Failed(error)
            yield made
            index += 1

    def called(self, leaves: Leaves, structure: Structure, index: int) -> tuple[Leaves, Structure]:
        """What the function returns for element number `index`.

        Args:
          leaves: The components of the element.
          structure: Their structure.
          index: Number of the element, for errors.
        """
        returned = False
        try:
            result = probe.call(self.fn, structure.pack(leaves))
            returned = True
            return flatten_element(result)
        except Exception as error:
            if returned:  # no frame of the function is in the traceback
                note_function(error, self.fn)
            note_place(error, self.text, index)
            raise

    def keeps_order(self, options: Options) -> bool:
        """Whether results come in the order of the elements."""
        return not self.num_parallel_calls or options.keeps_order(self.deterministic)

    def _in_parallel(
        self, attempted: Iterator[Item | Failed], current: Pass, arrival: Arrival | None
    ) -> Iterator[Run]:
        calls = ParallelCalls(
            self.fn,
            self.called,
            self.text,
            current.options,
            arrival,
            current.most_waiting_bytes,
            current.meter,
        )
        yield from calls.run(_numbered(attempted), self.num_parallel_calls)

    def element_spec(self, upstream: Pipeline) -> Any:
        """The nested spec of an element after this stage.

        Raises:
          TypeError: if the function's result for made-up values is of a kind that elements cannot hold, and no element
            of `upstream` shows otherwise.
        """
        probe.refuse_unknown(upstream)
        unfit = None
        try:
            return probe.result_spec(self.fn, upstream)
        except probe.UnfitResult as error:
            unfit = error
        except Exception:  # it may raise for made-up values
            pass
        try:
            return probe.first_result(
                f"what {self.text} gives",
                lambda element: probe.learnt_spec(self._spec_of, element, upstream),
                upstream,
            )
        except OutOfRangeError:
            if unfit is None:
                raise
        told = TypeError(str(unfit))
        note_function(told, self.fn)
        raise told

    def _spec_of(self, element: Any) -> Any:
        leaves, structure = flatten_element(probe.call(self.fn, element))
        return structure.pack([spec_of(leaf) for leaf in leaves])

    def describe(self) -> str:
        """The stage as a short text."""
        return f"map({_name(self.fn)})"


def _numbered(attempted: Iterator[Item | Failed]) -> Iterator[tuple[int, Item] | Failed]:
    index = 0
    for item in attempted:
        if isinstance(item, Failed):
            yield item
        else:
            yield index, item
            index += 1


@dataclass(frozen=True, eq=False)
class Filter(Stage):
    """Keeps the elements for which `fn` returns True.

    Attributes:
      fn: Predicate; a tuple element is unpacked over its arguments.
    """

    name: ClassVar[str] = "filter"
    keeps_batches: ClassVar[bool] = True
    fn: Callable[..., Any]

    def open(self, upstream: Opener, current: Pass) -> Iterator[Run]:
        """Starts one pass over the runs of `upstream()`."""
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
    """Stops at the first element for which `fn` returns False.

    Attributes:
      fn: Predicate; a tuple element is unpacked over its arguments.
    """

    name: ClassVar[str] = "take_while"
    keeps_batches: ClassVar[bool] = True
    fn: Callable[..., Any]

    def open(self, upstream: Opener, current: Pass) -> Iterator[Run]:
        """Starts one pass over the runs of `upstream()`."""
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
    """Rejects a predicate whose result for made-up values is not a scalar bool.

    Args:
      fn: The predicate.
      upstream: The pipeline whose elements it gets.
      stage: Name of the stage, for errors.

    Raises:
      TypeError: if it does not accept the elements' components.
      InvalidArgumentError: if it returns something else.
    """
    upstream = upstream.unread()
    try:
        element_spec = upstream.element_spec
    except TypeError:  # no element can be made
        raise
    except Exception:
        return
    probe.check_arguments(fn, element_spec, stage)
    try:
        spec = probe.result_spec(fn, upstream)
    except Exception:
        return
    if not fits(_ONE_BOOL, spec):
        raise InvalidArgumentError(_predicate_text(fn, stage, spec))


def refuse_later_results(fn: Callable[..., Any], stage: str) -> None:
    """Rejects functions that compute their result later: those with `yield`, and coroutines.

    Raises:
      TypeError: for these.
    """
    name = _name(fn)
    if inspect.isgeneratorfunction(fn):
        raise WrongType(
            f"{stage}: {name} is a generator function; return one element, or give several with "
            f"flat_map(lambda x: Dataset.from_generator({name}, args=(x,), output_signature=...))"
        )
    if inspect.iscoroutinefunction(fn) or inspect.isasyncgenfunction(fn):
        raise TypeError(f"{stage}: {name} is a coroutine function; nothing awaits what it returns")


def check_result(fn: Callable[..., Any], upstream: Pipeline, stage: str) -> None:
    """Rejects a function whose result no element can hold, if a call has no effect.

    Functions may print, count or wait, so this calls only functions whose code shows that they just compute or make a
    generator, and that take no large elements.

    Args:
      fn: The function.
      upstream: The pipeline whose elements it gets.
      stage: Name of the stage, for errors.

    Raises:
      TypeError: if it returns what no element can hold.
      InvalidArgumentError: if it returns nothing.
    """
    if not _only_computes(fn, upstream):
        return
    try:
        result = probe.result_example(fn, upstream)
    except Exception:  # it may raise for made-up values
        return
    try:
        flatten_element(result)
    except Exception as error:
        error.add_note(f"in stage {stage}({_name(fn)}) of a dataset, of elements {upstream.element_spec}")
        raise


def spec_by_computing(dataset: Pipeline) -> Any:
    """The nested spec of an element, if that only calls functions whose code shows that they just compute.

    None if other functions or more than eight would be called, elements read, or large ones made up.
    """
    unread = dataset.unread()
    known = unread.with_source(unread.source, ())
    if calls_functions(known) or sum(stage.calls_functions for stage in unread.stages) > _MOST_CALLED:
        return None
    for stage in unread.stages:
        if stage.calls_functions and not (isinstance(stage, Map) and _only_computes(stage.fn, known)):
            return None
        try:
            spec = stage.element_spec(known)
        except Exception:  # the iteration will report why
            return None
        known = known.with_source(known.source, (*known.stages, stage)).with_element_spec(spec)
    return known.element_spec if known.stages else None


def _only_computes(fn: Callable[..., Any], upstream: Pipeline) -> bool:
    """Whether a call with a made-up element has no effect and creates no large arrays."""
    try:
        require_no_effect(fn)
        return made_up.element_bytes(upstream.element_spec) <= _MOST_CHECKED_BYTES
    except Exception:  # it may do more, or elements are unknown
        return False


def _kept(stage: Stage, fn: Callable[..., Any], upstream: Opener) -> Iterator[tuple[Run, int | None]]:
    """Each element as its run and row, with the row None if `fn` returns False; or why `fn` failed."""
    index = 0
    for run in upstream():
        pack = run.table.structure.pack
        for row in run.indices():
            try:
                answer = probe.call(fn, pack(run.table.row(row)))
                if not isinstance(answer, bool | np.bool_) and _spec_or_none(answer) != _ONE_BOOL:
                    unfit = InvalidArgumentError(_predicate_text(fn, stage.name, answer))
                    note_function(unfit, fn)
                    raise unfit
            except Exception as error:
                note_place(error, stage.text, index)
                found: tuple[Run, int | None] = Failed(error), None
            else:
                found = run, row if answer else None
            yield found
            index += 1


def _spec_or_none(value: Any) -> Any:
    return spec_of(value) if isinstance(value, np.ndarray | np.generic) else None


def _predicate_text(fn: Callable[..., Any], stage: str, got: Any) -> str:
    return f"{stage}: {_name(fn)} must return one bool per element, got {got!r:.80}; use .all() or .any()"


def note_place(error: BaseException, stage: str, index: int) -> None:
    """Adds a note to `error` that says where in the pipeline it happened.

    Args:
      error: The error of a function.
      stage: The stage, in words.
      index: Number of the element.
    """
    error.add_note(f"in stage {stage} of a dataset, at element {index}")


def note_function(error: BaseException, fn: Callable[..., Any]) -> None:
    """Adds a note to `error` that says which function returned the value, and where it is defined."""
    code = getattr(inspect.unwrap(fn), "__code__", None)
    if code is not None:
        error.add_note(f"returned by {_name(fn)} at {file_name(code.co_filename)}:{code.co_firstlineno}")


def _name(fn: Callable[..., Any]) -> str:
    return str(getattr(fn, "__name__", type(fn).__name__))
