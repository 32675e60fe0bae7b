"""`wb.overview`: text, HTML, and the model that a notebook draws."""

from __future__ import annotations

import numpy as np
import pytest

import workbench as wb
from workbench.errors import FailedPreconditionError
from workbench.ui.widgets.bundle import MIME


def step() -> None:
    """All replicas meet once."""
    wb.distribute.get_replica_context().all_reduce("sum", np.ones(8, np.float32))


def test_it_says_what_is_to_be_said_first_and_four_figures(cluster: wb.Cluster) -> None:
    strategy = wb.MirroredStrategy()
    for _ in range(3):
        strategy.run(step)
    shown = wb.overview(strategy)

    text, html = repr(shown), shown._repr_html_()
    for part in ("Watching: 3 of 20 steps", "steps per second", "2 of 2", "not finite"):
        assert part in text
        assert part in html
    assert shown.to_dict()["step"] == 2

    bundle = shown._repr_mimebundle_(include={MIME})
    assert bundle[MIME]["view"] == "overview"
    assert bundle[MIME]["model"]["overview"]["replicas"] == 2


def test_without_a_cluster_it_says_what_to_do() -> None:
    with pytest.raises(FailedPreconditionError, match=r"wb.overview\(\)"):
        wb.overview(wb.distribute.get_strategy())
