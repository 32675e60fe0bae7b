"""Text that nobody has read: with it, functions show what they make of text."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from workbench.io.examples import encode_example, encode_sequence_example
from workbench.io.features import FixedLenFeature, FixedLenSequenceFeature, VarLenFeature, dtype_of

Wanted = FixedLenFeature | VarLenFeature | FixedLenSequenceFeature


class MadeUpText(bytes):
    """Text that stands for any other. Those who parse examples take it for one that has what is wanted.

    What varies in length, such as the text itself, has as many parts as the text has bytes.
    """

    __slots__ = ()

    def example(self, features: Mapping[str, Wanted]) -> bytes:
        """An example that has all features."""
        return encode_example({name: self._values(wanted) for name, wanted in features.items()})

    def sequence_example(self, context: Mapping[str, Wanted], sequences: Mapping[str, Wanted]) -> bytes:
        """An example with steps that has all features."""
        steps = {name: [self._step(wanted)] * len(self) for name, wanted in sequences.items()}
        return encode_sequence_example(
            {name: self._values(wanted) for name, wanted in context.items()}, steps
        )

    def _values(self, wanted: Wanted) -> Any:
        values = self._step(wanted)
        return np.tile(values, len(self)) if isinstance(wanted, FixedLenSequenceFeature) else values

    def _step(self, wanted: Wanted) -> Any:
        count = len(self) if isinstance(wanted, VarLenFeature) else math.prod(wanted.shape)
        dtype = dtype_of(wanted.dtype)
        return np.full(count, b"" if dtype.hasobject else 0, dtype)
