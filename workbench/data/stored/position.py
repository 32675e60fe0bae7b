"""The position of an iterator, as a file: the pipeline's fingerprint, the pass, and how many elements were delivered.

Resuming opens the same pass again and skips the delivered elements. A `map` or `batch` at the end of the pipeline does
not compute them, unless elements failed before, and rows of arrays are not read. Everything else is repeated: files are
read, and other stages run. Stages that have changed the order change it again in the same way.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, ClassVar

from workbench.data.background.arrivals import Arrivals
from workbench.data.passes import Pass
from workbench.data.stage import Opener, Pipeline, Stage
from workbench.data.stages.computing.functions import Map
from workbench.data.stages.grouping.batch import Batch
from workbench.data.stages.prefetch import Prefetch
from workbench.data.stored.fingerprint import fingerprint
from workbench.data.stored.writing import replace_file
from workbench.data.tables import Failed, Run
from workbench.errors import DataLossError, InvalidArgumentError, NotFoundError
from workbench.io.checksums import crc32c
from workbench.io.storage import storage

_FORMAT = "workbench iterator 1"


@dataclass(frozen=True)
class Position:
    """A place in a pass.

    Attributes:
      pipeline: Fingerprint of the dataset, seeds included.
      epoch: Number of the pass.
      given: How many elements were delivered, including failed ones.
      failed: How many of them failed.
      arrivals: In which order results of parallel calls came, where that may change; see `Arrivals`.
    """

    pipeline: str
    epoch: int
    given: int
    failed: int
    arrivals: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, order=True)
class Place:
    """How far an iterator is, for comparison with an earlier place.

    Attributes:
      epoch: Number of the pass.
      given: How many elements were delivered, including failed ones.
      given_by: What delivers its elements on replicas; "" in the notebook.
    """

    epoch: int
    given: int
    given_by: str = field(default="", compare=False)


@dataclass(frozen=True)
class Resume(Stage):
    """Skips elements that were delivered before, including failed ones."""

    name: ClassVar[str] = "resume"
    keeps_batches: ClassVar[bool] = True
    sees_failures: ClassVar[bool] = True
    count: int

    def open(self, upstream: Opener, current: Pass) -> Iterator[Run]:
        """Starts one pass over what `upstream()` starts."""
        left = self.count
        for run in upstream():
            size = 1 if isinstance(run, Failed) else len(run)
            if left >= size:
                left -= size
            elif left:
                yield Run(run.table, run.rows[left:])
                left = 0
            else:
                yield run


def fingerprint_of(dataset: Pipeline) -> str:
    """Identifies a dataset, including the order of its elements."""
    return fingerprint(dataset.source, dataset.stages, seeds=True)


def rest_of(dataset: Pipeline, position: Position) -> Pipeline:
    """The dataset without the elements that were delivered before."""
    count, end = position.given, len(dataset.stages)
    while end and position.failed == 0:
        # For an element that is made here, its number alone determines which elements go into it.
        match dataset.stages[end - 1]:
            case Prefetch():
                pass
            case Map() as stage if _kept_order(stage, dataset, position):
                pass
            case Batch() as batch if _kept_order(batch, dataset, position):
                count *= batch.batch_size
            case _:
                break
        end -= 1
    stages = (*dataset.stages[:end], Resume(count), *dataset.stages[end:])
    return dataset.with_source(dataset.source, stages)


def _kept_order(stage: Map | Batch, dataset: Pipeline, position: Position) -> bool:
    """Whether a stage gave what was given in the order of its elements, and does so now."""
    return stage.keeps_order(dataset.options()) and not (stage.num_parallel_calls and position.arrivals)


def write_position(path: str | os.PathLike[str], position: Position) -> None:
    """Replaces the file `path`, or leaves it as it was.

    Raises:
      NotFoundError: if its folder is missing.
      StorageFull: if there is no space left.
    """
    body = json.dumps({"format": _FORMAT, **asdict(position)}).encode()
    try:
        with storage(os.fspath(path)):
            replace_file(os.path.abspath(path), body + b"\n%08x\n" % crc32c(body))
    except FileNotFoundError as error:
        raise NotFoundError(
            f"cannot write {os.fspath(path)!r}: its folder is missing; make it first"
        ) from error
    except (IsADirectoryError, NotADirectoryError, ValueError) as error:
        raise NotFoundError(f"cannot write {os.fspath(path)!r}: {error}; give the name of a file") from error


def read_position(path: str | os.PathLike[str]) -> Position:
    """The position in the file `path`.

    Raises:
      NotFoundError: if there is none.
      DataLossError: if the file is damaged or another kind of file.
    """
    name = os.fspath(path)
    try:
        with open(name, "rb") as file:
            data = file.read()
    except FileNotFoundError as error:
        raise NotFoundError(f"{name!r} is missing; iterator.save(path) writes such a file") from error
    except (OSError, ValueError) as error:
        raise NotFoundError(f"cannot read {name!r}: {error}; give the name of a file") from error
    body, _, checksum = data.partition(b"\n")
    if checksum != b"%08x\n" % crc32c(body):
        raise DataLossError(
            f"{name!r}: its checksum is wrong; it is damaged, or no file of iterator.save(path)", file=name
        )
    try:
        return _parsed(json.loads(body))
    except (ValueError, TypeError, LookupError) as error:
        raise DataLossError(f"{name!r} is not a position of an iterator: {error}", file=name) from error


def check_pipeline(path: str | os.PathLike[str], position: Position, dataset: Pipeline) -> None:
    """Rejects the position of another dataset.

    Args:
      path: File of the position, for the error.
      position: The position.
      dataset: The dataset.

    Raises:
      InvalidArgumentError: if it is.
    """
    if position.pipeline != fingerprint_of(dataset):
        raise InvalidArgumentError(
            f"the position in {os.fspath(path)!r} belongs to a dataset other than {dataset!r}; build it as it "
            "was then, with a seed for each shuffle, and let its functions not change what they refer to"
        )


def position_of(value: Any) -> Position:
    """The position in parsed JSON.

    Raises:
      Exception: if it is something else.
    """
    arrivals = {str(place): str(turns) for place, turns in value.get("arrivals", {}).items()}
    Arrivals(arrivals).check()
    numbers = int(value["epoch"]), int(value["given"]), int(value["failed"])
    return Position(str(value["pipeline"]), *numbers, arrivals)


def _parsed(value: Any) -> Position:
    if value["format"] != _FORMAT:
        raise ValueError(f"its format is {value['format']!r}")
    return position_of(value)
