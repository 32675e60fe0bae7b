"""The view of a dataset's sharding as the source of a widget: what-if questions, and how far replicas are."""

from __future__ import annotations

import weakref
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from workbench.data.sharding.explain import explain_sharding
from workbench.data.sharding.model import Shape
from workbench.data.stages.grouping.batch import Batch
from workbench.distribute.input.distributed_dataset import DistributedDataset
from workbench.distribute.strategies.strategy import Strategy
from workbench.ui.render.plain_values import plain
from workbench.ui.sharding.dataset_model import dataset_model, listed_elements
from workbench.ui.widgets.sources import Message

if TYPE_CHECKING:
    from workbench.data.dataset import Dataset
    from workbench.data.sharding.model import Sharding
    from workbench.data.sharding.progress import InputProgress
    from workbench.ui.models.sharding import ListedElements


class Followed:
    """A distributed dataset that a loop may read. It is not kept alive, but its last position stays known."""

    def __init__(self, what: DistributedDataset | Strategy, dataset: Dataset | None) -> None:
        """Starts following.

        Args:
          what: The distributed dataset, or a strategy that may distribute `dataset` later.
          dataset: The dataset that is distributed.
        """
        self._what: weakref.ref[DistributedDataset | Strategy] = weakref.ref(what)
        self._dataset = dataset
        # Kept, so that an iterator's position is known even if it came and went between two updates.
        self._trail = what.trail if isinstance(what, DistributedDataset) else None
        self._latest: InputProgress | None = None

    @property
    def progress(self) -> InputProgress | None:
        """How far replicas are; None if no loop has started reading it."""
        if self._trail is not None:
            return self._trail.now()
        strategy = self._what()
        if isinstance(strategy, Strategy) and not strategy.is_default and self._dataset is not None:
            self._latest = strategy.inputs.progress_of(self._dataset) or self._latest
        return self._latest

    @property
    def ended(self) -> bool:
        """Whether no loop can read it any more."""
        what = self._what()
        strategy = what.strategy if isinstance(what, DistributedDataset) else what
        return strategy is None or strategy.is_default or strategy.group.gang.closed


class DatasetSource:
    """A dataset's sharding. While the dataset is read, only the replicas' progress is sent."""

    view = "dataset_sharding"
    interval_seconds = 0.25

    def __init__(self, sharding: Sharding, dataset: Dataset | None, followed: Followed | None) -> None:
        """Creates the source.

        Args:
          sharding: The sharding.
          dataset: The dataset for what-if questions; None if unknown.
          followed: Provides the replicas' progress, if possible.
        """
        self._sharding = sharding
        self._shown = sharding
        self._dataset = dataset
        self._followed = followed
        self._told: InputProgress | None = None
        self._window = (0, 0)
        self._listed: ListedElements | None = None

    def model(self) -> Message:
        """As `Source.model`."""
        self._told = self._progress()
        model = dataset_model(self._shown, progress=self._told, listed=self._listed)
        steps = [reading.step for reader in model.readers[:1] for reading in reader.readings]
        self._window = (steps[0], steps[-1]) if steps else (0, 0)
        return plain(model)

    def change(self) -> Message | None:
        """As `Source.change`."""
        progress = self._progress()
        if progress is None or progress == self._told:
            return None
        first, last = self._window
        at = max(progress.steps, default=0)
        if self._told is None or 0 <= at < first or last < at < len(self._shown.steps):
            return {"kind": "model", "model": self.model()}  # with the steps around the present one
        self._told = progress
        return {"kind": "part", "part": {"progress": asdict(progress)}}

    def answer(self, request: Message) -> Message | None:
        """As `Source.answer`: all elements of a replica's step, or what another batch size, hosts or policy would do.

        Raises:
          WorkbenchError: if that is not possible.
        """
        if request.get("kind") == "list":
            step, replica = int(request["step"]), int(request["replica"])
            self._listed = None if step < 0 else listed_elements(self._shown, step=step, replica=replica)
            return {"kind": "part", "part": {"listed": self._listed and asdict(self._listed)}}
        if request.get("kind") != "what_if" or self._dataset is None:
            return None
        self._listed = None
        found = what_if(self._dataset, request)
        # Returns to the previous view, which shows the replicas again.
        self._shown = self._sharding if found.steps == self._sharding.steps[: len(found.steps)] else found
        return {"kind": "model", "model": self.model()}

    @property
    def ended(self) -> bool:
        """As `Source.ended`."""
        return self._followed is None or self._followed.ended

    def _progress(self) -> InputProgress | None:
        if self._followed is None or self._shown is not self._sharding:
            return None
        return self._followed.progress


def what_if(dataset: Dataset, request: dict[str, Any]) -> Sharding:
    """What another batch size, other hosts or another policy would do, without running anything.

    Args:
      dataset: The dataset, batched for all replicas together.
      request: The view's batch_size, hosts, replicas_per_host and policy.

    Raises:
      WorkbenchError: if that is not possible.
    """
    shape = Shape(int(request["hosts"]), int(request["replicas_per_host"]))
    batches = [stage for stage in dataset.stages if isinstance(stage, Batch)]
    drop = bool(batches) and batches[-1].drop_remainder  # the query only concerns the size
    batched = dataset.unbatch().batch(int(request["batch_size"]), drop_remainder=drop)
    return explain_sharding(batched, shape, policy=str(request["policy"]))
