"""Locates the features of many serialized examples, all examples at a time.

Examples that one program wrote have the same features in the same order, and only the lengths of some differ. So the
bytes before the values are learned from one example and searched for in all others. `Layout` does that for examples
that have all of the features; `optional_features.py` for those that lack some, or whose lengths take other numbers of
bytes. Examples that match neither are left to other code; this is not an error, because examples may be written in
other ways.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Container
from typing import Final, NamedTuple

import numpy as np

from workbench.io.example_bytes import ExampleBytes, Flags, Octets, Places
from workbench.io.examples import FLOAT
from workbench.io.header_checks import Position, VaryingHeaders, runs_of
from workbench.io.headers import Header, Template

# Up to this many headers are compared one by one with a column of bytes.
_FEW: Final = 8


class Found(NamedTuple):
    """Features of the same form in some examples.

    Attributes:
      names: The names of the features.
      kind: The kind of the values.
      single: Whether the bytes between starts and stops are one item: a text, or packed numbers. Otherwise, they are a
        list of items.
      rows: Which examples, `(n,)`.
      starts: Where the values start, `(features, n)`.
      stops: Where they end.
      size: Bytes of the values of each if that is one number, and they are floats; otherwise -1.
    """

    names: tuple[str, ...]
    kind: int
    single: bool
    rows: Places
    starts: Places
    stops: Places
    size: int = -1

    def of(self, examples: Flags) -> Found:
        """The features in those of the examples that are marked."""
        kept = examples[self.rows]
        return self._replace(rows=self.rows[kept], starts=self.starts[:, kept], stops=self.stops[:, kept])

    def named(self, chosen: list[int]) -> Found:
        """Some of the features."""
        names = tuple(self.names[index] for index in chosen)
        return self._replace(names=names, starts=self.starts[chosen], stops=self.stops[chosen])


class Layout:
    """Features that examples have in the same order; some have the same length in each example.

    The varying lengths are chained: each one determines where the next starts. So this first finds all *points*, where
    these features end, one step for each. Everything else has a fixed distance from the last point. Then the bytes of
    all headers are compared at once.
    """

    def __init__(self, template: Template, names: Container[str], varying: Flags) -> None:
        """Prepares for the headers of `template`.

        Args:
          template: The template of an example that has this layout.
          names: The names of the requested features.
          varying: Which features vary in length, `(features,)`.
        """
        self._template, self._names, self._varying = template, names, varying
        varied: list[Header] = []
        self._alike = alike = list[tuple[Position, Octets]]()
        forms: dict[tuple[int, bool, int], list[tuple[str, Position, Position]]] = defaultdict(list)
        self._steps: list[tuple[int, int]] = []
        point = offset = 0
        for (name, header), varies in zip(template.items(), varying.tolist(), strict=True):
            start = point, offset + len(header.same)
            if varies:
                varied.append(header)
                self._steps.append((offset, header.lengths[0].stop - 1))
                point, offset = point + 1, 0
            else:
                alike.append(((point, offset), header.same))
                offset += header.size
            if name in names:
                known = header.kind == FLOAT and header.single and not varies
                size = header.size - len(header.same) if known else -1
                forms[header.kind, header.single, size].append((name, start, (point, offset)))
        self._tail = offset
        self._varied = VaryingHeaders(varied, [offset for offset, _ in self._steps]) if varied else None
        self._runs = runs_of(alike)
        features = [feature for form in forms.values() for feature in form]
        self._forms = [(*form, tuple(name for name, *_ in those)) for form, those in forms.items()]
        ends = [start for _, start, _ in features], [stop for *_, stop in features]
        positions = np.array(ends, np.int64).reshape(2, -1, 2)
        self._points, self._offsets = positions[..., 0], positions[..., 1, None]

    def match(self, examples: ExampleBytes, rows: Places, places: Places) -> tuple[list[Found], Flags]:
        """The requested features of examples, and which of the examples have this layout.

        Args:
          examples: The bytes.
          rows: Which of the examples.
          places: Where the features of each start.

        Returns:
          Features, whose rows count within `rows`; and a flag for each of `rows`. The results for an example without
          the flag are invalid.
        """
        points = examples.chain(rows, places, self._steps)
        inside = np.arange(len(rows))
        at = points.take(self._points, axis=0)
        at += self._offsets
        found, first = [], 0
        for kind, single, size, names in self._forms:
            starts, stops = at[:, first : first + len(names)]
            found.append(Found(names, kind, single, inside, starts, stops, size))
            first += len(names)
        return found, self._fits(examples, rows, points)

    def widened(self, examples: ExampleBytes, rows: Places, places: Places) -> Layout | None:
        """A layout for examples in which further lengths vary; None if there are none."""
        loose = Layout(self._template, self._names, np.ones(len(self._template), bool))
        points = examples.chain(rows, places, loose._steps)
        fit = loose._fits(examples, rows, points)
        sizes = np.array([header.size for header in self._template.values()])[:, None]
        varying = (np.diff(points, axis=0) != sizes)[:, fit].any(axis=1)
        if not (varying & ~self._varying).any():
            return None
        return Layout(self._template, self._names, varying | self._varying)

    def _fits(self, examples: ExampleBytes, rows: Places, points: Places) -> Flags:
        if self._all_fit(examples, points):
            return np.ones(len(rows), bool)
        fit: Flags = points[-1] + self._tail == examples.stops[rows]
        for runs in self._runs:
            fit &= runs.fits(examples, rows, points)
        if self._varied is not None:
            fit &= self._varied.fits(examples, rows, points)
        return fit

    def _all_fit(self, examples: ExampleBytes, points: Places) -> bool:
        """Whether all examples have one size and the same headers. False also if that would take long to check."""
        if self._varied is not None or len(self._alike) > _FEW or len(points[0]) < len(examples.starts):
            return False
        behind = points[0] - examples.starts
        first = int(behind[0])
        if not examples.least == examples.most == first + self._tail or (behind != first).any():
            return False
        return all(
            examples.column(first + offset, len(same)).tobytes() == same.tobytes() * len(behind)
            for (_, offset), same in self._alike
        )
