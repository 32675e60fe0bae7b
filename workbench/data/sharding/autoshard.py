"""Divides a dataset among hosts by rewriting its stages, as tf.data does, and gives the reason in words."""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from workbench.data.dataset import Dataset
from workbench.data.options import AutoShardPolicy
from workbench.data.passes import Pass
from workbench.data.provenance import DATASET_MASK, DATASET_SHIFT, ROW_MASK, file_of
from workbench.data.sources.combine import Chosen, Concatenated, Zipped
from workbench.data.sources.files import FileReader
from workbench.data.sources.urls import shown
from workbench.data.spec import INFINITE_CARDINALITY
from workbench.data.stage import Pipeline, Source, Stage
from workbench.data.stages.cache import Cache
from workbench.data.stages.computing.flat import Interleave
from workbench.data.stages.ordering.select import SHARD_HINT, Shard
from workbench.data.stages.prefetch import Prefetch
from workbench.errors import InvalidArgumentError, NotFoundError, OutOfRangeError

_Kind = TypeVar("_Kind", bound=Pipeline)


@dataclass(frozen=True)
class PolicyChoice:
    """Which policy applies.

    Attributes:
      asked: The policy of the dataset's options.
      used: The policy that applies: AUTO is resolved to FILE or DATA.
      reason: Why, in words.
    """

    asked: AutoShardPolicy
    used: AutoShardPolicy
    reason: str

    def __str__(self) -> str:
        return self.used.name if self.asked is self.used else f"{self.asked.name}→{self.used.name}"


@dataclass(frozen=True)
class Sharded:
    """One host's part of a dataset.

    Attributes:
      dataset: The rewritten dataset.
      choice: The policy and its reason.
    """

    dataset: Dataset
    choice: PolicyChoice


def choose_policy(dataset: Dataset) -> PolicyChoice:
    """Resolves the policy in a dataset's options."""
    asked = dataset.options().experimental_distribute.auto_shard_policy
    if dataset.source.is_shared:
        return PolicyChoice(asked, AutoShardPolicy.OFF, "hosts share a job of a data service")
    match asked:
        case AutoShardPolicy.AUTO if is_file_based(dataset):
            reader = file_reader(dataset)
            return PolicyChoice(
                asked, AutoShardPolicy.FILE, f"source reads {reader.reads if reader else 'files'}"
            )
        case AutoShardPolicy.AUTO:
            return PolicyChoice(asked, AutoShardPolicy.DATA, _why_not_files(dataset))
        case AutoShardPolicy.OFF:
            return PolicyChoice(asked, asked, "every host reads everything, as asked")
        case AutoShardPolicy.HINT if any(_is_hint(stage) for stage in dataset.stages):
            return PolicyChoice(asked, asked, "shard(SHARD_HINT, SHARD_HINT) marks the place")
        case AutoShardPolicy.HINT:
            return PolicyChoice(
                asked, asked, "no shard(SHARD_HINT, SHARD_HINT) found: every host reads everything"
            )
    return PolicyChoice(asked, asked, "as asked")


def auto_shard(dataset: Dataset, num_workers: int, index: int) -> Sharded:
    """The part of `dataset` that host `index` of `num_workers` reads.

    FILE distributes whole files: file k goes to host k mod num_workers, also through flat_map, interleave, zip and
    concatenate of readers. DATA reads everything and keeps every `num_workers`-th element, after the last stage but
    before a final prefetch: if there are fewer elements than hosts, some hosts get none. With a single host, nothing is
    rewritten.

    Args:
      dataset: The whole dataset; its options choose the policy.
      num_workers: The number of hosts.
      index: The host, from 0 to `num_workers - 1`.

    Raises:
      InvalidArgumentError: if there is no such host.
      NotFoundError: if FILE is requested and no reader of files is found.
    """
    if not 0 <= index < num_workers:
        raise InvalidArgumentError(
            f"auto_shard: index is {index} of {num_workers} hosts; it must be from 0 to num_workers - 1"
        )
    choice = choose_policy(dataset)
    if num_workers == 1:
        return Sharded(dataset, choice)
    match choice.used:
        case AutoShardPolicy.FILE:
            rewritten = _shard_files(dataset, num_workers, index)
            if rewritten is None:
                raise NotFoundError(
                    "AutoShardPolicy.FILE needs a source that reads files, but "
                    f"{_why_not_files(dataset)}: {dataset!r}; "
                    "use AutoShardPolicy.DATA, or AUTO"
                )
        case AutoShardPolicy.DATA:
            rewritten = _append(dataset, Shard(num_workers, index))
        case AutoShardPolicy.HINT:
            stages = tuple(
                Shard(num_workers, index) if _is_hint(stage) else stage for stage in dataset.stages
            )
            rewritten = dataset.with_source(dataset.source, _unfilled(stages))
        case _:
            rewritten = dataset
    return Sharded(rewritten, choice)


def is_file_based(dataset: Pipeline) -> bool:
    """Whether a dataset's elements come from files whose list can be divided."""
    return _shard_files(dataset, 1, 0) is not None


