"""Batches of elements that differ in shape, padded."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, ClassVar, cast

import numpy as np

from workbench import tree
from workbench.backends.conversion import converted
from workbench.backends.numpy import STRING
from workbench.data.background.parallel_calls import ParallelCalls
from workbench.data.passes import Pass
from workbench.data.spec import TensorSpec, UnknownSpec, is_shape
from workbench.data.stage import Opener, Pipeline, Stage
from workbench.data.stages.grouping.batch import Batch
from workbench.data.structure import Array, Structure, convert
from workbench.data.tables import Failed, Item, Leaves, Run, Task, as_runs, attempts, single, spec_shown_by
from workbench.errors import DataLossError, InvalidArgumentError, WrongType


@dataclass(frozen=True, eq=False)
class _Fit:
    """How each component is padded.

    Attributes:
      shapes: The padded shape of each; None for the largest in the batch.
      values: The padding value of each.
    """

    shapes: tuple[tuple[int | None, ...], ...]
    values: tuple[Any, ...]


@dataclass(frozen=True, eq=False)
class PaddedBatch(Stage):
    """Stacks elements after padding each component.

    Attributes:
      batch_size: Elements per batch.
      padded_shapes: Nested shapes, as given.
      padding_values: Nested values, as given.
      drop_remainder: Whether a smaller last batch is dropped.
      fit: Shapes and values by component; None if the element spec is unknown until the first element.
      num_parallel_calls: How many batches are padded at a time, AUTOTUNE to measure it; 0 for the reader's own thread.
      deterministic: Whether batches padded in parallel keep their order; None for what the options say.
    """

    name: ClassVar[str] = "padded_batch"
    sees_failures: ClassVar[bool] = True
    batch_size: int
    padded_shapes: Any
    padding_values: Any
    drop_remainder: bool
    fit: _Fit | None = None
    num_parallel_calls: int = 0
    deterministic: bool | None = None

    @staticmethod
    def of(
        element_spec: Any, batch_size: int, padded_shapes: Any, padding_values: Any, drop_remainder: bool
    ) -> PaddedBatch:
        """Checks the arguments, against the elements if their spec is known.

        Raises:
          TypeError: if a value has another dtype than its component.
          ValueError: if shapes or values do not fit the components, or a rank is unknown and no shape is
            given.
        """
        size = Batch.of(int(batch_size), drop_remainder).batch_size
        stage = PaddedBatch(size, padded_shapes, padding_values, drop_remainder)
        return stage if isinstance(element_spec, UnknownSpec) else stage._fitted(element_spec)

    def _fitted(self, element_spec: Any) -> PaddedBatch:
        """This stage, fitted to elements with this spec."""
        specs, structure = tree.flatten(element_spec)
        if not specs or not all(isinstance(spec, TensorSpec) for spec in specs):
            raise TypeError(
                f"padded_batch pads arrays, elements are {element_spec}; map them to arrays first"
            )
        shapes = _shapes(specs, self.padded_shapes)
        # Here None is a value, not a part of the structure: it means its component's default.
        given, nested = tree.flatten(self.padding_values, is_leaf=lambda node: node is None)
        given = given * len(specs) if nested.is_leaf() else given
        if len(given) != len(specs):
            raise InvalidArgumentError(
                f"padded_batch: {len(given)} padding values for {len(specs)} components of {structure}; give one for "
                "all, or one per component, None for its default"
            )
        values = [_value(value, spec) for value, spec in zip(given, specs, strict=True)]
        return replace(self, fit=_Fit(tuple(shapes), tuple(values)))

    def open(self, upstream: Opener, current: Pass) -> Iterator[Run]:
        """Starts one pass over the runs of `upstream()`; a batch fails with any of its elements."""
        if self.fit is None:
            return self._learning(upstream, current)
        tasks = self._tasks(upstream, current.provenance)
        if not self.num_parallel_calls:
            return map(self._attempt, tasks)
        calls = ParallelCalls(
            None,
            self._batch,
            self.text,
            current.options,
            current.arrival(self.deterministic),
            current.most_waiting_bytes,
            current.meter,
        )
        return calls.run(tasks, self.num_parallel_calls)

    def _learning(self, upstream: Opener, current: Pass) -> Iterator[Run]:
        """A pass that learns the element spec from its first element."""
        attempted = attempts(upstream(), current.provenance)
        for item in attempted:
            if isinstance(item, Failed):
                yield item
                continue
            runs = as_runs(chain((item,), attempted))
            yield from self._fitted(spec_shown_by(item)).open(lambda: runs, current)  # noqa: B023
            return

    def _tasks(self, upstream: Opener, provenance: bool) -> Iterator[Task]:
        """The elements of each batch."""
        number = 0
        held: list[Item] = []
        for item in attempts(upstream(), provenance):
            if isinstance(item, Failed):
                held = []
                yield item
                continue
            held.append(item)
            if len(held) == self.batch_size:
                yield number, _together(held)
                number += 1
                held = []
        if held and not self.drop_remainder:
            yield number, _together(held)

    def _attempt(self, task: Task) -> Run:
        if isinstance(task, Failed):
            return task
        number, (elements, structure, ids) = task
        try:
            return single(*self._batch(elements, structure, number), ids)
        except Exception as error:  # such as an element that does not fit
            return Failed(error)

    def _batch(self, elements: list[Leaves], structure: Structure, number: int) -> tuple[Leaves, Structure]:
        fit = cast("_Fit", self.fit)
        columns = zip(*elements, strict=True)
        padded = [
            _padded(list(column), shape, value)
            for column, shape, value in zip(columns, fit.shapes, fit.values, strict=True)
        ]
        return padded, structure

    def element_spec(self, upstream: Pipeline) -> Any:
        """The nested spec of an element after this stage."""
        before = upstream.element_spec
        specs, structure = tree.flatten(before)
        fit = self.fit or cast("_Fit", self._fitted(before).fit)
        size = self.batch_size if self.drop_remainder else None
        return tree.unflatten(
            structure,
            [TensorSpec((size, *shape), spec.dtype) for spec, shape in zip(specs, fit.shapes, strict=True)],
        )

    def cardinality(self, upstream: Pipeline) -> int:
        """Number of elements after this stage."""
        return Batch(self.batch_size, self.drop_remainder).cardinality(upstream)

    def describe(self) -> str:
        """The stage as a short text."""
        return f"padded_batch({self.batch_size})"


def _together(held: list[Item]) -> Item:
    """The elements' components as one item."""
    ids = [item[2] for item in held if item[2] is not None]
    return [item[0] for item in held], held[0][1], np.concatenate(ids) if ids else None


