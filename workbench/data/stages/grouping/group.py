"""Windows by key, and batches of sequences of similar length."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from workbench import tree
from workbench.arguments import function, whole_number
from workbench.data.passes import Pass
from workbench.data.sources.memory import Held
from workbench.data.spec import (
    INFINITE_CARDINALITY,
    UNKNOWN_CARDINALITY,
    UnknownSpec,
    any_size,
    is_shape,
    relax,
)
from workbench.data.stage import Opener, Pipeline, Stage
from workbench.data.stages.computing import made_up, probe
from workbench.data.stages.computing.functions import note_function
from workbench.data.structure import flatten
from workbench.data.tables import Failed, Item, ListTable, Run, items
from workbench.errors import InvalidArgumentError

_GREATEST_KEY = np.iinfo(np.int64).max


@dataclass(frozen=True, eq=False)
class GroupByWindow(Stage):
    """Collects elements by key and reduces full windows; incomplete windows follow in ascending key order.

    Attributes:
      key_func: Returns an element's key, an integer.
      reduce_func: Turns a key and a dataset of its elements into a dataset.
      window_size_func: Returns the size of a key's window.
    """

    name: ClassVar[str] = "group_by_window"
    calls_functions: ClassVar[bool] = True
    key_func: Callable[..., Any]
    reduce_func: Callable[[Any, Any], Pipeline]
    window_size_func: Callable[[Any], Any]

    @staticmethod
    def of(
        key_func: Callable[..., Any],
        reduce_func: Callable[[Any, Any], Pipeline],
        window_size: int | None,
        window_size_func: Callable[[Any], Any] | None,
    ) -> GroupByWindow:
        """Checks the arguments.

        Raises:
          ValueError: unless exactly one of the two sizes is given.
          TypeError: if an argument is not a function, or the size is not a whole number.
        """
        if (window_size is None) == (window_size_func is None):
            raise InvalidArgumentError("group_by_window needs either window_size or window_size_func")
        if window_size_func is not None:
            function(window_size_func, "group_by_window: window_size_func")
        return GroupByWindow(
            function(key_func, "group_by_window: key_func"),
            function(reduce_func, "group_by_window: reduce_func"),
            window_size_func or _Fixed(whole_number(window_size, "group_by_window: window_size")),
        )

    def open(self, upstream: Opener, current: Pass) -> Iterator[Run]:
        """Starts one pass over the runs of `upstream()`."""
        groups: dict[int, list[Item]] = {}
        sizes: dict[int, int] = {}
        windows = 0
        for item in items(upstream(), current.provenance):
            failed = None
            try:
                key = _key(probe.call(self.key_func, item[1].pack(item[0])))
                if key not in groups:
                    sizes[key] = self._size(key)
                    groups[key] = []
            except Exception as error:
                failed = Failed(error)
            if failed is not None:
                yield failed
                continue
            groups[key].append(item)
            if len(groups[key]) == sizes[key]:
                yield from self._reduced(key, groups.pop(key), current.inside(0, windows))
                windows += 1
        for key in sorted(groups):
            yield from self._reduced(key, groups[key], current.inside(0, windows))
            windows += 1

    def _size(self, key: int) -> int:
        size = whole_number(
            self.window_size_func(np.int64(key)), "group_by_window: what window_size_func returns"
        )
        if size < 1:
            raise InvalidArgumentError(
                f"group_by_window: window size {size} for key {key}; it must be at least 1"
            )
        return size

    def _reduced(self, key: int, held: list[Item], current: Pass) -> Iterator[Run]:
        try:
            return self._dataset(key, current.dataset(_source(held))).open(current)
        except Exception as error:
            return iter([Failed(error)])

    def element_spec(self, upstream: Pipeline) -> Any:
        """The nested spec of an element after this stage."""
        # The window for the function has the real element spec, so its batches keep unknown dimensions.
        example = upstream.with_source(_example(upstream), ())
        spec = self._dataset(0, example).element_spec
        # Key 1 may not exist, and its windows may have another shape.
        with contextlib.suppress(Exception):
            spec = relax(spec, self._dataset(1, example).element_spec)
        return spec

    def _dataset(self, key: int, window: Any) -> Pipeline:
        reduced = self.reduce_func(np.int64(key), window)
        if not hasattr(reduced, "open"):
            unfit = TypeError(
                f"group_by_window: reduce_func must return a Dataset, got {type(reduced).__name__} for key {key}; "
                "for example window.batch(n)"
            )
            note_function(unfit, self.reduce_func)
            raise unfit
        return reduced

    def cardinality(self, upstream: Pipeline) -> int:
        """Number of elements after this stage."""
        return INFINITE_CARDINALITY if upstream.cardinality() == INFINITE_CARDINALITY else UNKNOWN_CARDINALITY


@dataclass(frozen=True)
class _Fixed:
    """A window size that is the same for all keys."""

    size: int

    def __call__(self, key: Any) -> int:
        return self.size


@dataclass(frozen=True)
class _Bucket:
    """Determines the bucket of an element, and how a bucket is batched."""

    length: Callable[..., Any]
    boundaries: tuple[int, ...]
    batch_sizes: tuple[int, ...]
    padded_shapes: Any
    padding_values: Any
    to_boundary: bool
    padding: bool
    drop_remainder: bool

    def key(self, *element: Any) -> int:
        """The number of an element's bucket."""
        length = whole_number(self.length(*element), "bucket_by_sequence_length: the length of an element")
        return int(np.searchsorted(self.boundaries, length, side="right"))

    def size(self, key: Any) -> int:
        """The batch size of a bucket."""
        return self.batch_sizes[int(key)]

    def reduce(self, key: Any, window: Any) -> Any:
        """The batches of a bucket."""
        size = self.size(key)
        if not self.padding:
            return window.batch(size, self.drop_remainder)
        shapes = self.padded_shapes
        if self.to_boundary:
            if int(key) == len(self.boundaries):
                raise InvalidArgumentError(
                    "bucket_by_sequence_length: pad_to_bucket_boundary, but an element is above all "
                    "boundaries"
                )
            limit = self.boundaries[int(key)] - 1
            if shapes is None:
                shapes = tree.map(lambda spec: list(spec.shape or ()), window.element_spec)
            rooms, structure = tree.flatten(shapes, is_leaf=is_shape)
            shapes = tree.unflatten(
                structure, [[limit if n in (None, -1) else n for n in room] for room in rooms]
            )
        return window.padded_batch(size, shapes, self.padding_values, drop_remainder=self.drop_remainder)