def file_reader(dataset: Pipeline) -> FileReader | None:
    """The source that reads files, if there is one; the first of several."""
    if isinstance(dataset.source, FileReader):
        return dataset.source
    for position, stage in enumerate(dataset.stages):
        if isinstance(stage, Interleave):
            names = dataset.with_source(dataset.source, dataset.stages[:position])
            inner = _example(stage, names)
            reader = None if inner is None else file_reader(inner)
            if reader is not None:
                return replace(reader, files=names)
    return next((reader for inner in dataset.source.inputs() if (reader := file_reader(inner))), None)


def _example(stage: Interleave, names: Pipeline) -> Pipeline | None:
    with suppress(OutOfRangeError):  # none of the files could be opened
        return stage.example(names)
    return None


def _shard_files(dataset: _Kind, num_shards: int, index: int) -> _Kind | None:
    """The dataset with its list of files divided; None if there is no such list."""
    deal = Shard(num_shards, index, enough_for_all=True)
    if isinstance(dataset.source, FileReader):
        return dataset.with_source(dataset.source.sharded(deal, dataset), _unfilled(dataset.stages))
    for position, stage in enumerate(dataset.stages):
        if isinstance(stage, Interleave):
            names = dataset.with_source(dataset.source, dataset.stages[:position])
            inner = _example(stage, names)
            if inner is not None and is_file_based(inner):
                rest = _unfilled(dataset.stages[position:])
                return dataset.with_source(names.source, (*names.stages, deal, *rest))
    if _has_counted_choices(dataset):  # the choices are for all elements, not for those of some files
        return None
    inputs = dataset.source.inputs()
    parts = [_shard_files(inner, num_shards, index) for inner in inputs]
    if not parts or any(part is None for part in parts):
        return None
    combined: Any = dataset.source.with_inputs(tuple(part for part in parts if part is not None))
    return dataset.with_source(combined, _unfilled(dataset.stages))


def _has_counted_choices(dataset: Pipeline) -> bool:
    source = dataset.source
    return isinstance(source, Chosen) and source.choice.cardinality() != INFINITE_CARDINALITY


def _choices_of_all_files(dataset: Pipeline) -> Source | None:
    """The choices, possibly nested, that prevent the files they read from being divided."""
    if is_file_based(dataset) or file_reader(dataset) is None:
        return None
    if _has_counted_choices(dataset):
        return dataset.source
    return next(
        (choices for inner in dataset.source.inputs() if (choices := _choices_of_all_files(inner))), None
    )


def _unfilled(stages: tuple[Stage, ...]) -> tuple[Stage, ...]:
    """The stages for one host's elements, with empty caches: hosts in one process must not share a cache."""
    return tuple(stage.unfilled() if isinstance(stage, Cache) else stage for stage in stages)


def _append(dataset: Dataset, shard: Shard) -> Dataset:
    end = len(dataset.stages)
    while end and isinstance(dataset.stages[end - 1], Prefetch):
        end -= 1
    return dataset.with_source(dataset.source, (*dataset.stages[:end], shard, *dataset.stages[end:]))


def _is_hint(stage: object) -> bool:
    return isinstance(stage, Shard) and stage.num_shards == SHARD_HINT


def _why_not_files(dataset: Dataset) -> str:
    choices = _choices_of_all_files(dataset)
    if choices is not None:
        return f"the choices of {choices.name} are for the elements of all files"
    if isinstance(dataset.source, Zipped) and any(is_file_based(inner) for inner in dataset.source.datasets):
        return "not all datasets of the zip read files"
    names = {
        "memory": "source is in memory",
        "range": "source is a range",
        "generator": "source is a generator",
        "query": "source is a query",
    }
    return names.get(dataset.source.name, f"source is {dataset.source.name}, not files")


class Labels:
    """Readable names of source elements: "17", or "train.txt:17", or "1/17" for several datasets."""

    def __init__(self, dataset: Pipeline) -> None:
        self._inputs = [Labels(inner) for inner in dataset.source.inputs()]
        self._mixed = isinstance(dataset.source, Concatenated | Chosen)
        reader = None if self._inputs else file_reader(dataset)
        self.paths = {} if reader is None else dict(reader.numbered_files(Pass(Dataset, provenance=True)))

    def __call__(self, element_id: int) -> str:
        """The name of one element."""
        if self._inputs:
            which = min(element_id >> DATASET_SHIFT, len(self._inputs) - 1)
            inner = self._inputs[which](element_id & DATASET_MASK)
            return f"{which}/{inner}" if self._mixed else inner
        file, row = file_of(element_id), element_id & ROW_MASK
        if file in self.paths:
            return f"{os.path.basename(shown(self.paths[file]))}:{row}"
        return f"{file}:{row}" if file else str(row)

    def path_of(self, element_id: int) -> str:
        """The file that an element came from, or ""."""
        if self._inputs:
            which = min(element_id >> DATASET_SHIFT, len(self._inputs) - 1)
            return self._inputs[which].path_of(element_id & DATASET_MASK)
        return shown(self.paths.get(file_of(element_id), ""))
