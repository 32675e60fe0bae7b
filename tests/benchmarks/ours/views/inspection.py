"""`wb.inspect` of a large variable, and of its elements: how long it takes, and how much a notebook is sent.

Sent is everything that reaches the notebook's page: text, HTML, the model in the output and once more in the widget.
The size of the views' code is that of the module that a kernel sends once, and what gzip makes of it.
"""

from __future__ import annotations

import gzip
import json
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import workbench as wb
from tests.benchmarks.measure import Script
from workbench.ui.inspect.inspection import Inspection
from workbench.ui.render.plain_values import plain
from workbench.ui.widgets.built import STATIC, is_built

GIGABYTE = 10**9
CALLS = 5


def main() -> None:
    """Measures both."""
    script = Script("views", __doc__, replicas=2)
    replicas = script.options.replicas
    if is_built():
        code = (STATIC / "widget.js").read_bytes()
        for name, size in (("views' code", len(code)), ("views' code, gzip", len(gzip.compress(code)))):
            with script.case("workbench", name, unit="kB", scale=1e-3, replicas=0) as case:
                case.samples = [float(size)]
    with wb.connect(replicas=replicas):
        strategy = wb.MirroredStrategy()
        columns = 5000
        rows = max(1, int(script.options.scale * GIGABYTE) // (4 * columns))
        random = np.random.default_rng(0)
        with strategy.scope():
            large = wb.Variable(random.normal(size=(rows, columns)).astype(np.float32), name="large")
        for what, options in (("inspect 1 GB", {}), ("its elements", {"elements": ...})):
            seconds, sent = measured(lambda options=options: wb.inspect(large, **options))
            for name, unit, samples, scale in (
                (what, "s", seconds, 1.0),
                (f"{what}, sent", "kB", sent, 1e-3),
            ):
                with script.case("workbench", name, unit=unit, scale=scale, replicas=replicas) as case:
                    case.samples = samples


def measured(look: Callable[[], Inspection]) -> tuple[list[float], list[float]]:
    """Seconds and bytes of some calls."""
    look()
    seconds, sent = [], []
    for _ in range(CALLS):
        began = time.perf_counter()
        found = look()
        texts = [repr(found), found._repr_html_()]
        model: dict[str, Any] = plain(found.model)
        seconds.append(time.perf_counter() - began)
        sent.append(float(len(json.dumps([*texts, model, model]).encode())))
    return seconds, sent


if __name__ == "__main__":
    main()
