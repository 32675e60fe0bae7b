"""Made-up text, to find out what functions do with text."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from workbench.errors import InvalidArgumentError
from workbench.io.examples import decode_example, encode_example, encode_sequence_example
from workbench.io.features import FixedLenFeature, FixedLenSequenceFeature, VarLenFeature, dtype_of

Wanted = FixedLenFeature | VarLenFeature | FixedLenSequenceFeature


class MadeUpText(bytes):
    """Text that represents any other. Parsers treat it as an example with the requested features.

    Everything that varies in length, like the text itself, has as many parts as the text has bytes.
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


class TextAlike(MadeUpText):
    """Made-up text like one that was read.

    Parsers treat it as an example with as many values and as long texts as that one, except for features that should
    have more.
    """

    read: bytes
    more_values: Mapping[str, int]
    longer_texts: Mapping[str, int]

    @staticmethod
    def of(read: bytes, length: int, content: bytes) -> TextAlike:
        """Text like `read` with the given length, which repeats `content`."""
        text = TextAlike((content * length)[:length])
        text.read, text.more_values, text.longer_texts = read, {}, {}
        return text

    def example(self, features: Mapping[str, Wanted]) -> bytes:
        """An example like the one that was read.

        Raises:
          InvalidArgumentError: if that was not an example.
        """
        read = decode_example(self.read)
        return encode_example({name: self._like(name, read[name]) for name in features if name in read})

    def _like(self, name: str, values: Any) -> Any:
        count = len(values) + self.more_values.get(name, 0)
        if values.dtype != object:
            return np.ones(count, values.dtype)
        lengths = [len(text) + self.longer_texts.get(name, 0) for text in values] or [len(self)]
        return [
            (bytes(self) * length)[:length] for length in itertools.islice(itertools.cycle(lengths), count)
        ]


def features_of(text: bytes) -> list[str]:
    """The names of an example's features; empty if the text is not an example."""
    try:
        return sorted(decode_example(text))
    except InvalidArgumentError:
        return []
