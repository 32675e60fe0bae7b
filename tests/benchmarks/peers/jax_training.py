"""The network in JAX: a jitted shard_map over two CPU devices of one process, a new batch fed each step."""

from __future__ import annotations

import itertools
from typing import Any

from tests.benchmarks import network
from tests.benchmarks.measure import Script
from tests.benchmarks.peers.jax_devices import mesh

IN_FLIGHT = 5


def main() -> None:
    """Measures steps per second."""
    script = Script("training", __doc__)
    devices, split, repeated = mesh(2)
    import jax
    import jax.numpy as jnp
    from jax.sharding import PartitionSpec as P

    images, labels = network.data()
    labels = labels.astype("int32")

    def loss_of(w: Any, x: Any, y: Any) -> Any:
        logits = jax.nn.relu(x @ w[0] + w[1]) @ w[2] + w[3]
        picked = jnp.take_along_axis(jax.nn.log_softmax(logits), y[:, None], 1)
        return -jnp.sum(picked) / network.BATCH

    def replica(w: Any, x: Any, y: Any) -> Any:
        loss, gradients = jax.value_and_grad(loss_of)(w, x, y)  # summed over replicas by shard_map
        return [a - network.RATE * g for a, g in zip(w, gradients, strict=True)], jax.lax.psum(loss, "i")

    specs = {"in_specs": (P(), P("i"), P("i")), "out_specs": (P(), P())}
    train = jax.jit(jax.shard_map(replica, mesh=devices, **specs), donate_argnums=0)
    weights, calls = [jax.device_put(w, repeated) for w in network.parameters()], itertools.count(1)

    def step(number: int) -> Any:
        nonlocal weights
        low = number % network.BATCHES * network.BATCH
        high = low + network.BATCH
        x, y = jax.device_put(images[low:high], split), jax.device_put(labels[low:high], split)
        weights, loss = train(weights, x, y)
        if next(calls) % IN_FLIGHT == 0:
            # With more in progress, two executions may each hold a thread and wait forever.
            loss.block_until_ready()
        return loss

    with script.case("JAX shard_map", network.WHAT, unit="steps/s", scale=1, replicas=0) as case:
        case.samples = network.steps_per_second(step, float, 0.8 * script.options.scale)


if __name__ == "__main__":
    main()
