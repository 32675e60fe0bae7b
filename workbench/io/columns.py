"""The values of many serialized examples, feature by feature."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np

from workbench.io.example_bytes import Apart, ExampleBytes, Joined, Places, fields_at
from workbench.io.examples import BYTES, part, read_features
from workbench.io.headers import ENTRY, Template, learned, merged
from workbench.io.layouts import Flags, Found, Layout, located
from workbench.io.values import Array, Column, decoded
from workbench.io.wire import Malformed

# As much of a batch as stays in a core's cache.
_CHUNK_BYTES = 1 << 20
# Above so many bytes per feature a copy costs more than looking into each example.
_LONG_BYTES = 1024
_LEAST_ALIKE = 8
_MOST_TEMPLATES = 8


@dataclass(slots=True)
class _Seen:
    """What examples looked like when the same features were last asked for: a guess, which any thread may replace."""

    layout: Layout | None = None
    template: Template = field(default_factory=dict)


def columns(serialized: list[bytes], names: Collection[str]) -> dict[str, list[Column]]:
    """The values of the named features; examples that do not have one are in none of its columns.

    What other features hold is not looked at.

    Raises:
      Malformed: if the bytes of an example are damaged; the text has its number.
    """
    found: dict[str, list[Column]] = {name: [] for name in names}
    seen = _seen(frozenset(names))
    for first, chunk in _chunks(serialized):
        rest = np.arange(len(chunk))
        if len(chunk) >= _LEAST_ALIKE:
            rest = _alike(chunk, first, seen, found)
        for name, column in _one_by_one(serialized, (rest + first).tolist(), names):
            found[name].append(column)
    return found


@lru_cache(64)
def _seen(names: frozenset[str]) -> _Seen:
    return _Seen()


def _chunks(serialized: list[bytes]) -> Iterator[tuple[int, list[bytes]]]:
    total = sum(map(len, serialized))
    rows = max(_LEAST_ALIKE, len(serialized) * _CHUNK_BYTES // max(total, 1), len(serialized) // 16)
    if total > 2 * _LONG_BYTES * len(serialized):  # these are mostly not joined
        rows = len(serialized)
    for start in range(0, len(serialized), rows):
        yield start, serialized[start : start + rows]


def _alike(chunk: list[bytes], first: int, seen: _Seen, found: dict[str, list[Column]]) -> Places:
    """Adds the columns of examples of which many are alike; gives the rows of those that are not."""
    long = sum(map(len, chunk)) > len(chunk) * _LONG_BYTES * max(1, len(seen.template))
    examples: ExampleBytes = Apart(chunk) if long else Joined(chunk)
    rows = np.arange(len(chunk))
    tags, places, stops = fields_at(examples, rows, examples.starts)
    formed = (tags == ENTRY) & (stops == examples.stops) & (places < stops)
    odd, rest = rows[~formed], rows[formed]

    def taken(whole: list[Found], done: Flags) -> None:
        nonlocal rest
        wanted = [
            each.named([index for index, name in enumerate(each.names) if name in found]) for each in whole
        ]
        numbers = rest + first
        for name, column in decoded(examples, rest, wanted, done):
            found[name].append(column.of_rows(numbers))
        rest = rest[~done]

    if seen.layout is not None:
        taken(*seen.layout.match(examples, rest, places[rest]))
    for _ in range(_MOST_TEMPLATES):
        if len(rest) < _LEAST_ALIKE:
            break
        row = int(rest[0])
        try:
            new = learned(chunk[row], int(places[row] - examples.starts[row]))
        except Malformed:
            odd, rest = np.append(odd, row), rest[1:]
            continue
        if not seen.template or 2 * len(rest) > len(chunk):
            seen.layout = Layout(new)
            taken(*seen.layout.match(examples, rest, places[rest]))
        seen.template = merged(seen.template, new)
        taken(*located(chunk, examples, rest, places[rest], seen.template))
    return np.sort(np.append(odd, rest))


def _one_by_one(
    serialized: list[bytes], rows: list[int], names: Collection[str]
) -> Iterator[tuple[str, Column]]:
    """The values of examples in whatever form."""
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
