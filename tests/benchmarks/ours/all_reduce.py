"""Our all_reduce of float32 inside replica functions, as users call it: a loop in one step of `strategy.run`.

It takes and gives ordinary arrays. Replicas are processes, or (`--threads 1`) threads of this process. What only the
communicator below offers, such as one shared result for a host, is measured by `ours.communicator` and has no bar.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import workbench as wb
from tests.benchmarks.measure import SIZES, Script, time_in_step
from workbench.runtime.replica.env import current_env


def timed(nbytes: int, scale: float) -> Any:
    """Runs on each replica: the duration of each call."""
    context, env = wb.distribute.get_replica_context(), current_env()
    assert context is not None
    assert env is not None
    array = np.full(nbytes // 4, context.replica_id_in_sync_group + 1, np.float32)

    def operation() -> Any:
        return context.all_reduce("sum", array)

    result = operation()
    assert result[0] == result[-1] == env.size * (env.size + 1) / 2
    del result
    return np.array(time_in_step(operation, env.communicator.barrier, nbytes, scale))


def main() -> None:
    """Measures all sizes."""
    script = Script("all_reduce", __doc__, replicas=2, threads=0)
    replicas, threads = script.options.replicas, bool(script.options.threads)
    who = "workbench, threads" if threads else "workbench"
    with wb.connect(replicas=replicas, processes=not threads):
        strategy = wb.MirroredStrategy()
        for what, nbytes in SIZES.items():
            if not script.wants(who, what):
                continue
            with script.case(who, what, replicas=replicas) as case:
                samples = strategy.run(timed, (nbytes, script.options.scale))
                case.samples = list(strategy.local_results(samples)[0])


if __name__ == "__main__":
    main()
