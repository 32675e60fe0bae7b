"""Where the features of many serialized examples lie, found for all examples at a time.

Examples that one program wrote have the same features in the same order, and only the lengths of some differ. So the
bytes before the values are learned from one example and looked for in all others. `Layout` does that for examples that
have all of the features; `optional_features.py` for those that lack some, or whose lengths take other numbers of bytes.
What fits neither is not understood here, which is no error: examples may be written in other ways.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Container
from dataclasses import dataclass, replace

import numpy as np

from workbench.io.example_bytes import ExampleBytes, Flags, Octets, Places
from workbench.io.header_checks import Position, VaryingHeaders, runs_of
from workbench.io.headers import Header, Template


@dataclass(frozen=True, slots=True)
class Found:
    """Features of one form in some examples.

    Attributes:
      names: The names of the features.
      kind: The kind of the values.
      single: Whether the bytes between starts and stops are one item: a text, or packed numbers. Else they are a list
        of items.
      rows: Which examples, `(n,)`.
      starts: Where the values start, `(features, n)`.
      stops: Where they end.
    """

    names: tuple[str, ...]
    kind: int
    single: bool
    rows: Places
    starts: Places
    stops: Places

    def of(self, examples: Flags) -> Found:
        """The features in those of the examples that are marked."""
        kept = examples[self.rows]
        return replace(self, rows=self.rows[kept], starts=self.starts[:, kept], stops=self.stops[:, kept])

    def named(self, chosen: list[int]) -> Found:
        """Some of the features."""
        names = tuple(self.names[index] for index in chosen)
        return replace(self, names=names, starts=self.starts[chosen], stops=self.stops[chosen])


class Layout:
    """Features that examples have in one order; some have the same length in each.

    The lengths of those that vary are chained: that of one says where the next one starts. So first all *points* are
    found, where these features end, a step for each. Everything else is some bytes behind the last point. Then the
    bytes of all headers are compared at once.
    """

    def __init__(self, template: Template, names: Container[str], varying: Flags) -> None:
        """Prepares for the headers of `template`.

        Args:
          template: The template of an example that has this layout.
          names: The names of the features that are wanted.
          varying: Which features have another length in other examples, `(features,)`.
        """
        self._template, self._names, self._varying = template, names, varying
        varied: list[Header] = []
        alike: list[tuple[Position, Octets]] = []
        forms: dict[tuple[int, bool], list[tuple[str, Position, Position]]] = defaultdict(list)
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
                forms[header.kind, header.single].append((name, start, (point, offset)))
        self._tail = offset
        self._varied = VaryingHeaders(varied, [offset for offset, _ in self._steps]) if varied else None
        self._runs = runs_of(alike)
        features = [feature for form in forms.values() for feature in form]
        self._forms = [
            (kind, single, tuple(name for name, *_ in form)) for (kind, single), form in forms.items()
        ]
        positions = np.array([(start, stop) for _, start, stop in features], np.int64).reshape(-1, 2, 2)
        self._points, self._offsets = positions[..., 0], positions[..., 1, None]

    def match(self, examples: ExampleBytes, rows: Places, places: Places) -> tuple[list[Found], Flags]:
        """The wanted features of examples, and which of the examples have this layout.

        Args:
          examples: The bytes.
          rows: Which of the examples.
          places: Where the features of each start.

        Returns:
          Features, whose rows count within `rows`; and a flag for each of `rows`. What is said of an example without
          the flag is not true.
        """
        points = examples.chain(rows, places, self._steps)
        inside = np.arange(len(rows))
        at = points[self._points] + self._offsets
        found, first = [], 0
        for kind, single, names in self._forms:
            starts, stops = at[first : first + len(names)].swapaxes(0, 1)
            found.append(Found(names, kind, single, inside, starts, stops))
            first += len(names)
        return found, self._fits(examples, rows, points)

    def widened(self, examples: ExampleBytes, rows: Places, places: Places) -> Layout | None:
        """A layout for those of some examples in which lengths vary that did not so far; None if there are none."""
        loose = Layout(self._template, self._names, np.ones(len(self._template), bool))
        points = examples.chain(rows, places, loose._steps)
        fit = loose._fits(examples, rows, points)
        sizes = np.array([header.size for header in self._template.values()])[:, None]
        varying = (np.diff(points, axis=0) != sizes)[:, fit].any(axis=1)
        if not (varying & ~self._varying).any():
            return None
        return Layout(self._template, self._names, varying | self._varying)

    def _fits(self, examples: ExampleBytes, rows: Places, points: Places) -> Flags:
        fit: Flags = points[-1] + self._tail == examples.stops[rows]
        for runs in self._runs:
            fit &= runs.fits(examples, rows, points)
        if self._varied is not None:
            fit &= self._varied.fits(examples, rows, points)
        return fit
