"""`workbench demo`: the quickstart notebook's job in a terminal, with its text output."""

from __future__ import annotations

import argparse
import importlib.util
import sys

import numpy as np

import workbench as wb
from workbench.cli import digits, software

BATCH = 128
LEARNING_RATE = np.float32(0.5)


def run(options: argparse.Namespace) -> int:
    """Trains on handwritten digits with some replicas and prints what happened; returns 0."""
    if importlib.util.find_spec("sklearn") is None:
        print(f"the digits come with scikit-learn: {software.install('scikit-learn')}", file=sys.stderr)
        return 1
    with wb.connect(replicas=options.replicas) as cluster:
        print(cluster)
        train(epochs=options.epochs)
    return 0


def train(*, epochs: int) -> float:
    """Trains data-parallel over all devices of the current cluster; returns the test accuracy."""
    data = digits.load()
    strategy = wb.MirroredStrategy()
    with strategy.scope():
        parameters = [
            wb.Variable(value, name=name)
            for name, value in zip(("w1", "b1", "w2", "b2"), digits.initial_parameters(), strict=True)
        ]
    print(strategy)

    @wb.function
    def step(batch: tuple[digits.Floats, digits.Labels]) -> np.float32:
        context = wb.distribute.get_replica_context()
        assert context is not None  # always set in a replica function
        images, labels = batch
        loss, gradients = digits.loss_and_gradients([np.asarray(p) for p in parameters], images, labels)
        for parameter, gradient in zip(parameters, context.all_reduce("mean", gradients), strict=True):
            parameter.assign_sub(LEARNING_RATE * gradient)
        return loss

    source = wb.data.Dataset.from_tensor_slices((data.train_images, data.train_labels))
    batches = source.shuffle(len(data.train_images), seed=0).batch(BATCH, drop_remainder=True)
    print(wb.explain_sharding(batches, strategy), end="\n\n")

    distributed = strategy.distribute_dataset(batches)
    for epoch in range(1, epochs + 1):
        for batch in distributed:
            losses = strategy.run(step, args=(batch,))
        loss = float(strategy.reduce("MEAN", losses, axis=None))
        score = digits.accuracy([np.asarray(p) for p in parameters], data.test_images, data.test_labels)
        print(f"epoch {epoch:2}   loss {loss:.3f}   test accuracy {score:.1%}")

    print("\nThe last step's loss, replica by replica:", wb.inspect(losses), sep="\n")
    print("\nA mirrored variable:", wb.inspect(parameters[0]), sep="\n")
    print("\nWhat the collectives cost:", wb.collectives(strategy), sep="\n")
    return score
