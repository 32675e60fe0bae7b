"""How long this machine takes to copy as many bytes as an all_reduce combines: one process, and two at once."""

from __future__ import annotations

import multiprocessing
from multiprocessing.connection import Connection

import numpy as np

from tests.benchmarks.measure import SIZES, Script, time_calls


def copy(nbytes: int, seconds: float, pipe: Connection) -> None:
    """Copies for some time; sends the duration of each copy."""
    source, target = np.ones(nbytes, np.uint8), np.zeros(nbytes, np.uint8)
    pipe.send(None)
    pipe.recv()
    pipe.send(time_calls(lambda: np.copyto(target, source), seconds=seconds, warm_up=3))


def main() -> None:
    """Measures all sizes."""
    script, context = Script("all_reduce", __doc__), multiprocessing.get_context("fork")
    for what, nbytes in SIZES.items():
        for count in (1, 2):
            with script.case(f"memcpy, {count} at once", what) as case:
                pipes, processes = [], []
                for _ in range(count):
                    ours, theirs = context.Pipe()
                    process = context.Process(target=copy, args=(nbytes, 0.3 * script.options.scale, theirs))
                    process.start()
                    pipes.append(ours)
                    processes.append(process)
                for pipe in pipes:
                    pipe.recv()
                for pipe in pipes:
                    pipe.send(None)
                case.samples = [seconds for pipe in pipes for seconds in pipe.recv()]
                for process in processes:
                    process.join(10)


if __name__ == "__main__":
    main()
