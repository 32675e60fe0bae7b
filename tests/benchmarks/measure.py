"""What every benchmark script is made of: options, timing, and one JSON line per case.

Standard library only: interpreters without our dependencies import it too.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.benchmarks.noise import Noise

SIZES = {"1 KB": 1 << 10, "64 KB": 1 << 16, "1 MB": 1 << 20, "16 MB": 1 << 24, "128 MB": 1 << 27}
_CALLS = {1 << 10: 4000, 1 << 16: 2000, 1 << 20: 300, 1 << 24: 40, 1 << 27: 8}
_BURST = 20


class Case:
    """What is measured in one `Script.case` block.

    Attributes:
      samples: Set by the block: what was measured, in seconds unless the case has its own scale.
    """

    def __init__(self) -> None:
        self.samples: list[float] = []


class Script:
    """One benchmark script: its command line, and the file that its results go to.

    Attributes:
      options: The parsed command line. `scale` multiplies time budgets and call counts.
      silent: Report nothing: another process of this script does.
    """

    def __init__(self, suite: str, description: str | None, **defaults: Any) -> None:
        """Reads the command line; `defaults` are options of this script, each of its default's type."""
        parser = argparse.ArgumentParser(
            description=description, formatter_class=argparse.RawDescriptionHelpFormatter
        )
        parser.add_argument("--json", type=Path, help="append results to this file")
        parser.add_argument("--scale", type=float, default=1.0, help="multiplies time budgets")
        parser.add_argument("--only", default="", help="cases whose name contains this")
        for name, default in defaults.items():
            parser.add_argument("--" + name.replace("_", "-"), type=type(default), default=default)
        self.options = parser.parse_args()
        self.silent = False
        self._suite = suite

    @contextmanager
    def case(
        self, who: str, what: str, *, unit: str = "µs", scale: float = 1e6, replicas: int = 2
    ) -> Iterator[Case]:
        """Measures one case: the block sets `samples`. A case that raises is reported as failed, others go on.

        Args:
          who: The program whose figure it is, such as "Dask actors".
          what: The column it belongs in, such as "64 KB".
          unit: The unit of the result; a unit that ends in "/s" is a rate, of which more is better.
          scale: From samples to the unit.
          replicas: How many took part.
        """
        case, row = (
            Case(),
            {"suite": self._suite, "who": who, "what": what, "unit": unit, "replicas": replicas},
        )
        try:
            with Noise() as noise:
                yield case
        except Exception as error:
            self._write(row | {"error": f"{type(error).__name__}: {error}"[:300]})
            return
        values = sorted(sample * scale for sample in case.samples)
        if not values:
            return  # not selected
        row |= {name: quantile(values, q) for name, q in (("median", 0.5), ("p5", 0.05), ("p95", 0.95))}
        row |= {"min": values[0], "max": values[-1], "n": len(values)}
        self._write(row | {"foreign_cores": round(noise.foreign_cores, 3)})

    def wants(self, *names: str) -> bool:
        """Whether `--only` leaves a case of these names in."""
        return self.options.only in " ".join(names)

    def _write(self, row: dict[str, Any]) -> None:
        if self.silent:
            return
        if self.options.json is not None:
            with self.options.json.open("a") as file:
                file.write(json.dumps(row) + "\n")
        told = row.get("error") or f"{row['median']:.4g} {row['unit']}, p95 {row['p95']:.4g}, n={row['n']}"
        print(f"  {row['who']}, {row['what']}, {row['replicas']} replicas: {told}", flush=True)


def quantile(values: list[float], q: float) -> float:
    """Quantile `q` of sorted values, interpolated."""
    at = q * (len(values) - 1)
    low = int(at)
    high = min(low + 1, len(values) - 1)
    return values[low] + (values[high] - values[low]) * (at - low)


def time_calls(
    function: Callable[[], Any], *, seconds: float = 1.5, most: int = 5000, warm_up: int = 50
) -> list[float]:
    """Seconds of each call: as many as fit into `seconds`, at least 5, at most `most`."""
    ends = time.perf_counter() + seconds * 0.3
    for _ in range(warm_up):
        function()
        if time.perf_counter() > ends:
            break
    samples: list[float] = []
    ends = time.perf_counter() + seconds
    while len(samples) < most:
        start = time.perf_counter()
        function()
        now = time.perf_counter()
        samples.append(now - start)
        if now > ends and len(samples) >= 5:
            break
    return samples


def time_in_step(
    operation: Callable[[], Any], barrier: Callable[[], Any], nbytes: int, scale: float
) -> list[float]:
    """Seconds of each call of a collective that several processes make in step.

    Up to 64 KB calls come in bursts, so that leaving the barrier late is not counted; larger ones each follow a
    barrier that is not timed. Every process makes the same number of calls.
    """
    burst = _BURST if nbytes <= 1 << 16 else 1
    calls = max(4, int(_CALLS[nbytes] * scale))
    for _ in range(min(_BURST, max(2, calls // 10))):
        operation()
    samples = []
    for _ in range(max(1, calls // burst)):
        barrier()
        for _ in range(burst):
            start = time.perf_counter()
            operation()
            samples.append(time.perf_counter() - start)
    return samples
