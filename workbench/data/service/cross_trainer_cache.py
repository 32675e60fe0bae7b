"""`CrossTrainerCache`, as tf.data.experimental.service.CrossTrainerCache."""

from __future__ import annotations

from workbench.errors import InvalidArgumentError


class CrossTrainerCache:
    """Makes concurrent trainers share the elements of data workers, for `distribute`.

    Elements that one trainer has read stay in a window on each worker, of
    `WorkerConfig.cross_trainer_cache_size_bytes`, from which trainers with other ids read them: they are computed once.
    Consumers with the same id share their elements. A late trainer starts with the oldest element of the window, and a
    slow one misses elements that have left it; so the dataset must be infinite. If a worker is lost, its stream starts
    over on another one.
    """

    __slots__ = ("trainer_id",)

    def __init__(self, trainer_id: str) -> None:
        """Shares elements as this trainer.

        Args:
          trainer_id: An id that all consumers of a trainer share, and that differs between trainers.

        Raises:
          InvalidArgumentError: if it is empty, or not a text.
        """
        if not isinstance(trainer_id, str) or not trainer_id:
            raise InvalidArgumentError(
                f"trainer_id is {trainer_id!r}; CrossTrainerCache needs a text that is not empty, another one for each "
                "trainer"
            )
        self.trainer_id = trainer_id

    def __repr__(self) -> str:
        return f"CrossTrainerCache(trainer_id={self.trainer_id!r})"
