"""Our all_reduce of float32 inside replica functions, as users call it: a loop in one step of `strategy.run`.

"workbench" takes and gives ordinary arrays. "empty" takes arrays made in shared memory; "shared" gives all replicas of
the host one read-only result. Replicas are processes, or (`--threads 1`) threads of this process.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import workbench as wb
from tests.benchmarks.measure import SIZES, Script, time_in_step
from workbench.runtime.env import current_env

VARIANTS = ("", "empty", "shared", "empty, shared")


def timed(nbytes: int, variant: str, scale: float) -> Any:
    """Runs on each replica: the duration of each call."""
    context, env = wb.distribute.get_replica_context(), current_env()
    assert context is not None
    assert env is not None
    communicator = env.communicator
    count, shared = nbytes // 4, "shared" in variant
    array = communicator.empty(count, np.float32) if "empty" in variant else np.empty(count, np.float32)
    array[:] = context.replica_id_in_sync_group + 1

    def operation() -> Any:
        if shared:
            return communicator.all_reduce([array], "sum", site="benchmark", shared=True)[0]
        return context.all_reduce("sum", array)

    result = operation()
    assert result[0] == result[-1] == env.size * (env.size + 1) / 2
    del result
    return np.array(time_in_step(operation, communicator.barrier, nbytes, scale))


def main() -> None:
    """Measures all sizes and variants."""
    script = Script("all_reduce", __doc__, replicas=2, threads=0)
    replicas, threads = script.options.replicas, bool(script.options.threads)
    base = "workbench, threads" if threads else "workbench"
    with wb.connect(replicas=replicas, processes=not threads):
        strategy = wb.MirroredStrategy()
        for what, nbytes in SIZES.items():
            for variant in VARIANTS[:1] if threads else VARIANTS:
                who = f"{base}, {variant}" if variant else base
                if not script.wants(who, what):
                    continue
                with script.case(who, what, replicas=replicas) as case:
                    samples = strategy.run(timed, (nbytes, variant, script.options.scale))
                    case.samples = list(strategy.local_results(samples)[0])


if __name__ == "__main__":
    main()
