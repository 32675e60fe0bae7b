"""Methods that compute with elements."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any, Self

from workbench.arguments import function, optional_flag, whole_number
from workbench.data.methods.staged import Staged
from workbench.data.stages.computing import probe
from workbench.data.stages.computing.flat import Interleave
from workbench.data.stages.computing.functions import (
    Map,
    check_result,
    refuse_later_results,
    spec_by_computing,
)
from workbench.data.stages.computing.scan import Scan
from workbench.data.stages.grouping.batch import Batch
from workbench.data.stages.grouping.unbatch import Unbatch
from workbench.data.stages.prefetch import check_parallel_calls
from workbench.errors import InvalidArgumentError, OutOfRangeError


class Computing(Staged):
    """Methods that call functions of elements or of whole batches."""

    def map(
        self,
        map_func: Callable[..., Any],
        num_parallel_calls: int | None = None,
        deterministic: bool | None = None,
        synchronous: bool | None = None,
        use_unbounded_threadpool: bool = False,
        name: str | None = None,
    ) -> Self:
        """Replaces each element by `map_func(element)`; the components of a tuple become separate arguments.

        Reading `element_spec` may call the function with made-up values. A size of its results is known if all results
        have it, on every branch of the function: the values make "if x > 3" both true and false. If the function raises
        for made-up values, the first element determines the dtypes and numbers of dimensions of results. It also
        determines their sizes if the function accepts other contents of the same sizes, and other sizes do not change
        those of results, as for `np.frombuffer(text, np.uint8).reshape(28, 28)`.

        If the result is provably the same, bit for bit, workbench computes many rows of arrays at a time, without
        calling the function for each. This holds for a plain function that meets both conditions:

        * Its code has no branch, loop, `try` or inner function, and changes nothing. It refers only to NumPy, to
          numbers, and to other such functions, by names of its module or as closures, and not to lists, arrays, objects
          or other modules. If such a name is rebound, the next element uses the new value.
        * It computes element by element with operations that IEEE 754 or whole numbers define exactly: `+ - * /`,
          `abs`, `sqrt`, comparisons, logic, bits, `//` and `%` of whole numbers by a constant, powers of whole numbers,
          `x ** 2` of arrays, `astype` except from fractions to whole numbers, `maximum` and `minimum` of whole numbers.
          Exponentials, sums, indices and shapes do not count. Dtypes are bool, whole numbers, float32 and float64.

        If NumPy would warn about a block, for example of an overflow or a division by zero, workbench calls the
        function row by row, so the warning or error belongs to its element. It compares some rows of each block with a
        call. `explain()` shows what was chosen, and why. `options.experimental_optimization.map_vectorization = False`
        turns this off, and so does a number of parallel calls. `map_batches` calls any function of whole arrays for
        many elements.

        Args:
          map_func: Returns numbers, text, arrays, or tuples and dicts of them.
          num_parallel_calls: Number of calls at a time; with None, the reading thread makes them. Threads make parallel
            calls, or processes if `Options.threading.worker_kind` requests them. `AUTOTUNE` measures a few elements,
            and uses processes for functions that hold the GIL and refer to nothing mutable.
          deterministic: Whether results keep their order; True unless the options say otherwise, and always before
            `cache` and `snapshot`, in distributed datasets and in the data service, which find elements again by their
            numbers.
          synchronous: Whether the reading thread calls the function; excludes `num_parallel_calls`.
          use_unbounded_threadpool: Has no effect: `num_parallel_calls` sets the number of threads.
          name: Name of the stage.

        Raises:
          InvalidArgumentError: if `synchronous` is combined with parallel calls, or their number is less than 1.
          TypeError: if the function takes other arguments, or has a `yield`. Also if it returns what no element can
            hold, provided that this can be checked early: its code and that of the maps before it, at most eight, only
            computes or makes a generator, and elements have at most 64 KiB. For other functions, a stage that needs the
            element spec raises this error, or the first pass.

        >>> [int(x) for x in wb.data.Dataset.range(4).map(lambda x: x * x)]
        [0, 1, 4, 9]
        """
        if optional_flag(synchronous, "map: synchronous") and num_parallel_calls is not None:
            raise InvalidArgumentError(
                f"map: synchronous=True calls the function one element at a time; leave out "
                f"num_parallel_calls={num_parallel_calls}"
            )
        refuse_later_results(function(map_func, "map: map_func"), "map")
        spec = self.known_element_spec
        if spec is None:
            spec = spec_by_computing(self)  # type: ignore[arg-type]
        if spec is not None:
            probe.check_arguments(map_func, spec, "map")
            check_result(map_func, self.with_element_spec(spec), "map")  # type: ignore[arg-type]
        check_parallel_calls("map", num_parallel_calls)
        in_order = optional_flag(deterministic, "map: deterministic")
        return self.with_stage(Map(map_func, num_parallel_calls or 0, in_order), name)

    def map_batches(
        self,
        map_func: Callable[..., Any],
        batch_size: int,
        num_parallel_calls: int | None = None,
        deterministic: bool | None = None,
        name: str | None = None,
    ) -> Self:
        """As `map`, for a function of whole arrays, which is called once for `batch_size` elements.

        `range(10**6).map_batches(lambda x: 2 * x + 1, 4096)` has the elements of `map(lambda x: 2 * x + 1)`, at a
        fraction of its cost. The number of elements is unknown afterwards; state it with `assert_cardinality`.

        Args:
          map_func: Takes the elements stacked, shape `(n, ...)` with `n` up to `batch_size`, and returns as many rows.
          batch_size: The most elements per call.
          num_parallel_calls: See `map`.
          deterministic: See `map`.
          name: Name of the stage.

        Raises:
          InvalidArgumentError: if a batch would be empty, or the function returns scalars.
        """
        batches = self.with_stage(Batch.of(whole_number(batch_size, "map_batches: batch_size"), False))
        mapped = batches.map(map_func, num_parallel_calls, deterministic, name=name)
        with suppress(OutOfRangeError):  # as in `unbatch`
            Unbatch.check(mapped.unread().element_spec)
        return mapped.with_stage(Unbatch())

    def flat_map(self, map_func: Callable[..., Any], name: str | None = None) -> Self:
        """Takes the elements of the datasets that `map_func` returns, one dataset after the other.

        Args:
          map_func: Returns a dataset for an element.
          name: Name of the stage.

        Raises:
          TypeError: if it returns anything else.

        >>> [int(x) for x in wb.data.Dataset.range(3).flat_map(lambda n: wb.data.Dataset.range(n))]
        [0, 0, 1]
        """
        stage = Interleave("flat_map", function(map_func, "flat_map: map_func")).checked(self)  # type: ignore[arg-type]
        return self.with_stage(stage, name)

    def interleave(
        self,
        map_func: Callable[..., Any],
        cycle_length: int | None = None,
        block_length: int | None = None,
        num_parallel_calls: int | None = None,
        deterministic: bool | None = None,
        name: str | None = None,
    ) -> Self:
        """Takes elements in turn from the datasets that `map_func` returns, `cycle_length` of them at a time.

        Args:
          map_func: Returns a dataset for an element.
          cycle_length: Number of datasets that are open at a time.
          block_length: Number of consecutive elements to take from one dataset.
          num_parallel_calls: Number of datasets that threads read at a time; they stay two blocks ahead and also open
            up to 256 of the next datasets. `AUTOTUNE` reads all datasets of the cycle, None uses no threads. Without
            order, a cycle has at most 256.
          deterministic: True keeps the order of reading without threads, and is the default unless the options say
            otherwise; False takes elements from any dataset that has some.
          name: Name of the stage.

        Raises:
          InvalidArgumentError: if cycle, block or number of calls is less than 1.
          TypeError: if `map_func` returns anything other than a dataset.

        >>> files = wb.data.Dataset.from_tensor_slices([10, 20])
        >>> lines = files.interleave(lambda start: wb.data.Dataset.range(start, start + 3), cycle_length=2)
        >>> [int(x) for x in lines]
        [10, 20, 11, 21, 12, 22]
        """
        stage = Interleave.of(
            function(map_func, "interleave: map_func"),
            cycle_length,
            block_length,
            num_parallel_calls,
            deterministic,
        )
        return self.with_stage(stage.checked(self), name)  # type: ignore[arg-type]

    def scan(self, initial_state: Any, scan_func: Callable[[Any, Any], Any], name: str | None = None) -> Self:
        """Computes with a state and each element: `state, output = scan_func(state, element)`.

        The elements are the outputs.

        Args:
          initial_state: Nested numbers and arrays that the first element gets.
          scan_func: Returns the next state, of the same structure and dtypes, and an output.
          name: Name of the stage.

        Raises:
          TypeError: in a pass, if the function changes structure or dtype of the state, or does not return a pair.

        >>> sums = wb.data.Dataset.range(5).scan(np.int64(0), lambda total, x: (total + x, total + x))
        >>> [int(x) for x in sums]
        [0, 1, 3, 6, 10]
        """
        return self.with_stage(Scan.of(initial_state, function(scan_func, "scan: scan_func")), name)
