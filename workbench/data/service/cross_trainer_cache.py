"""`CrossTrainerCache`, as tf.data.experimental.service.CrossTrainerCache."""

from __future__ import annotations

from workbench.errors import InvalidArgumentError


class CrossTrainerCache:
    """Has trainers that run at the same time share what the data workers make, for `distribute`.

    What one trainer has read stays in a window on each worker, of `WorkerConfig.cross_trainer_cache_size_bytes`, from
    which the trainers with other ids read it again: it is computed once. Consumers with the same id share their
    elements. A trainer that comes late begins with the oldest element of the window, and one that is slow misses what
    has left it; so the dataset must have no end. If a worker is lost, its stream begins anew on another.
    """

    __slots__ = ("trainer_id",)

    def __init__(self, trainer_id: str) -> None:
        """Shares as this trainer.

        Args:
          trainer_id: The same for all consumers of a trainer, another one for each trainer.

        Raises:
          InvalidArgumentError: if it is empty, or no text.
        """
        if not isinstance(trainer_id, str) or not trainer_id:
            raise InvalidArgumentError(
                f"trainer_id is {trainer_id!r}; CrossTrainerCache needs a text that is not empty, another one for each "
                "trainer"
            )
        self.trainer_id = trainer_id

    def __repr__(self) -> str:
        return f"CrossTrainerCache(trainer_id={self.trainer_id!r})"
