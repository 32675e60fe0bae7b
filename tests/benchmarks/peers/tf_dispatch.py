"""Steps of tf.distribute.MirroredStrategy on two logical CPUs: eager, in a tf.function, and a loop inside one."""

from __future__ import annotations

from typing import Any

from tests.benchmarks.measure import Script, time_calls
from tests.benchmarks.peers.tf_mirrored import mirrored

LOOPS = 200


def main() -> None:
    """Measures noop and a 1 KB all_reduce, each in the three ways."""
    script = Script("dispatch", __doc__)
    tf, strategy = mirrored(2)
    vector = strategy.experimental_distribute_values_from_function(
        lambda ctx: tf.fill([256], float(ctx.replica_id_in_sync_group + 1))
    )

    def noop(x: Any) -> Any:
        return tf.constant(1.0)

    def summed(x: Any) -> Any:
        return tf.distribute.get_replica_context().all_reduce("SUM", x)[0]

    def fetch(result: Any) -> Any:
        return [float(v.numpy()) for v in strategy.experimental_local_results(result)]

    for what, function, value in (("noop", noop, 1.0), ("1 KB", summed, 3.0)):
        step = tf.function(lambda x, f=function: strategy.run(f, (x,)))

        @tf.function
        def loop(x: Any, count: Any, f: Any = function) -> Any:
            total = tf.constant(0.0)
            for _ in tf.range(count):
                total += strategy.experimental_local_results(strategy.run(f, (x,)))[0]
            return total

        assert fetch(step(vector)) == [value, value]
        seconds, count = 2 * script.options.scale, tf.constant(LOOPS)
        with script.case("TF eager", what) as case:
            case.samples = time_calls(
                lambda f=function: fetch(strategy.run(f, (vector,))), seconds=seconds, warm_up=20
            )
        with script.case("TF tf.function", what) as case:
            case.samples = time_calls(lambda s=step: fetch(s(vector)), seconds=seconds)
        with script.case("TF loop inside tf.function", f"{what}, pipelined", scale=1e6 / LOOPS) as case:
            case.samples = time_calls(lambda f=loop: f(vector, count).numpy(), seconds=seconds, warm_up=2)  # noqa: B023


if __name__ == "__main__":
    main()
