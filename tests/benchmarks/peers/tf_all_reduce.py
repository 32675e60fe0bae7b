"""TensorFlow: ReplicaContext.all_reduce of MirroredStrategy in a tf.function, on N logical CPUs of one process.

With ReductionToOneDevice all replicas get the same buffer: the peer of our shared results.
"""

from __future__ import annotations

from typing import Any

from tests.benchmarks.measure import SIZES, Script, time_calls
from tests.benchmarks.peers.tf_mirrored import mirrored


def main() -> None:
    """Measures all sizes."""
    script = Script("all_reduce", __doc__, replicas=2, ops="")
    replicas, ops = script.options.replicas, script.options.ops
    tf, strategy = mirrored(replicas, ops)
    who = f"TF {ops}" if ops else "TF (default)"

    def summed(x: Any) -> Any:
        return tf.distribute.get_replica_context().all_reduce("SUM", x)

    for what, nbytes in SIZES.items():
        if not script.wants(who, what):
            continue
        x = strategy.experimental_distribute_values_from_function(
            lambda ctx, n=nbytes: tf.fill([n // 4], float(ctx.replica_id_in_sync_group + 1))
        )
        step = tf.function(lambda x: strategy.run(summed, (x,)))
        for value in strategy.experimental_local_results(step(x)):
            assert float(value[-1]) == replicas * (replicas + 1) / 2
        with script.case(who, what, replicas=replicas) as case:
            case.samples = time_calls(
                lambda s=step, x=x: s(x), seconds=1.5 * script.options.scale, most=2000, warm_up=10
            )
        del x  # freed before the next size


if __name__ == "__main__":
    main()
