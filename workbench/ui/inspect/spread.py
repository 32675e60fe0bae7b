"""How the components of many replicas compare: quantiles, and outliers."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Final

import numpy as np

from workbench.backends.summary import Summary
from workbench.ui.models.inspected import Quantiles, ReplicaSpread, ReplicaSummary
from workbench.ui.render.outliers import FENCE, distances
from workbench.ui.render.text_table import MAX_ROWS

_MAX_OUTLIERS: Final = 8
_LEVELS: Final = (0.0, 0.1, 0.5, 0.9, 1.0)
_FIGURES: Final[dict[str, Callable[[Summary], float]]] = {
    "mean": lambda summary: summary.mean,
    "std": lambda summary: summary.std,
    "min": lambda summary: summary.min,
    "max": lambda summary: summary.max,
    "L2": lambda summary: summary.l2,
}


def spread_of(replicas: Sequence[ReplicaSummary]) -> ReplicaSpread | None:
    """How the components of more than 32 replicas compare; None for fewer, or if they are not arrays of numbers."""
    summaries = [replica.summary for replica in replicas if isinstance(replica.summary, Summary)]
    if len(replicas) <= MAX_ROWS or len(summaries) < len(replicas):
        return None
    scalar = all(math.prod(summary.shape) == 1 for summary in summaries)
    figures = {"value": _FIGURES["mean"]} if scalar else _FIGURES
    columns = {name: np.array([of(summary) for summary in summaries], float) for name, of in figures.items()}
    bad = np.array([summary.nan + summary.inf > 0 for summary in summaries])
    far = np.zeros(len(replicas))
    for values in columns.values():
        far = np.maximum(far, distances(values))
    ranks = np.lexsort((-far, ~bad))[: int((bad | (far > FENCE)).sum())]
    quantiles = tuple(_quantiles(name, values) for name, values in columns.items())
    return ReplicaSpread(
        tuple(part for part in quantiles if part is not None),
        tuple(sorted(replicas[rank].replica for rank in ranks[:_MAX_OUTLIERS].tolist())),
        len(ranks),
        int(bad.sum()),
        _rest(len(replicas), len(ranks), int(bad.sum())),
    )


def _rest(replicas: int, outlying: int, not_finite: int) -> str:
    """A line about the replicas that are not outliers."""
    hidden = replicas - min(outlying, _MAX_OUTLIERS)
    if not outlying:
        return ""
    if outlying <= _MAX_OUTLIERS:
        return f"… {hidden} more replicas, finite and close to each other"
    return (
        f"… {hidden} more replicas; of all {replicas}, {not_finite} have NaN or Inf and "
        f"{outlying - not_finite} are far from the others"
    )


def _quantiles(name: str, values: np.ndarray) -> Quantiles | None:
    finite = values[np.isfinite(values)]
    return Quantiles(name, *np.quantile(finite, _LEVELS).tolist()) if len(finite) else None
