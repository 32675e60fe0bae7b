"""Trains on handwritten digits while one replica is slow and another computes a NaN, and records that.

`python notebooks/guide/sample/training.py digits.parquet` writes the recording that the guide shows.
"""

import sys
import time

import numpy as np

import workbench as wb
from workbench.cli import digits

BATCH = 32
STEPS = 40
LEARNING_RATE = np.float32(0.2)
NAN_STEP = 30


def train(path: str) -> None:
    """Makes `STEPS` steps on four replicas, two on each of two emulated hosts.

    Args:
      path: Where the recording goes, `….parquet`.
    """
    data = digits.load()
    with wb.connect(hosts=2, replicas_per_host=2):
        strategy = wb.MirroredStrategy()
        with strategy.scope():
            parameters = [
                wb.Variable(value, name=name)
                for name, value in zip(("w1", "b1", "w2", "b2"), digits.initial_parameters(), strict=True)
            ]

        @wb.function
        def step(number, batch):
            replica = wb.distribute.get_replica_context()
            images, labels = batch
            if replica.replica_id_in_sync_group == 1:
                time.sleep(0.02)  # a device that is busy with something else
            if replica.replica_id_in_sync_group == 3 and number == NAN_STEP:
                with np.errstate(invalid="ignore"):
                    images = np.sqrt(images - images.max())  # a mistake: the root of negative numbers
            loss, gradients = digits.loss_and_gradients([np.asarray(p) for p in parameters], images, labels)
            for parameter, gradient in zip(parameters, replica.all_reduce("mean", gradients), strict=True):
                parameter.assign_sub(LEARNING_RATE * gradient)
            return loss

        source = wb.data.Dataset.from_tensor_slices((data.train_images, data.train_labels))
        batches = source.batch(BATCH, drop_remainder=True).take(STEPS)
        with wb.record(path):
            wb.explain_sharding(batches, strategy)
            wb.explain_sharding(parameters[0])
            batches.explain()
            for number, batch in enumerate(strategy.distribute_dataset(batches)):
                losses = strategy.run(step, args=(number, batch))
                if number + 1 == NAN_STEP:
                    wb.inspect({"loss": losses, "w1": parameters[0]})
            wb.inspect({"loss": losses, "w1": parameters[0]})


if __name__ == "__main__":
    train(sys.argv[1])
