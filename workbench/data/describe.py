"""A dataset's display: text and script-free HTML. Reads nothing."""

from __future__ import annotations

import html
from typing import Any

from workbench.data.spec import INFINITE_CARDINALITY, UNKNOWN_CARDINALITY
from workbench.data.stage import Pipeline, Source, Stage
from workbench.telemetry.formatting import printable

_WIDTH = 88


class DatasetText:
    """The texts of a dataset; `Dataset` is the only one that inherits it.

    Attributes:
      source: Where elements come from.
      stages: What is done to them.
    """

    source: Source
    stages: tuple[Stage, ...]
    _element_spec: Any

    def _count(self) -> str:
        try:
            count = self.cardinality()  # type: ignore[attr-defined]
        except Exception:
            return "unknown number of elements"
        match count:
            case _ if count == INFINITE_CARDINALITY:
                return "endless"
            case _ if count == UNKNOWN_CARDINALITY:
                return "unknown number of elements"
            case 1:
                return "1 element"
        return f"{count:,} elements"

    def __repr__(self) -> str:
        text = f"<Dataset: {' → '.join(_parts(self))}, {self._count()}>"
        return text if len(text) <= _WIDTH else f"{text[: _WIDTH - 2]}…>"

    def _repr_html_(self) -> str:
        boxes = " → ".join(f"<code>{html.escape(part)}</code>" for part in _parts(self))
        parts = printable(str(self._element_spec))
        spec = "" if self._element_spec is None else f"<br><small>{html.escape(parts)}</small>"
        return f"<div><b>Dataset</b> {boxes} · {html.escape(self._count())}{spec}</div>"

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        return {"text/plain": repr(self), "text/html": self._repr_html_()}


def _parts(dataset: DatasetText | Pipeline) -> list[str]:
    name = dataset.source.text
    if inner := dataset.source.inputs():
        name += f"[{', '.join(' → '.join(_parts(each)) for each in inner)}]"
    return [printable(name), *(printable(stage.text) for stage in dataset.stages)]
