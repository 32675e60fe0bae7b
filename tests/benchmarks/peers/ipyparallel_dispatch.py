"""Steps on ipyparallel: DirectView.apply_sync on two engines; vectors are summed by the client."""

from __future__ import annotations

import logging
from typing import Any

import ipyparallel

from tests.benchmarks.measure import Script, time_calls


def main() -> None:
    """Measures both steps."""
    script = Script("dispatch", __doc__)
    with ipyparallel.Cluster(n=2, log_level=logging.ERROR) as client:
        view = client[:]

        def gradient() -> Any:
            import numpy

            return numpy.ones(256, numpy.float32)

        def noop() -> Any:
            return view.apply_sync(lambda: 1.0)

        def summed() -> Any:
            one, two = view.apply_sync(gradient)
            return view.apply_sync(lambda total: float(total[0]), one + two)

        for what, function, value in (("noop", noop, 1.0), ("1 KB", summed, 2.0)):
            assert function() == [value, value]
            with script.case("ipyparallel", what) as case:
                case.samples = time_calls(function, seconds=2 * script.options.scale, warm_up=20)


if __name__ == "__main__":
    main()
