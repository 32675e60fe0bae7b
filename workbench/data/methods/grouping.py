"""Methods that turn several elements into one, or one into several."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, NoReturn, Self

import numpy as np

from workbench.arguments import flag, optional_flag, whole_number
from workbench.data.methods.staged import Staged
from workbench.data.spec import spec_unread
from workbench.data.stages.grouping.batch import Batch
from workbench.data.stages.grouping.group import GroupByWindow, bucketed
from workbench.data.stages.grouping.padded import PaddedBatch
from workbench.data.stages.grouping.split import Regroup
from workbench.data.stages.grouping.unbatch import Unbatch, check_rows
from workbench.data.stages.grouping.window import Window
from workbench.data.stages.ordering.enumerate import Enumerate
from workbench.data.stages.prefetch import check_parallel_calls
from workbench.errors import InvalidArgumentError, OutOfRangeError


class Grouping(Staged):
    """Methods for batches, windows and numbers of elements."""

    def batch(
        self,
        batch_size: int,
        drop_remainder: bool = False,
        num_parallel_calls: int | None = None,
        deterministic: bool | None = None,
        name: str | None = None,
    ) -> Self:
        """Stacks `batch_size` consecutive elements; shape `(batch_size, ...)`.

        With `num_parallel_calls`, threads assemble several batches at a time, ahead of their use; this helps with large
        rows, because copying them lets other threads run. As the last stage of a distributed dataset, it leaves this
        to the replicas, each for its own rows.

        Args:
          batch_size: Elements per batch.
          drop_remainder: Whether to leave out a smaller last batch; then the batch dimension is known.
          num_parallel_calls: Number of batches that threads assemble at a time. `AUTOTUNE` measures the first ones and
            decides; with None, the reading thread assembles each batch.
          deterministic: Whether such batches keep their order; True unless the options say otherwise.
          name: Name of the stage.

        Raises:
          InvalidArgumentError: if a batch would be empty, or the number of calls is less than 1.

        >>> list(wb.data.Dataset.range(5).batch(2))
        [array([0, 1]), array([2, 3]), array([4])]
        """
        check_parallel_calls("batch", num_parallel_calls)
        stage = Batch.of(
            whole_number(batch_size, "batch: batch_size"), flag(drop_remainder, "batch: drop_remainder")
        )
        in_order = optional_flag(deterministic, "batch: deterministic")
        stage = replace(stage, num_parallel_calls=num_parallel_calls or 0, deterministic=in_order)
        return self.with_stage(stage, name)

    def padded_batch(
        self,
        batch_size: int,
        padded_shapes: Any = None,
        padding_values: Any = None,
        drop_remainder: bool = False,
        name: str | None = None,
        *,
        num_parallel_calls: int | None = None,
        deterministic: bool | None = None,
    ) -> Self:
        """Batches elements as `batch` does, after padding each component to a shape; None stands for the largest.

        Args:
          batch_size: Elements per batch.
          padded_shapes: Nested shapes, None for dimensions as large as the largest; None for all of them.
          padding_values: Nested values to pad with; None for zeros and empty strings.
          drop_remainder: Whether to leave out a smaller last batch.
          name: Name of the stage.
          num_parallel_calls: Number of batches that threads pad at a time, as for `batch`; TensorFlow has no such
            argument.
          deterministic: See `batch`.

        >>> rows = wb.data.Dataset.range(1, 4).map(lambda n: np.full(int(n), n))
        >>> next(iter(rows.padded_batch(3)))
        array([[1, 0, 0],
               [2, 2, 0],
               [3, 3, 3]])
        """
        check_parallel_calls("padded_batch", num_parallel_calls)
        size = whole_number(batch_size, "padded_batch: batch_size")
        drop = flag(drop_remainder, "padded_batch: drop_remainder")
        stage = PaddedBatch.of(spec_unread(self), size, padded_shapes, padding_values, drop)
        in_order = optional_flag(deterministic, "padded_batch: deterministic")
        stage = replace(stage, num_parallel_calls=num_parallel_calls or 0, deterministic=in_order)
        return self.with_stage(stage, name)

    def ragged_batch(
        self,
        batch_size: int,
        drop_remainder: bool = False,
        row_splits_dtype: Any = None,
        name: str | None = None,
    ) -> NoReturn:
        """Raises an error, because workbench has no ragged arrays.

        Args:
          batch_size: Elements of a batch.
          drop_remainder: Ignored.
          row_splits_dtype: Ignored.
          name: Ignored.

        Raises:
          NotImplementedError: always; the message suggests `padded_batch`.
        """
        raise NotImplementedError(
            f"ragged_batch({batch_size}): arrays have no ragged rows; use padded_batch({batch_size}), or window and "
            "keep the elements apart"
        )

    def sparse_batch(self, batch_size: int, row_shape: Any, name: str | None = None) -> NoReturn:
        """Raises an error, because workbench has no sparse arrays.

        Args:
          batch_size: Elements of a batch.
          row_shape: The dense shape of each row.
          name: Ignored.

        Raises:
          NotImplementedError: always; the message suggests `padded_batch`.
        """
        raise NotImplementedError(
            f"sparse_batch({batch_size}): there are no sparse arrays; use padded_batch({batch_size}, {row_shape})"
        )

    def unbatch(self, name: str | None = None) -> Self:
        """Makes one element of each row, as `from_tensor_slices` does.

        Raises:
          InvalidArgumentError: if components are scalars, or have different numbers of rows.

        >>> [int(x) for x in wb.data.Dataset.range(4).batch(3).unbatch()]
        [0, 1, 2, 3]
        """
        with suppress(OutOfRangeError):  # as in `unique`
            Unbatch.check(self.unread().element_spec)
        return self.with_stage(Unbatch(), name)

    def rebatch(
        self, batch_size: int | Sequence[int], drop_remainder: bool = False, name: str | None = None
    ) -> Self:
        """Regroups the rows of all batches, in order, into batches of other sizes.

        Args:
          batch_size: Rows per batch, or several numbers to cycle through.
          drop_remainder: Whether to leave out a smaller last batch.
          name: Name of the stage.

        Raises:
          InvalidArgumentError: if a size is negative, or none is positive; or if components are known to be scalars.
        """
        stage = Regroup.of(batch_size, flag(drop_remainder, "rebatch: drop_remainder"))
        with suppress(OSError):  # the file is not on this machine
            spec = self.known_element_spec
            if spec is not None:
                check_rows(spec, "rebatch")
        return self.with_stage(stage.knowing(lambda: self.element_spec), name)

    def window(
        self,
        size: int,
        shift: int | None = None,
        stride: int = 1,
        drop_remainder: bool = False,
        name: str | None = None,
    ) -> Self:
        """Makes datasets of `size` elements each, which start every `shift` elements and take every `stride`-th.

        Args:
          size: Number of elements in a window.
          shift: Distance between the beginnings of two windows (default `size`).
          stride: Distance between two elements of a window.
          drop_remainder: Whether to leave out windows that are not full.
          name: Name of the stage.

        >>> [[int(x) for x in window] for window in wb.data.Dataset.range(5).window(3, shift=2)]
        [[0, 1, 2], [2, 3, 4], [4]]
        """
        size = whole_number(size, "window: size")
        shift = size if shift is None else whole_number(shift, "window: shift")
        drop = flag(drop_remainder, "window: drop_remainder")
        stage = Window.of(size, shift, whole_number(stride, "window: stride"), drop)
        return self.with_stage(stage, name)

    def group_by_window(
        self,
        key_func: Callable[..., Any],
        reduce_func: Callable[[Any, Any], Any],
        window_size: int | None = None,
        window_size_func: Callable[[Any], Any] | None = None,
        name: str | None = None,
    ) -> Self:
        """Collects elements by key; a full window becomes `reduce_func(key, window)`.

        Args:
          key_func: Returns an element's key, an int64 scalar.
          reduce_func: Takes a key and the dataset of its elements; returns a dataset.
          window_size: Elements of a window.
          window_size_func: The same by key; one of the two is given.
          name: Name of the stage.
        """
        return self.with_stage(GroupByWindow.of(key_func, reduce_func, window_size, window_size_func), name)

    def bucket_by_sequence_length(
        self,
        element_length_func: Callable[..., Any],
        bucket_boundaries: list[int],
        bucket_batch_sizes: list[int],
        padded_shapes: Any = None,
        padding_values: Any = None,
        pad_to_bucket_boundary: bool = False,
        no_padding: bool = False,
        drop_remainder: bool = False,
        name: str | None = None,
    ) -> Self:
        """Batches elements of similar length; a length equal to a boundary belongs to the upper bucket.

        Args:
          element_length_func: Returns an element's length.
          bucket_boundaries: Upper ends of all buckets but the last.
          bucket_batch_sizes: Elements per batch, by bucket.
          padded_shapes: See `padded_batch`.
          padding_values: See `padded_batch`.
          pad_to_bucket_boundary: Whether unknown dimensions are as long as the bucket allows.
          no_padding: Whether elements of a batch already have the same shape.
          drop_remainder: Whether to leave out smaller last batches.
          name: Name of the stage.
        """
        stage = bucketed(
            spec_unread(self),
            element_length_func,
            bucket_boundaries,
            bucket_batch_sizes,
            padded_shapes=padded_shapes,
            padding_values=padding_values,
            pad_to_bucket_boundary=flag(
                pad_to_bucket_boundary, "bucket_by_sequence_length: pad_to_bucket_boundary"
            ),
            no_padding=flag(no_padding, "bucket_by_sequence_length: no_padding"),
            drop_remainder=flag(drop_remainder, "bucket_by_sequence_length: drop_remainder"),
        )
        return self.with_stage(stage, name)

    def enumerate(self, start: int = 0, name: str | None = None) -> Self:
        """Pairs each element with its number, an int64 that counts from `start`.

        >>> [(int(n), int(x)) for n, x in wb.data.Dataset.range(5, 7).enumerate()]
        [(0, 5), (1, 6)]
        """
        first = whole_number(start, "enumerate: start")
        if not np.iinfo(np.int64).min <= first <= np.iinfo(np.int64).max:
            raise InvalidArgumentError(f"enumerate: start is {first}, which int64 cannot hold")
        return self.with_stage(Enumerate(first), name)
