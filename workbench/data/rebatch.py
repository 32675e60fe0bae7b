"""The arithmetic of dividing global batches among replicas, as pure functions.

Two algorithms, as tf.distribute: the *even split* cuts each batch on its own, the *schedule* regroups the
stream of rows into sizes that repeat. `autoshard.py` decides which one applies.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from workbench import tree
from workbench.data.spec import TensorSpec, spec_if_learnt
from workbench.errors import InvalidArgumentError

if TYPE_CHECKING:
    from workbench.data.stage import Pipeline

UNKNOWN_BATCH_SIZE = -1


def even_bounds(rows: int, pieces: int) -> list[tuple[int, int]]:
    """Where the even split cuts a batch: every piece has ceil(rows / pieces) rows until none are left.

    Seven rows over four pieces give 2, 2, 2, 1; four over three give 2, 2, 0.
    """
    size = -(-rows // pieces)
    return [(min(piece * size, rows), min((piece + 1) * size, rows)) for piece in range(pieces)]


def scheduled_sizes(global_batch_size: int, replicas: int) -> tuple[int, ...]:
    """The schedule's sizes: floor(batch / replicas), one more for the first `batch % replicas` replicas."""
    if global_batch_size < 0 or replicas < 1:
        raise InvalidArgumentError(
            f"a batch of {global_batch_size} rows cannot be divided among {replicas} replicas; both must "
            "be positive"
        )
    size, larger = divmod(global_batch_size, replicas)
    return tuple(size + (replica < larger) for replica in range(replicas))


def batch_sizes_for_worker(
    global_batch_size: int, num_workers: int, num_replicas_per_worker: int, worker_index: int
) -> list[int]:
    """The sizes that one worker cycles through, rotated so that every global step sums to the batch.

    Args:
      global_batch_size: Rows of a global batch.
      num_workers: Number of hosts.
      num_replicas_per_worker: Replicas on each host.
      worker_index: Which host this is.
    """
    sizes = scheduled_sizes(global_batch_size, num_workers * num_replicas_per_worker)
    start = worker_index * num_replicas_per_worker
    return list(sizes[start:] + sizes[:start])


def compute_batch_size(dataset: Pipeline) -> int:
    """The size of a dataset's batches, or -1 if its description does not show it.

    It is known from static shapes, and from the last `batch` or `padded_batch` if only stages follow that keep batches
    whole.

    Raises:
      InvalidArgumentError: if elements are scalars, which have no batch dimension.
    """
    known = spec_if_learnt(dataset)
    shapes = [spec.shape for spec in tree.flatten(known)[0] if isinstance(spec, TensorSpec)]
    if () in shapes:
        raise InvalidArgumentError(
            f"elements {known} have no batch dimension; batch the dataset first: "
            "dataset.batch(global_batch_size)"
        )
    sizes = {None if shape is None else shape[0] for shape in shapes}
    if len(sizes) == 1 and None not in sizes:
        return int(sizes.pop() or 0)
    return _described_batch_size(dataset)


def _described_batch_size(dataset: Pipeline) -> int:
    for stage in reversed(dataset.stages):
        size = getattr(stage, "batch_size", None)
        if size is not None:
            return int(size)
        if not stage.keeps_batches:
            return UNKNOWN_BATCH_SIZE
    sizes = {_described_batch_size(inner) for inner in dataset.source.inputs()}
    return sizes.pop() if len(sizes) == 1 else UNKNOWN_BATCH_SIZE
