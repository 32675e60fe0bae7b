"""The step of `ours.traced` in plain JAX: jit of shard_map with donation on eight emulated devices of one process."""

from __future__ import annotations

import os
import time
from collections import deque
from typing import Any

from tests.benchmarks.measure import Script, time_calls
from tests.benchmarks.traced_step import IN_FLIGHT, REPLICAS, STEPS, THREADS, gradient, operands


def main() -> None:
    """Measures steps, and what comes before the first one is done."""
    script = Script("traced", __doc__)
    os.environ["NPROC"] = str(THREADS)
    from tests.benchmarks.peers.jax_devices import mesh

    devices, split, _ = mesh(REPLICAS)
    import jax
    import numpy as np
    from jax.sharding import PartitionSpec as P

    start, rows = operands()
    x = jax.device_put(rows, split)

    def weight() -> Any:
        return jax.device_put(np.tile(start, (REPLICAS, 1, 1)), split)

    def fresh() -> Any:
        def step(w: Any, x: Any) -> tuple[Any, Any]:
            loss, own = gradient(w[0], x[0])
            return (w[0] - np.float32(1e-6) * jax.lax.pmean(own, "i"))[None], loss[None]

        spread = jax.shard_map(step, mesh=devices, in_specs=P("i"), out_specs=P("i"), check_vma=False)
        return jax.jit(spread, donate_argnums=0)

    with script.case("JAX shard_map", "trace and compile", unit="ms", scale=1e3, replicas=REPLICAS) as case:
        for _ in range(max(3, int(5 * script.options.scale))):
            step, w = fresh(), weight()
            begun = time.perf_counter()
            w, loss = step(w, x)
            np.asarray(loss)
            case.samples.append(time.perf_counter() - begun)
    state = [w]

    def burst() -> None:
        started: deque[Any] = deque()
        w = state[0]
        for _ in range(STEPS):
            w, loss = step(w, x)
            started.append(loss)
            if len(started) >= IN_FLIGHT:
                started.popleft().block_until_ready()
        np.asarray(loss)
        state[0] = w

    with script.case("JAX shard_map", "1 ms step", scale=1e6 / STEPS, replicas=REPLICAS) as case:
        case.samples = time_calls(burst, seconds=4 * script.options.scale, warm_up=2)


if __name__ == "__main__":
    main()
