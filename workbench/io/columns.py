"""The values of many serialized examples, feature by feature."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np

from workbench.io.example_bytes import Apart, ExampleBytes, Flags, Joined, Places, enclosed
from workbench.io.examples import BYTES, part, read_features
from workbench.io.headers import FEATURES, Template, learned, merged
from workbench.io.layouts import Found, Layout
from workbench.io.optional_features import located
from workbench.io.values import Array, Column, decoded
from workbench.io.wire import Malformed

# The part of a batch that stays in a core's cache.
_CHUNK_BYTES = 1 << 20
# Above this many bytes, and this many per feature, a copy costs more than accessing each example.
_LONG_BYTES = 8192
_LONG_FEATURE_BYTES = 1024
_LEAST_ALIKE = 8
_MOST_TEMPLATES = 8
_Columns = dict[str, list[Column]]


@dataclass(slots=True)
class _Seen:
    """The layouts of examples when the same features were last read: a guess that any thread may replace."""

    names: frozenset[str]
    layout: Layout | None = None
    template: Template = field(default_factory=dict)


def columns(
    serialized: list[bytes], names: Collection[str], *, views: bool = False
) -> dict[str, list[Column]]:
    """The values of the named features; examples without a feature are in none of its columns.

    The contents of other features are not read.

    Args:
      serialized: The examples.
      names: The names of the features.
      views: Whether texts may be views of the examples; some are still bytes.

    Raises:
      Malformed: if the bytes of an example are damaged; the message has its number.
    """
    found: dict[str, list[Column]] = {name: [] for name in names}
    rest: Iterable[int] = range(len(serialized))
    if len(serialized) >= _LEAST_ALIKE:
        seen = _seen(frozenset(names))
        rest = [row for chunk in _chunks(serialized, seen, found, views) for row in _alike(chunk, seen)]
    for name, column in _one_by_one(serialized, rest, names):
        found[name].append(column)
    return found


@lru_cache(64)
def _seen(names: frozenset[str]) -> _Seen:
    return _Seen(names)


class _Chunk:
    """Examples that are examined together; `rest` holds the rows of those that are not decoded yet."""

    def __init__(self, serialized: list[bytes], examples: ExampleBytes, first: int, found: _Columns) -> None:
        self.serialized, self.examples = serialized, examples
        self._first, self._found = first, found
        self.rest, self._places = enclosed(examples, FEATURES)
        self.odd: list[int] = []
        if len(self.rest) < len(serialized):
            self.odd = np.delete(np.arange(len(serialized)), self.rest).tolist()

    @property
    def places(self) -> Places:
        """Where the features of the remaining examples start."""
        return self._places[self.rest]

    def learned(self) -> Template | None:
        """The layout of the first remaining example; None if it is unusual, and then removed from the rest."""
        row = int(self.rest[0])
        try:
            return learned(self.serialized[row], int(self._places[row] - self.examples.starts[row]))
        except Malformed:
            self.odd.append(row)
            self.rest = self.rest[1:]
            return None

    def take(self, whole: list[Found], done: Flags) -> None:
        """Adds the columns of the marked examples among the rest."""
        for name, column in decoded(self.examples, self.rest, self.rest + self._first, whole, done):
            self._found[name].append(column)
        self.rest = self.rest[:0] if done.all() else self.rest[~done]

    def left(self) -> list[int]:
        """The numbers of the examples that are still not decoded."""
        return [row + self._first for row in sorted([*self.odd, *self.rest.tolist()])]


def _chunks(serialized: list[bytes], seen: _Seen, found: _Columns, views: bool) -> Iterator[_Chunk]:
    count = len(serialized)
    sizes = np.fromiter(map(len, serialized), np.int64, count)
    total = int(sizes.sum())
    if total > count * max(_LONG_BYTES, _LONG_FEATURE_BYTES * len(seen.template)):
        yield _Chunk(serialized, Apart(serialized, sizes, views), 0, found)
        return
    rows = max(_LEAST_ALIKE, count * _CHUNK_BYTES // max(total, 1), count // 16)
    for first in range(0, count, rows):
        chunk = serialized[first : first + rows]
        yield _Chunk(chunk, Joined(chunk, sizes[first : first + rows], views), first, found)


def _alike(chunk: _Chunk, seen: _Seen) -> list[int]:
    """Reads examples that share a layout; returns the numbers of the others."""
    if seen.layout is not None:
        seen.layout = _matched(chunk, seen.layout)
    for _ in range(_MOST_TEMPLATES):
        if len(chunk.rest) < _LEAST_ALIKE:
            break
        new = chunk.learned()
        if new is None:
            continue
        if not seen.template or 2 * len(chunk.rest) > len(chunk.serialized):
            seen.layout = _matched(chunk, Layout(new, seen.names, np.zeros(len(new), bool)))
        seen.template = merged(seen.template, new)
        whole, done = located(chunk.serialized, chunk.examples, chunk.rest, chunk.places, seen.template)
        chunk.take([each for each in whole if each.names[0] in seen.names], done)
    return chunk.left()


def _matched(chunk: _Chunk, layout: Layout) -> Layout:
    """Reads the examples that match a layout; returns it, adapted to match more of them."""
    chunk.take(*layout.match(chunk.examples, chunk.rest, chunk.places))
    if len(chunk.rest):
        wider = layout.widened(chunk.examples, chunk.rest, chunk.places)
        if wider is not None:
            chunk.take(*wider.match(chunk.examples, chunk.rest, chunk.places))
            return wider
    return layout


def _one_by_one(
    serialized: list[bytes], rows: Iterable[int], names: Collection[str]
) -> Iterator[tuple[str, Column]]:
    """The values of examples with any layout."""
    strips: dict[tuple[str, int], list[tuple[int, Any]]] = defaultdict(list)
    for row in rows:
        try:
            for name, (kind, values) in read_features(part(serialized[row], 1), names):
                strips[name, kind].append((row, values))
        except (Malformed, UnicodeDecodeError) as error:
            raise Malformed(f"example {row} of the batch is damaged: {error}") from error
    for (name, kind), strip in strips.items():
        if kind == BYTES:
            texts = [text for _, values in strip for text in values]
            joined: Array = np.fromiter(texts, object, len(texts))
        else:
            joined = np.concatenate([values for _, values in strip])
        counts = np.array([len(values) for _, values in strip])
        each = int(counts[0]) if (counts == counts[0]).all() else -1
        yield name, Column(np.array([row for row, _ in strip]), kind, joined, counts, each)
