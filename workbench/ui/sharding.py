"""`wb.explain_sharding`: who reads which elements of a dataset, or holds which part of an array."""

from __future__ import annotations

import weakref
from typing import Any

from workbench.data.dataset import Dataset
from workbench.data.explain import DEFAULT_MAX_ELEMENTS, DEFAULT_MAX_STEPS, Shape, Sharding
from workbench.data.explain import explain_sharding as explain_dataset
from workbench.data.options import AutoShardPolicy
from workbench.telemetry.formatting import size_text
from workbench.ui import html, shown
from workbench.ui.array_model import array_model
from workbench.ui.dataset_model import dataset_model
from workbench.ui.models import ArrayPart, ArraySharding, DatasetSharding
from workbench.ui.plain import plain
from workbench.ui.text_table import aligned
from workbench.ui.widgets.bundle import mimebundle
from workbench.ui.widgets.sources import Fixed

_MAX_ROWS = 32
_LEFT = ("replica", "host:device", "slice")
_datasets: dict[int, Dataset] = {}
"""By the id of its explanation, as long as that lives: for the view's question what would be if."""


class ArrayShardingView:
    """Who holds which part of an array. Prints as a table.

    Attributes:
      model: What is known.
    """

    def __init__(self, model: ArraySharding) -> None:
        self.model = model

    def to_dict(self) -> dict[str, Any]:
        """What is known, as JSON-able values."""
        return plain(self.model)

    def __repr__(self) -> str:
        return "\n".join(
            [self._title(), *(f"  {line}" for line in aligned(*self._table(), left=_LEFT, width=86))]
        )

    def _repr_html_(self) -> str:
        headings, rows = self._table()
        return html.card(self._title(), parts=[html.table(headings, rows, left=3)])

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        source = Fixed("array_sharding", self.model)
        return mimebundle(source, text=repr(self), html=self._repr_html_(), include=include)

    def _title(self) -> str:
        model = self.model
        shape = ",".join(map(str, model.shape))
        what = " ".join(filter(None, (model.kind, model.name, f"{model.dtype} ({shape})")))
        uneven = f", fullest {model.imbalance_percent:g}% above average" if model.imbalance_percent else ""
        return f"{what}: {model.sentence}{uneven}"

    def _table(self) -> tuple[list[str], list[list[str]]]:
        parts = self.model.parts[:_MAX_ROWS]
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
    policy: AutoShardPolicy | str | None = None,
    epoch: int = 0,
    max_steps: int = DEFAULT_MAX_STEPS,
    max_elements: int = DEFAULT_MAX_ELEMENTS,
) -> Sharding | ArrayShardingView:
    """Finds out who reads which elements of a dataset, or who holds which part of an array.

    Goes through the pipelines of all hosts here, before anything is distributed. Batches in memory are not gathered for
    it; functions of map and filter stages are called. The other arguments are for datasets only.

    Args:
      value: A dataset, batched for all replicas together; or a PerReplica, Mirrored, variable or sharded JAX array.
      shape: A `Shape`, a number of replicas, or a strategy.
      policy: Another policy than that of the dataset's options, to see what it would do.
      epoch: Which epoch; matters for shuffled datasets.
      max_steps: How many steps to look at.
      max_elements: How many elements to look at.

    Raises:
      TypeError: If `value` is neither, or `shape` none of these.
      InvalidArgumentError: If elements have no batch dimension.
    """
    if isinstance(value, Dataset):
        found = explain_dataset(
            value, shape, policy=policy, epoch=epoch, max_steps=max_steps, max_elements=max_elements
        )
        _datasets[id(found)] = value
        weakref.finalize(found, _datasets.pop, id(found), None)
        shown.tell("dataset_sharding", lambda: dataset_model(found))
        return found
    array = ArrayShardingView(array_model(value))
    shown.tell("array_sharding", lambda: array.model)
    return array


def dataset_bundle(sharding: Sharding, include: Any = None, exclude: Any = None) -> dict[str, Any]:
    """What a notebook shows of a dataset's sharding."""
    bundle = sharding._repr_mimebundle_()
    dataset = _datasets.get(id(sharding))
    source = Fixed(
        "dataset_sharding",
        dataset_model(sharding),
        None if dataset is None else lambda request: what_if(dataset, request),
    )
    return mimebundle(source, text=bundle["text/plain"], html=bundle["text/html"], include=include)


def what_if(dataset: Dataset, request: dict[str, Any]) -> DatasetSharding:
    """What another batch size, other hosts or another policy would do, without running anything.

    Args:
      dataset: Batched for all replicas together.
      request: batch_size, hosts, replicas_per_host and policy, as the view asks.

    Raises:
      WorkbenchError: if that is not possible.
    """
    shape = Shape(int(request["hosts"]), int(request["replicas_per_host"]))
    batched = dataset.unbatch().batch(int(request["batch_size"]))
    return dataset_model(explain_dataset(batched, shape, policy=str(request["policy"])))


def _place(part: ArrayPart) -> str:
    return ":".join(filter(None, (part.host, part.device)))


def _slice(part: ArrayPart) -> str:
    return f"[{', '.join(f'{first}:{last}' for first, last in zip(part.start, part.stop, strict=True))}]"
