"""Steps of JAX: a jitted shard_map on two CPU devices of one process, its result fetched."""

from __future__ import annotations

from typing import Any

from tests.benchmarks.measure import Script, time_calls
from tests.benchmarks.peers.jax_devices import mesh

IN_FLIGHT = 100  # no-op steps; JAX aborts with more psums in progress


def main() -> None:
    """Measures both steps, and the noop with many in flight."""
    script = Script("dispatch", __doc__)
    devices, split, _ = mesh(2)
    import jax
    import numpy as np
    from jax.sharding import PartitionSpec as P

    def step(function: Any, out: Any) -> Any:
        return jax.jit(jax.shard_map(function, mesh=devices, in_specs=P("i"), out_specs=out))

    noop = step(lambda x: x + 1, P("i"))
    summed = step(lambda x: jax.lax.psum(x, "i")[:1], P())
    small = jax.device_put(np.ones(2, np.float32), split)
    vector = jax.device_put(np.ones(512, np.float32), split)
    seconds = 2 * script.options.scale
    for what, function, x in (("noop", noop, small), ("1 KB", summed, vector)):
        assert float(np.asarray(function(x))[0]) == 2
        with script.case("JAX jit shard_map", what) as case:
            case.samples = time_calls(lambda f=function, x=x: np.asarray(f(x)), seconds=seconds)

    def burst() -> None:
        for _ in range(IN_FLIGHT):
            result = noop(small)
        result.block_until_ready()

    with script.case("JAX jit shard_map", "noop, pipelined", scale=1e6 / IN_FLIGHT) as case:
        case.samples = time_calls(burst, seconds=script.options.scale, warm_up=3)


if __name__ == "__main__":
    main()