def _shape(given: Any) -> tuple[int | None, ...]:
    """A shape, given as an array, a sequence or one number."""
    if is_shape(given):
        return tuple(given)
    sizes = np.asarray(given)
    if sizes.ndim > 1 or sizes.dtype.kind not in "iu":
        raise WrongType(f"padded_batch: a padded shape has numbers and None, got {given!r:.60}")
    return tuple(sizes.reshape(-1).tolist())


def _shapes(specs: list[TensorSpec], padded_shapes: Any) -> list[tuple[int | None, ...]]:
    if padded_shapes is None:
        if any(spec.shape is None for spec in specs):
            raise InvalidArgumentError(f"padded_batch: the rank of {specs} is unknown; give padded_shapes")
        return [spec.shape or () for spec in specs]
    shapes = [_shape(given) for given in tree.flatten(padded_shapes, is_leaf=is_shape)[0]]
    if len(shapes) != len(specs):
        raise InvalidArgumentError(f"padded_batch: {len(shapes)} padded shapes for {len(specs)} components")
    for spec, shape in zip(specs, shapes, strict=True):
        if spec.shape is not None and len(spec.shape) != len(shape):
            raise InvalidArgumentError(
                f"padded_batch: padded shape {tuple(shape)} for a component of shape {spec.shape}"
            )
        if any(
            room not in (None, -1) and have is not None and have > room
            for have, room in zip(spec.shape or (), shape, strict=False)
        ):
            raise InvalidArgumentError(
                f"padded_batch: a component of shape {spec.shape} does not fit the padded shape {tuple(shape)}; give a "
                "larger one, or None for the largest in the batch"
            )
    return [tuple(None if size in (None, -1) else int(size) for size in shape) for shape in shapes]


def _value(value: Any, spec: TensorSpec) -> Any:
    if value is None:
        return b"" if spec.dtype == STRING else spec.dtype.type(0)
    if (
        isinstance(value, int | float | complex)
        and not isinstance(value, np.generic)
        and spec.dtype != STRING
    ):
        return _python_number(value, spec)
    given = convert(value)
    if isinstance(given, bytes) != (spec.dtype == STRING):
        raise TypeError(f"padded_batch: padding value {value!r} for a component of dtype {spec.dtype_name}")
    if isinstance(given, bytes):
        return given
    if np.ndim(given):
        raise InvalidArgumentError(f"padded_batch: a padding value is one number, got {value!r:.60}")
    if given.dtype != spec.dtype:
        raise TypeError(
            f"padded_batch: padding value of dtype {given.dtype} for a component of dtype "
            f"{spec.dtype_name}; make them equal"
        )
    return spec.dtype.type(given)


def _python_number(value: Any, spec: TensorSpec) -> Any:
    """A Python number, converted to a component's dtype.

    Raises:
      TypeError: if that would change the number.
    """
    fitted = converted(np.asarray(value), spec.dtype)
    if fitted is not None and isinstance(value, bool) == (spec.dtype == np.bool_):
        return fitted[()]
    raise TypeError(
        f"padded_batch: {spec.dtype_name}, the dtype of a component, cannot hold the padding value {value!r}"
    )


def _padded(values: list[Any], shape: tuple[int | None, ...], padding: Any) -> Array:
    found = [np.shape(value) for value in values]
    for index, size in enumerate(found):
        if len(size) != len(shape):
            raise InvalidArgumentError(
                f"padded_batch: element {index} of the batch has shape {size}, padded shape is {shape}"
            )
    target = tuple(
        max(size[axis] for size in found) if wanted is None else wanted for axis, wanted in enumerate(shape)
    )
    dtype = STRING if isinstance(padding, bytes) else padding.dtype
    result = np.empty((len(values), *target), dtype)
    result[...] = padding
    for index, (value, size) in enumerate(zip(values, found, strict=True)):
        if any(have > room for have, room in zip(size, target, strict=True)):
            raise DataLossError(
                f"padded_batch: element {index} of the batch has shape {size}, which does not fit {target}; "
                "give larger padded_shapes, or None for the largest in the batch"
            )
        corner: Any = (index, *(slice(0, have) for have in size))
        result[corner] = value
    return result
