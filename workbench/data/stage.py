"""The two interfaces of a pipeline: sources and stages. A new one is a small file with a frozen dataclass."""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import Any, ClassVar, Protocol, Self

from workbench.data.options import Options
from workbench.data.passes import Pass
from workbench.data.tables import Run

Opener = Callable[[], Iterator[Run]]


class Pipeline(Protocol):
    """What sources and stages use of `Dataset`, which is built of them."""

    @property
    def source(self) -> Source:
        """Where elements come from."""

    @property
    def stages(self) -> tuple[Stage, ...]:
        """What is done to them, in order."""

    @property
    def element_spec(self) -> Any:
        """The nested spec of an element."""

    def cardinality(self) -> int:
        """Number of elements, `INFINITE_CARDINALITY` or `UNKNOWN_CARDINALITY`."""

    def options(self) -> Options:
        """The options of this dataset."""

    def first(self) -> Any:
        """The first element."""

    def unread(self) -> Self:
        """The same pipeline as new stages inspect it: inspection reads none of its elements."""

    def attempted(self) -> Iterator[Any]:
        """The elements of one pass, with a `Failed` for each one that could not be made."""

    def next_pass(self) -> Pass:
        """The description of this dataset's next iteration."""

    def open(self, current: Pass) -> Iterator[Run]:
        """Starts a pass."""

    def with_source(self, source: Source, stages: tuple[Stage, ...]) -> Self:
        """Another pipeline with this one's options."""

    def with_element_spec(self, spec: Any) -> Self:
        """The same pipeline with a known spec."""


class _Named:
    """The name of a source or a stage.

    Attributes:
      label: The user's name for it, "" for none.
    """

    label: ClassVar[str] = ""

    def named(self, label: str | None) -> Self:
        """A copy with the user's name, unless that is None."""
        if label is None:
            return self
        other = copy.copy(self)
        object.__setattr__(other, "label", str(label))  # the dataclasses are frozen and have no such field
        return other


class Source(_Named, ABC):
    """Where elements come from. Subclasses are frozen dataclasses: they hold no open file.

    Attributes:
      name: The source's name in texts.
      random_access: Whether a pass is one run whose rows can be read in any order.
    """

    name: ClassVar[str]
    random_access: ClassVar[bool] = False

    @property
    def is_shared(self) -> bool:
        """Whether its readers on different hosts already share its elements, so that it must not be sharded."""
        return False

    @abstractmethod
    def open(self, current: Pass) -> Iterator[Run]:
        """Starts one pass; may be called many times."""

    @abstractmethod
    def element_spec(self) -> Any:
        """The nested spec of an element."""

    @abstractmethod
    def cardinality(self) -> int:
        """Number of elements, `INFINITE_CARDINALITY` or `UNKNOWN_CARDINALITY`."""

    @property
    def text(self) -> str:
        """The source, with the user's name for it."""
        return f"{self.name} {self.label!r}" if self.label else self.name

    def inputs(self) -> tuple[Pipeline, ...]:
        """Datasets that this source combines."""
        return ()

    def options(self) -> Options:
        """The options of the datasets that it combines, merged; those of the later ones win."""
        merged = Options()
        for dataset in self.inputs():
            merged = merged.merge(dataset.options())
        return merged

    def with_inputs(self, inputs: tuple[Pipeline, ...]) -> Source:
        """The same source for other datasets."""
        return self


class Stage(_Named, ABC):
    """One transformation. Subclasses are frozen dataclasses.

    Attributes:
      name: The stage's name in texts.
      keeps_batches: Whether a batch size known before the stage still holds after it.
      sees_failures: Whether it reads the `Failed` of elements that could not be made; otherwise they bypass it.
      calls_functions: Whether its element spec is found by calling the user's functions.
      keeps_elements: Whether it keeps elements for later passes, so that their order must not differ between runs.
    """

    name: ClassVar[str]
    keeps_batches: ClassVar[bool] = False
    sees_failures: ClassVar[bool] = False
    calls_functions: ClassVar[bool] = False
    keeps_elements: ClassVar[bool] = False

    @abstractmethod
    def open(self, upstream: Opener, current: Pass) -> Iterator[Run]:
        """Starts one pass over the runs that `upstream()` starts."""

    def after(self, pipeline: Pipeline) -> Stage:
        """The stage for a pass over `pipeline`; itself, unless it depends on the stages before it."""
        return self

    def element_spec(self, upstream: Pipeline) -> Any:
        """The nested spec of an element; unchanged by default."""
        return upstream.element_spec

    def cardinality(self, upstream: Pipeline) -> int:
        """Number of elements; unchanged by default."""
        return upstream.cardinality()

    def describe(self) -> str:
        """A short text such as "batch(32)"."""
        return self.name

    @property
    def text(self) -> str:
        """The stage, with the user's name for it."""
        return f"{self.describe()} {self.label!r}" if self.label else self.describe()


def calls_functions(dataset: Pipeline) -> bool:
    """Whether a dataset's element spec is found by calling the user's functions."""
    return any(stage.calls_functions for stage in dataset.stages) or any(
        calls_functions(inner) for inner in dataset.source.inputs()
    )
