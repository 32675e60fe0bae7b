"""The network in TensorFlow: MirroredStrategy on two logical CPUs, fed by a distributed dataset."""

from __future__ import annotations

from typing import Any

from tests.benchmarks import network
from tests.benchmarks.measure import Script
from tests.benchmarks.peers.tf_mirrored import mirrored


def main() -> None:
    """Measures steps per second."""
    script = Script("training", __doc__)
    tf, strategy = mirrored(2)
    with strategy.scope():
        weights = [tf.Variable(w, aggregation=tf.VariableAggregation.SUM) for w in network.parameters()]

    def replica(x: Any, y: Any) -> Any:
        with tf.GradientTape() as tape:
            logits = tf.nn.relu(x @ weights[0] + weights[1]) @ weights[2] + weights[3]
            losses = tf.nn.sparse_softmax_cross_entropy_with_logits(y, logits)
            loss = tf.reduce_sum(losses) / network.BATCH
        gradients = tape.gradient(loss, weights)
        for weight, gradient in zip(weights, gradients, strict=True):
            weight.assign_sub(network.RATE * gradient)  # sums over the replicas
        return loss

    @tf.function
    def train(x: Any, y: Any) -> Any:
        return strategy.reduce("SUM", strategy.run(replica, (x, y)), axis=None)

    dataset = tf.data.Dataset.from_tensor_slices(network.data()).repeat()
    batches = iter(
        strategy.experimental_distribute_dataset(dataset.batch(network.BATCH, drop_remainder=True))
    )
    with script.case("TF MirroredStrategy", network.WHAT, unit="steps/s", scale=1, replicas=0) as case:
        case.samples = network.steps_per_second(
            lambda _number: train(*next(batches)), float, 0.8 * script.options.scale
        )


if __name__ == "__main__":
    main()
