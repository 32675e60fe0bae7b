"""`wb.explain_sharding`: which replica reads which elements of a dataset, or holds which part of an array."""

from __future__ import annotations

import math
import statistics
import weakref
from dataclasses import replace
from typing import Any

from workbench.data.dataset import Dataset
from workbench.data.options import AutoShardPolicy
from workbench.data.sharding.explain import DEFAULT_MAX_ELEMENTS, DEFAULT_MAX_STEPS, explain_pipelines
from workbench.data.sharding.explain import explain_sharding as explain_dataset
from workbench.data.sharding.model import Sharding
from workbench.distribute.input.distributed_dataset import DistributedDataset
from workbench.distribute.strategies.strategy import Strategy
from workbench.telemetry.formatting import percent, printable, size_text
from workbench.ui.models.sharding import ArrayPart, ArraySharding
from workbench.ui.render import html
from workbench.ui.render.plain_values import plain
from workbench.ui.render.text_table import MAX_ROWS, aligned, odd_first
from workbench.ui.sharding.array_model import array_model
from workbench.ui.sharding.dataset_source import DatasetSource, Followed
from workbench.ui.widgets import shown
from workbench.ui.widgets.bundle import Bundle, mimebundle
from workbench.ui.widgets.sources import Fixed

_LEFT = ("replica", "host:device", "slice")
_origins: dict[int, tuple[Dataset | None, Followed | None]] = {}
"""By the id of a living explanation: its subject, and the iterators that may be reading it."""


class ArrayShardingView:
    """Which device holds which part of an array. Prints as a table.

    Attributes:
      model: The model.
    """

    def __init__(self, model: ArraySharding) -> None:
        self.model = model

    def to_dict(self) -> dict[str, Any]:
        """The model as JSON-able values."""
        return plain(self.model)

    def __repr__(self) -> str:
        return "\n".join(
            [self._title(), *(f"  {line}" for line in aligned(*self._table(), left=_LEFT, width=86))]
        )

    def _repr_html_(self) -> str:
        headings, rows = self._table()
        return html.card(self._title(), parts=[html.table(headings, rows, left=3)])

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> Bundle:
        return mimebundle(self.source(), text=repr(self), html=self._repr_html_(), include=include)

    def source(self) -> Fixed:
        """The source of a view of it."""
        return Fixed("array_sharding", self.model)

    def _title(self) -> str:
        model = self.model
        shape = ",".join(map(str, model.shape))
        what = " ".join(filter(None, (model.kind, model.name, f"{model.dtype} ({shape})")))
        uneven = (
            f", fullest {percent(model.imbalance_percent / 100)} above average"
            if model.imbalance_percent
            else ""
        )
        return printable(f"{what}: {model.sentence}{uneven}")

    def _table(self) -> tuple[list[str], list[list[str]]]:
        usual = statistics.median_low([part.size_bytes for part in self.model.parts] or [0])
        parts = odd_first(self.model.parts, lambda part: part.size_bytes != usual)[:MAX_ROWS]
        rows = [
            [
                str(part.replica),
                _place(part),
                _slice(part),
                size_text(part.size_bytes),
            ]
            for part in parts
        ]
        if hidden := len(self.model.parts) - len(parts):
            rows.append([f"… {hidden} more", "", "", ""])
        return ["replica", "host:device", "slice", "size"], rows


def explain_sharding(
    value: Any,
    shape: Any = None,
    *,
    hosts: int | None = None,
    replicas_per_host: int | None = None,
    policy: AutoShardPolicy | str | None = None,
    epoch: int = 0,
    max_steps: int = DEFAULT_MAX_STEPS,
    max_elements: int = DEFAULT_MAX_ELEMENTS,
) -> Sharding | ArrayShardingView:
    """Shows which replica reads which elements of a dataset, or holds which part of an array.

    Runs the pipelines of all hosts in this process, before anything is distributed. It does not gather batches in
    memory, but calls the functions of map and filter stages. The other arguments are for datasets only.

    Args:
      value: A dataset, batched for all replicas together, or a distributed one; or a PerReplica, Mirrored, variable or
        sharded JAX array. For a distributed dataset that a loop reads, the view also shows each replica's step and how
        long it waited for input; likewise for a dataset if `shape` is the strategy that distributes it.
      shape: A `Shape`, a number of replicas, or a strategy.
      hosts: Instead of a shape: a number of hosts, which need not exist.
      replicas_per_host: Replicas on each host, one by default.
      policy: A policy to try instead of that of the dataset's options.
      epoch: Which epoch; matters for shuffled datasets.
      max_steps: How many steps to inspect.
      max_elements: How many elements to inspect.

    Raises:
      TypeError: if `value` is neither, or `shape` is none of these.
      InvalidArgumentError: if elements have no batch dimension, or if a shape is combined with `hosts` or
        `replicas_per_host`.

    >>> shown = wb.explain_sharding(wb.data.Dataset.range(10).batch(4), 2)  # nothing runs for it
    >>> shown.counts
    (5, 5)
    """
    if isinstance(value, DistributedDataset):
        return explain_distributed(value, epoch=epoch, max_steps=max_steps, max_elements=max_elements)
    if isinstance(value, Dataset):
        found = explain_dataset(
            value,
            shape,
            hosts=hosts,
            replicas_per_host=replicas_per_host,
            policy=policy,
            epoch=epoch,
            max_steps=max_steps,
            max_elements=max_elements,
        )
        return _known(found, value, Followed(shape, value) if isinstance(shape, Strategy) else None)
    array = ArrayShardingView(array_model(value))
    shown.tell("array_sharding", array.source)
    return array


def explain_distributed(
    distributed: DistributedDataset,
    *,
    epoch: int = 0,
    max_steps: int = DEFAULT_MAX_STEPS,
    max_elements: int = DEFAULT_MAX_ELEMENTS,
    max_seconds: float = math.inf,
) -> Sharding:
    """As `explain_sharding`, for a distributed dataset; takes at most `max_seconds`."""
    found = explain_pipelines(
        distributed.pipelines,
        distributed.source,
        epoch=epoch,
        max_steps=max_steps,
        max_elements=max_elements,
        max_seconds=max_seconds,
    )
    return _known(found, distributed.source, Followed(distributed, distributed.source))


def _known(found: Sharding, dataset: Dataset | None, followed: Followed | None) -> Sharding:
    """The explanation, with everything that its view needs."""
    if followed is not None:
        found = replace(found, progress=followed.progress)
    _origins[id(found)] = dataset, followed
    weakref.finalize(found, _origins.pop, id(found), None)
    shown.tell("dataset_sharding", lambda: DatasetSource(found, None, followed))
    return found


def dataset_source(sharding: Sharding) -> DatasetSource:
    """The source of a view of a dataset's sharding."""
    return DatasetSource(sharding, *_origins.get(id(sharding), (None, None)))


def _place(part: ArrayPart) -> str:
    return ":".join(filter(None, (part.host, part.device)))


def _slice(part: ArrayPart) -> str:
    return f"[{', '.join(f'{first}:{last}' for first, last in zip(part.start, part.stop, strict=True))}]"
