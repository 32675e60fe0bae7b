"""`wb.collectives.sweep`: how long collectives take, size by size."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, get_args

import numpy as np

from workbench.backends.library import Library, namespace_named
from workbench.communicators import Reduction
from workbench.communicators.core.options import Algorithm, Options
from workbench.distribute.strategies.strategy import Strategy
from workbench.errors import ClusterClosed, InvalidArgumentError, UnavailableError
from workbench.runtime import Cluster
from workbench.telemetry.cost_model import LinkCost, Pattern, link_cost
from workbench.telemetry.dataframe import frame_of
from workbench.telemetry.export.trace_files import nccl_tests_text
from workbench.telemetry.feed.excerpt import excerpt
from workbench.telemetry.feed.feed import Feed
from workbench.telemetry.feed.sweeps import Baseline, Sweep, sweeps
from workbench.telemetry.formatting import rate_text, significant
from workbench.telemetry.records import bandwidth
from workbench.telemetry.snapshot import TableRow
from workbench.ui.collectives.limits import measure_limits
from workbench.ui.collectives.sweep_baseline import baselines_of, comparison_text, load_baselines, save_sweeps
from workbench.ui.collectives.timings_table import HEADINGS, LEFT_COLUMNS, timing_cells
from workbench.ui.models.collectives_model import collectives_model
from workbench.ui.render import html
from workbench.ui.widgets.bundle import Bundle, mimebundle
from workbench.ui.widgets.sources import Fixed

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

    from workbench.runtime.replica.env import ReplicaEnv

Swept = Literal["all_reduce", "reduce_scatter", "all_gather", "broadcast", "reduce"]
PURPOSE: Final = "sweep"
_WARM_UP: Final = "warm-up"
_WARM_UP_ROUNDS: Final = 2  # rounds of each size
# Rounds of each operation before its first size. Replicas reach a new operation at different times, and its first
# dozens of rounds take many times as long.
_FIRST_ROUNDS: Final = 40
_MOST_ROUNDS: Final = 1000  # a replica's telemetry ring holds many times this number
_PATIENCE_SECONDS: Final = 5.0
_MIN_FACTOR: Final = 2


@dataclass(frozen=True, slots=True)
class _Round:
    """What each replica does in one step of the sweep; `elements` is the length of its array."""

    op: Swept
    redop: str
    elements: int
    dtype: str
    algorithm: Algorithm
    options: Options | None
    library: Library
    warm_up_rounds: int
    rounds: int


class SweepResult:
    """Timings of collectives by size; prints like nccl-tests, and a notebook draws bandwidth over size.

    Attributes:
      rows: One per operation and size; times are of the transfer, from the arrival of the last replica.
      sweeps: Per operation, the percentiles by size and the fit t = latency + S / bandwidth; empty for one replica.
    """

    def __init__(self, feed: Feed, baselines: Mapping[tuple[str, str], Baseline] | None = None) -> None:
        """Wraps records; `baselines` by operation and dtype."""
        self._feed = feed
        self._snapshot = feed.snapshot()
        self.rows: tuple[TableRow, ...] = self._snapshot.table
        self.sweeps: tuple[Sweep, ...] = tuple(
            replace(found, baseline=(baselines or {}).get((found.op, found.dtype)))
            for found in sweeps(self.rows)
        )

    def fit(self, op: Swept = "all_reduce") -> Sweep:
        """The sweep of one operation.

        Raises:
          KeyError: if it was not swept, or has no meaningful bandwidth, as with one replica.
        """
        for found in self.sweeps:
            if found.op == op:
                return found
        raise KeyError(
            f"no bandwidth of {op} was measured: there must be two replicas or more, and two sizes or more"
        )

    def link(self, pattern: Pattern = "ring") -> LinkCost:
        """α and β of a link between two replicas, from the fit of all_reduce, for `wb.collectives.what_if`.

        Args:
          pattern: The pattern of the measured all_reduces: "ring" if each replica combines its part, which is the
            default except for small arrays, "one" for `algorithm="one_device"`.

        Raises:
          KeyError: if all_reduce was not swept over at least two replicas.
          ValueError: if there were too few sizes for a fit, or time did not grow with size.
        """
        found = self.fit("all_reduce")
        if found.latency_us is None or found.bandwidth is None:
            raise ValueError(
                "time does not grow with size here, so there is no fit: sweep more and larger sizes"
            )
        return link_cost(pattern, found.n, latency_us=found.latency_us, bandwidth=found.bandwidth)

    def save(self, path: str | Path) -> Path:
        """Saves the percentiles and fits in a small JSON file, for the `baseline=path` of a later sweep.

        Raises:
          OSError: if it cannot be written.
        """
        return save_sweeps(path, self.sweeps)

    def to_nccl_tests(self) -> str:
        """The table in the format of nccl-tests, to paste beside the output of `all_reduce_perf`."""
        return nccl_tests_text(self.rows)

    def to_pandas(self) -> pd.DataFrame:
        """A row per operation and size: size, median time, bandwidths by the formulas of nccl-tests.

        Raises:
          BackendUnavailable: if pandas is not installed.
        """
        return frame_of(_figures(row) for row in self.rows)

    def to_arrow(self) -> pa.Table:
        """The records behind the table, one per replica and collective; columns as in `telemetry.records`."""
        return self._feed.to_arrow()

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> Bundle:
        source = Fixed(
            "sweep", replace(collectives_model(self._snapshot, status="stopped"), sweeps=self.sweeps)
        )
        return mimebundle(source, text=repr(self), html=self._repr_html_(), include=include)

    def __repr__(self) -> str:
        compared = [f"# {text}" for text in map(comparison_text, self.sweeps) if text]
        return "\n".join([self.to_nccl_tests(), *map(_fit_text, self.sweeps), *compared])

    def _repr_html_(self) -> str:
        table = html.table(HEADINGS, [timing_cells(row) for row in self.rows], left=LEFT_COLUMNS)
        compared = [text for text in map(comparison_text, self.sweeps) if text]
        return html.card("Sweep", [*map(_fit_text, self.sweeps), *compared], parts=[table])


def sweep(
    strategy: Strategy,
    op: Swept | Sequence[Swept] = "all_reduce",
    *,
    smallest_bytes: int = 8,
    largest_bytes: int = 128 << 20,
    factor: int = 2,
    dtype: str = "float32",
    redop: str = "sum",
    algorithm: Algorithm = "auto",
    rounds: int = 20,
    baseline: SweepResult | str | Path | None = None,
) -> SweepResult:
    """Times collectives between the replicas of a strategy over message sizes, like nccl-tests.

    Each size is one step: two rounds to warm up, then `rounds` that count. Before its first size, each operation warms
    up with a small message. The figures come from the records that `wb.collectives` uses too; it shows those of a sweep
    only with `internal=True`.

    Args:
      strategy: The strategy that has the replicas.
      op: "all_reduce", "reduce_scatter", "all_gather", "broadcast", "reduce", or several of them.
      smallest_bytes: First size S, as nccl-tests counts it: of all parts for reduce_scatter and all_gather.
      largest_bytes: Last size. Each replica needs two to three times as much memory.
      factor: The ratio between successive sizes, at least 2.
      dtype: Element type.
      redop: "sum", "mean", "min", "max" or "prod".
      algorithm: The algorithm of all_reduce, as for `Communicator.all_reduce`.
      rounds: Number of rounds per size, 1 to 1,000.
      baseline: An earlier sweep, or the file that its `save` wrote, to compare with: a ghost in the chart, a line in
        the text. Operations and dtypes are matched; groups and numbers of replicas may differ.

    Raises:
      InvalidArgumentError: if an argument is invalid; the message says which.
      ClusterClosed: if the cluster was closed.
      UnavailableError: if no replica's telemetry arrived.
      OSError: if the baseline cannot be read.

    >>> wb.collectives.sweep(strategy, largest_bytes=1 << 20)  # doctest: +SKIP
    """
    ops: tuple[Swept, ...] = (op,) if isinstance(op, str) else tuple(op)
    _check(strategy, ops, smallest_bytes, largest_bytes, factor=factor, rounds=rounds, algorithm=algorithm)
    itemsize = _dtype(dtype).itemsize
    if isinstance(baseline, SweepResult):
        baselines = baselines_of(baseline.sweeps, "the earlier sweep")
    else:
        baselines = {} if baseline is None else load_baselines(baseline)
    own, name = strategy.group, strategy.group.name
    cluster = own.gang.cluster
    if cluster is None or cluster.closed:
        raise ClusterClosed("the cluster of this strategy was closed: connect again, and make a new strategy")
    measure_limits(cluster, name)
    steps = []
    for each in ops:
        lengths = array_lengths(each, own.size, itemsize, smallest_bytes, largest_bytes, factor=factor)
        what = _Round(
            each,
            redop,
            min(own.size, lengths[0]),
            dtype,
            algorithm,
            strategy.communication_options,
            strategy.library,
            warm_up_rounds=_FIRST_ROUNDS,
            rounds=0,
        )
        strategy.run_collective(_carry_out, (what,))
        for elements in lengths:
            what = replace(what, elements=elements, warm_up_rounds=_WARM_UP_ROUNDS, rounds=rounds)
            steps.append(strategy.run_collective(_carry_out, (what,)).value(0))
    records = _arrived(cluster, name, steps, own.size * rounds * len(steps))
    limit = cluster.feed.limit(name)
    return SweepResult(excerpt(records, {} if limit is None else {name: limit}), baselines)


def array_lengths(
    op: Swept, replicas: int, itemsize: int, smallest_bytes: int, largest_bytes: int, *, factor: int
) -> list[int]:
    """The length of a replica's array at each size, ascending, without duplicates.

    Args:
      op: Kind of collective.
      replicas: Number of replicas.
      itemsize: Bytes per element.
      smallest_bytes: First size S.
      largest_bytes: Last size S at most.
      factor: The ratio between successive sizes.

    >>> array_lengths("all_reduce", 4, 4, 8, 64, factor=2)
    [2, 4, 8, 16]
    >>> array_lengths("all_gather", 4, 4, 8, 64, factor=2)
    [1, 2, 4]
    """
    lengths = []
    size = smallest_bytes
    while size <= largest_bytes:
        match op:
            case "all_gather":
                lengths.append(max(1, size // (itemsize * replicas)))
            case "reduce_scatter":
                lengths.append(replicas * max(1, size // (itemsize * replicas)))
            case _:
                lengths.append(max(1, size // itemsize))
        size *= factor
    return list(dict.fromkeys(lengths))


def _carry_out(env: ReplicaEnv, what: _Round) -> int:
    """Runs one size on one replica; returns the number of its step."""
    communicator = env.communicator
    call = _call(env, what)
    with communicator.internal(_WARM_UP):
        for _ in range(what.warm_up_rounds):
            call()
    with communicator.internal(PURPOSE):
        for _ in range(what.rounds):
            call()
    return env.step


def _call(env: ReplicaEnv, what: _Round) -> Callable[[], object]:
    communicator, options = env.communicator, what.options
    array = namespace_named(what.library).ones(what.elements, what.dtype)
    match what.op:
        case "all_reduce":
            request = Reduction(what.redop, PURPOSE, options, algorithm=what.algorithm)
            return lambda: communicator.all_reduce([array], request)
        case "reduce_scatter":
            return lambda: communicator.reduce_scatter(array, what.redop, site=PURPOSE, options=options)
        case "all_gather":
            return lambda: communicator.all_gather(array, 0, site=PURPOSE, options=options)
        case "broadcast":
            return lambda: communicator.broadcast(array, 0, site=PURPOSE, options=options)
        case "reduce":
            return lambda: communicator.reduce([array], what.redop, 0, site=PURPOSE, options=options)


def _arrived(cluster: Cluster, group: str, steps: Sequence[int], expected: int) -> pa.Table:
    """The records of these steps. Those of GPUs arrive a moment after the step."""
    import pyarrow as pa
    import pyarrow.compute as pc

    deadline = time.monotonic() + _PATIENCE_SECONDS
    while True:
        cluster.flush_telemetry()
        records = cluster.feed.to_arrow()
        records = records.filter(
            pc.and_(
                pc.and_(pc.equal(records["group"], group), pc.equal(records["purpose"], PURPOSE)),
                pc.is_in(records["step"], value_set=pa.array(steps, pa.int64())),
            )
        )
        if records.num_rows >= expected or time.monotonic() > deadline:
            break
        time.sleep(0.02)
    if not records.num_rows:
        raise UnavailableError("the sweep ran, but no worker has sent its records; look at wb.diagnose()")
    return records


def _figures(row: TableRow) -> dict[str, Any]:
    rates = bandwidth(row.op, row.size_bytes, 1000 * row.p50_us, row.n)
    return {
        "op": row.op,
        "size_bytes": row.size_bytes,
        "count": row.count,
        "dtype": row.dtype,
        "redop": row.redop,
        "n": row.n,
        "samples": row.samples,
        "p50_us": row.p50_us,
        "p99_us": row.p99_us,
        "algbw": rates.algbw,
        "busbw": rates.busbw,
        "algorithm": row.algorithm,
        "transport": row.transport,
    }


def _fit_text(found: Sweep) -> str:
    if found.latency_us is None or found.bandwidth is None:
        return f"# {found.op}: no fit, as time does not grow with size, or the sizes are too few"
    return f"# {found.op}: {significant(found.latency_us)} µs + size / {rate_text(found.bandwidth)}"


def _dtype(name: str) -> np.dtype[Any]:
    try:
        return np.dtype(name)
    except TypeError as error:
        raise InvalidArgumentError(
            f"dtype must name an element type such as 'float32', got {name!r}"
        ) from error


def _check(
    strategy: Strategy,
    ops: Sequence[str],
    smallest_bytes: int,
    largest_bytes: int,
    *,
    factor: int,
    rounds: int,
    algorithm: str,
) -> None:
    if not isinstance(strategy, Strategy) or strategy.is_default:
        raise InvalidArgumentError(
            f"a sweep needs a strategy with replicas, got {type(strategy).__name__}; write "
            "wb.collectives.sweep(strategy)"
        )
    if strategy.devices[0].kind == "TPU":
        raise InvalidArgumentError(
            "collectives of a TPU strategy are part of its compiled programs and cannot be timed one by one; "
            "strategy.sample_collectives(fn, args) shows those of a function"
        )
    for op in ops:
        if op not in get_args(Swept):
            raise InvalidArgumentError(f"op must be one of {', '.join(get_args(Swept))}, got {op!r}")
    if not 0 < smallest_bytes <= largest_bytes:
        raise InvalidArgumentError(
            f"sizes must grow from above 0, got smallest_bytes={smallest_bytes}, largest_bytes={largest_bytes}"
        )
    if factor < _MIN_FACTOR or factor != int(factor):
        raise InvalidArgumentError(f"factor must be a whole number of at least 2, got {factor}")
    if not 1 <= rounds <= _MOST_ROUNDS:
        raise InvalidArgumentError(f"rounds must be 1 to {_MOST_ROUNDS}, got {rounds}")
    if algorithm not in get_args(Algorithm):
        raise InvalidArgumentError(
            f"algorithm must be one of {', '.join(get_args(Algorithm))}, got {algorithm!r}"
        )
    if algorithm != "auto" and tuple(ops) != ("all_reduce",):
        raise InvalidArgumentError(f"only all_reduce has a choice of algorithms, not {', '.join(ops)}")
