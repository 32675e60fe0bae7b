"""What the methods that add a stage need from their dataset."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Self

from workbench.data.options import Options
from workbench.data.stage import Source, Stage


class Staged(ABC):
    """A source and stages; only `Dataset` inherits it. A `name` appears in texts and errors.

    Attributes:
      stages: What is done to the elements, in order.
    """

    stages: tuple[Stage, ...]

    @property
    @abstractmethod
    def element_spec(self) -> Any:
        """The nested spec of an element."""

    @property
    @abstractmethod
    def known_element_spec(self) -> Any:
        """The nested spec of an element; None if it is unknown without calling the user's functions."""

    @abstractmethod
    def unread(self) -> Self:
        """This dataset as new stages inspect it: inspection reads none of its elements."""

    @abstractmethod
    def options(self) -> Options:
        """The options of this dataset."""

    @abstractmethod
    def cardinality(self) -> int:
        """Number of elements, `INFINITE_CARDINALITY` or `UNKNOWN_CARDINALITY`."""

    @classmethod
    @abstractmethod
    def of_source(cls, source: Source, name: str | None = None) -> Self:
        """The dataset of a source's elements."""

    @abstractmethod
    def with_stage(self, stage: Stage, name: str | None = None) -> Self:
        """This dataset with one more stage at the end."""

    @abstractmethod
    def with_source(self, source: Source, stages: tuple[Stage, ...]) -> Self:
        """Another pipeline with this one's options."""

    @abstractmethod
    def with_element_spec(self, spec: Any) -> Self:
        """The same dataset with an element spec that is already known, so that no function is called to find it out."""
