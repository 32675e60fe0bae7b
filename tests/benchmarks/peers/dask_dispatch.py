"""Steps on plain Dask with two worker processes: tasks, and actors whose vectors are summed by the client."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
from distributed import Client, LocalCluster

from tests.benchmarks.measure import Script, time_calls


class Actor:
    """A replica's state."""

    def __init__(self) -> None:
        self.vector = np.ones(256, np.float32)

    def noop(self) -> float:
        """Does nothing."""
        return 1.0

    def gradient(self) -> Any:
        """The vector to be summed."""
        return self.vector

    def apply(self, total: Any) -> float:
        """Takes the sum."""
        return float(total[0])


def noop(_number: int) -> float:
    """Does nothing."""
    return 1.0


def gradient(_number: int) -> Any:
    """The vector to be summed."""
    return np.ones(256, np.float32)


def add(one: Any, two: Any) -> Any:
    """The sum."""
    return one + two


def first(total: Any) -> float:
    """Takes the sum."""
    return float(total[0])


def main() -> None:
    """Measures tasks and actors."""
    script, numbers = Script("dispatch", __doc__), itertools.count()
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
        Client(cluster) as client,
    ):
        workers = list(client.scheduler_info()["workers"])
        actors = [client.submit(Actor, actor=True, workers=[w]).result() for w in workers]

        def submit() -> Any:
            k = next(numbers)
            return client.gather([client.submit(noop, k, pure=False, workers=[w]) for w in workers])

        def submit_sum() -> Any:
            k = next(numbers)
            vectors = [client.submit(gradient, k, pure=False, workers=[w]) for w in workers]
            total = client.submit(add, *vectors, pure=False)
            return client.gather([client.submit(first, total, pure=False, workers=[w]) for w in workers])

        def actor() -> Any:
            return [future.result() for future in [a.noop() for a in actors]]

        def actor_sum() -> Any:
            one, two = (future.result() for future in [a.gradient() for a in actors])
            return [future.result() for future in [a.apply(one + two) for a in actors]]

        for who, what, function, value in (
            ("Dask submit", "noop", submit, 1.0),
            ("Dask submit", "1 KB", submit_sum, 2.0),
            ("Dask actors", "noop", actor, 1.0),
            ("Dask actors", "1 KB", actor_sum, 2.0),
        ):
            assert function() == [value, value]
            with script.case(who, what) as case:
                case.samples = time_calls(function, seconds=2 * script.options.scale, warm_up=30)


if __name__ == "__main__":
    main()