def bucketed(
    element_spec: Any,
    length: Callable[..., Any],
    boundaries: list[int],
    batch_sizes: list[int],
    *,
    padded_shapes: Any,
    padding_values: Any,
    pad_to_bucket_boundary: bool,
    no_padding: bool,
    drop_remainder: bool,
) -> GroupByWindow:
    """The stage of `Dataset.bucket_by_sequence_length`; `element_spec` is that of the elements, if known.

    Raises:
      ValueError: unless there is one batch size more than boundaries.
    """
    if len(batch_sizes) != len(boundaries) + 1:
        raise InvalidArgumentError(
            f"bucket_by_sequence_length: {len(batch_sizes)} batch sizes for {len(boundaries)} boundaries; "
            f"give {len(boundaries) + 1}, one for each bucket"
        )
    bucket = _Bucket(
        function(length, "bucket_by_sequence_length: element_length_func"),
        tuple(whole_number(boundary, "bucket_by_sequence_length: each boundary") for boundary in boundaries),
        tuple(whole_number(size, "bucket_by_sequence_length: each batch size") for size in batch_sizes),
        padded_shapes,
        padding_values,
        pad_to_bucket_boundary,
        not no_padding,
        drop_remainder,
    )

    def reduce(key: Any, window: Any) -> Any:
        # The window's own elements may have equal shapes by chance.
        spec = any_size(window.element_spec) if isinstance(element_spec, UnknownSpec) else element_spec
        return bucket.reduce(key, window.with_element_spec(spec))

    return GroupByWindow.of(bucket.key, reduce, None, bucket.size)


def _example(upstream: Pipeline) -> Held:
    """A window of two elements with the element spec of `upstream`, whatever the shapes of these two."""
    spec = upstream.element_spec
    try:
        rows = [flatten(made_up.element(upstream, filling)) for filling in (made_up.ONES, made_up.TWOS)]
    except TypeError:  # no component has an unknown rank; the function still may not read the elements
        rows = [flatten(np.int64(0))] * 2
    return Held(ListTable([leaves for leaves, _ in rows], rows[0][1], None), spec)


def _key(result: Any) -> int:
    array = np.asarray(result)
    if array.ndim or array.dtype.kind not in "biu" or int(array) > _GREATEST_KEY:
        raise InvalidArgumentError(
            f"group_by_window: a key is one whole number of int64, key_func returned {result!r:.80}"
        )
    return int(array)


def _source(held: list[Item]) -> Held:
    ids = [item[2] for item in held if item[2] is not None]
    return Held.of([item[0] for item in held], held[0][1], ids or None)
