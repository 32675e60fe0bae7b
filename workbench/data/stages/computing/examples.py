"""Batches of serialized examples, parsed."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from workbench.arguments import optional_flag
from workbench.backends.numpy import STRING, as_dtype
from workbench.data.spec import TensorSpec, UnknownSpec
from workbench.data.stage import Pipeline
from workbench.data.stages.computing.functions import Map
from workbench.errors import InvalidArgumentError
from workbench.io.features import FixedLenFeature, FixedLenSequenceFeature, PaddedValues, VarLenFeature
from workbench.io.parsing import parse_example

_BATCH = TensorSpec((None,), STRING)


@dataclass(frozen=True, eq=False)
class ParseExamples(Map):
    """Maps batches of examples with `parse_example`; the features determine the spec, so no element is read."""

    name: ClassVar[str] = "parse_example"
    calls_functions: ClassVar[bool] = False
    features: Mapping[str, Any] | None = None

    @classmethod
    def of(
        cls, features: Mapping[str, Any], num_parallel_calls: int | None, deterministic: bool | None
    ) -> Self:
        """Checks the arguments.

        Args:
          features: A description of each wanted feature, by name.
          num_parallel_calls: Batches parsed at a time; None for the reader's own thread.
          deterministic: Whether they keep their order; None for what the options say.

        Raises:
          InvalidArgumentError: if there is no feature, or one is requested as views, which elements of datasets cannot
            hold.
          ValueError: if a feature has another description, or is a sequence that must not be missing.
          TypeError: if the features are not a mapping.
        """
        if not features:
            raise InvalidArgumentError("parse_example: features is empty; name what you want of the examples")
        if not isinstance(features, Mapping):
            raise TypeError(
                f"parse_example: features is {type(features).__name__} {features!r:.60}; give a dict of feature by name"
            )
        wanted = dict(features)
        parse_example(np.empty(0, object), wanted)  # rejects here what fits no example
        for name, feature in wanted.items():
            if feature.dtype is memoryview:
                raise InvalidArgumentError(
                    f"parse_example: feature {name!r} is wanted as views, but elements of datasets hold bytes; give "
                    "'string', or use the views in a function of map that calls wb.io.parse_example"
                )
        parse = functools.partial(parse_example, features=wanted)
        in_order = optional_flag(deterministic, "parse_example: deterministic")
        return cls(parse, num_parallel_calls or 0, in_order, wanted)

    @staticmethod
    def check(element_spec: Any) -> None:
        """Rejects elements that are known not to be batches of serialized examples.

        Raises:
          TypeError: for these.
        """
        if not isinstance(element_spec, UnknownSpec) and not _BATCH.is_compatible_with(element_spec):
            raise TypeError(
                f"parse_example takes batches of serialized examples, not {element_spec}; batch them first"
            )

    def element_spec(self, upstream: Pipeline) -> Any:
        """The nested spec of an element after this stage."""
        shape = upstream.element_spec.shape
        rows = None if shape is None else shape[0]
        return {name: _spec(wanted, rows) for name, wanted in (self.features or {}).items()}

    def describe(self) -> str:
        """The stage as a short text."""
        return self.name


def _spec(wanted: FixedLenFeature | FixedLenSequenceFeature | VarLenFeature, rows: int | None) -> Any:
    dtype = as_dtype(wanted.dtype)
    match wanted:
        case FixedLenFeature():
            return TensorSpec((rows, *wanted.shape), dtype)
        case FixedLenSequenceFeature():
            return TensorSpec((rows, None, *wanted.shape), dtype)
    values: Any = TensorSpec((rows, None), dtype)
    lengths: Any = TensorSpec((rows,), np.int64)
    return PaddedValues(values, lengths)
