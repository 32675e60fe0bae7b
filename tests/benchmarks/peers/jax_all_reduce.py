"""JAX: psum in a jitted shard_map over N CPU devices of one process."""

from __future__ import annotations

from tests.benchmarks.measure import SIZES, Script, time_calls
from tests.benchmarks.peers.jax_devices import mesh


def main() -> None:
    """Measures all sizes."""
    script = Script("all_reduce", __doc__, replicas=2)
    replicas = script.options.replicas
    devices, split, _ = mesh(replicas)
    import jax
    import numpy as np
    from jax.sharding import PartitionSpec as P

    psum = jax.jit(
        jax.shard_map(lambda x: jax.lax.psum(x, "i"), mesh=devices, in_specs=P("i"), out_specs=P())
    )
    for what, nbytes in SIZES.items():
        if not script.wants(what):
            continue
        x = jax.device_put(np.repeat(np.arange(1, replicas + 1, dtype=np.float32), nbytes // 4), split)
        assert float(psum(x)[-1]) == replicas * (replicas + 1) / 2
        with script.case("JAX psum", what, replicas=replicas) as case:
            case.samples = time_calls(
                lambda x=x: psum(x).block_until_ready(),
                seconds=1.5 * script.options.scale,
                most=2000,
                warm_up=10,
            )
        del x  # freed before the next size


if __name__ == "__main__":
    main()
