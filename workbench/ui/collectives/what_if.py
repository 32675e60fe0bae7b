"""`wb.collectives.what_if`: how long a step would take with another number of replicas."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Final

from workbench.telemetry.cost_model import PATTERNS, LinkCost, Pattern, all_reduce_us, predicted_step_us
from workbench.telemetry.dataframe import frame_of
from workbench.telemetry.formatting import rate_text, significant, size_text, time_unit, whole_percent
from workbench.ui.render import html
from workbench.ui.render.text_table import aligned

if TYPE_CHECKING:
    import pandas as pd

REPLICAS: Final = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 10_000)


@dataclass(frozen=True, slots=True)
class Prediction:
    """The prediction for one number of replicas and one algorithm.

    Attributes:
      replicas: Number of replicas.
      pattern: "ring", "tree" or "one".
      all_reduce_us: Time of the all_reduce.
      step_us: Time of the step.
      efficiency_percent: Share of the step in which replicas compute.
    """

    replicas: int
    pattern: Pattern
    all_reduce_us: float
    step_us: float
    efficiency_percent: float


@dataclass(frozen=True, slots=True, repr=False)
class WhatIf:
    """Predicted steps; prints as a table.

    Attributes:
      link: α and β.
      compute_us: What a replica computes in a step.
      size_bytes: Bytes to reduce.
      predictions: By replicas, then pattern.
    """

    link: LinkCost
    compute_us: float
    size_bytes: int
    predictions: tuple[Prediction, ...]

    def fastest(self, replicas: int) -> Prediction:
        """The shortest step with this number of replicas.

        Raises:
          KeyError: if nothing was predicted for that number.
        """
        found = [prediction for prediction in self.predictions if prediction.replicas == replicas]
        if not found:
            known = ", ".join(map(str, dict.fromkeys(each.replicas for each in self.predictions)))
            raise KeyError(f"nothing was predicted for {replicas} replicas, only for {known}")
        return min(found, key=lambda prediction: prediction.step_us)

    def to_pandas(self) -> pd.DataFrame:
        """The predictions as a data frame, a row each.

        Raises:
          BackendUnavailable: if pandas is not installed.
        """
        return frame_of(asdict(prediction) for prediction in self.predictions)

    def __repr__(self) -> str:
        title, headings, rows = self._table()
        return "\n".join([title, *aligned(headings, rows, left=("fastest",))])

    def _repr_html_(self) -> str:
        title, headings, rows = self._table()
        return html.card("What if", [title], parts=[html.table(headings, rows)])

    def _table(self) -> tuple[str, list[str], list[list[str]]]:
        unit, per_us = time_unit([prediction.step_us for prediction in self.predictions])
        by_replicas: dict[int, dict[str, Prediction]] = {}
        for prediction in self.predictions:
            by_replicas.setdefault(prediction.replicas, {})[prediction.pattern] = prediction
        rows = []
        for replicas, found in by_replicas.items():
            best = self.fastest(replicas)
            steps = [significant(found[pattern].step_us / per_us) for pattern in PATTERNS]
            fastest = best.pattern if best.all_reduce_us else "–"
            rows.append([str(replicas), *steps, fastest, whole_percent(best.efficiency_percent)])
        title = (
            f"Predicted step in {unit}: compute {significant(self.compute_us / per_us)} {unit}, "
            f"reduce {size_text(self.size_bytes)}, α {significant(self.link.latency_us)} µs, "
            f"β {rate_text(self.link.bandwidth)}"
        )
        return title, ["replicas", *PATTERNS, "fastest", "compute %"], rows


def what_if(
    link: LinkCost, *, size_bytes: int, compute_us: float, replicas: Sequence[int] = REPLICAS
) -> WhatIf:
    """Predicts how long a step takes for N replicas that reduce by ring, by tree, or on one replica.

    Nothing is run: the formulas and their sources are in `telemetry.cost_model`. Each replica keeps its batch, so
    `compute_us` does not depend on their number.

    Args:
      link: α and β, such as those that `SweepResult.link` measured.
      size_bytes: Size of the gradients.
      compute_us: What a replica computes in a step.
      replicas: Numbers of replicas.

    Raises:
      TypeError: if `link` is not a `LinkCost`.
      ValueError: if a number is invalid.
    """
    if not isinstance(link, LinkCost):
        raise TypeError(
            f"link must be a LinkCost, got {type(link).__name__}; write wb.collectives.sweep(strategy).link(), or "
            f"wb.collectives.LinkCost(latency_us=…, bandwidth=…)"
        )
    if size_bytes < 0 or not compute_us >= 0:
        raise ValueError(f"size_bytes and compute_us must not be negative, got {size_bytes} and {compute_us}")
    predictions = []
    for count in replicas:
        for pattern in PATTERNS:
            step = predicted_step_us(pattern, count, compute_us=compute_us, size_bytes=size_bytes, link=link)
            reducing = all_reduce_us(pattern, count, size_bytes, link)
            share = 100 * compute_us / step if step else 100.0
            predictions.append(Prediction(count, pattern, reducing, step, share))
    return WhatIf(link, compute_us, size_bytes, tuple(predictions))
