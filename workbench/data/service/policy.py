"""How the elements of a dataset are divided among data workers, and what each way of reading requires."""

from __future__ import annotations

import enum

from workbench.data.options import AutoShardPolicy
from workbench.errors import InvalidArgumentError

NEEDS_NO_END = (
    "consumers that read in rounds need a dataset without end, or one would run out before the others; put .repeat() "
    "at its end"
)
CACHE_NEEDS_NO_END = (
    "cross_trainer_cache needs a dataset without end, as a trainer may miss some; put .repeat() at its end"
)
NO_LOCAL_WORKER = (
    'target_workers is "LOCAL", and no data worker of this service runs in the process of this consumer; start one: '
    'wb.data.service.WorkerServer(wb.data.service.WorkerConfig(address)); or choose "ANY"'
)


class ShardingPolicy(enum.IntEnum):
    """What each worker of a job computes, as tf.data.experimental.service.ShardingPolicy.

    With OFF ("parallel_epochs"), each worker computes the whole dataset. DYNAMIC ("distributed_epoch") assigns splits
    of the source to workers while they work, so that each element arrives once. FILE, DATA, FILE_OR_DATA and HINT give
    each of the dispatcher's `worker_addresses` a fixed part, like `AutoShardPolicy`.
    """

    OFF = 0
    DYNAMIC = 1
    FILE = 2
    DATA = 3
    FILE_OR_DATA = 4
    HINT = 5

    @classmethod
    def of(cls, processing_mode: object) -> ShardingPolicy:
        """The policy for a processing mode.

        Raises:
          InvalidArgumentError: if there is none.
        """
        match processing_mode:
            case ShardingPolicy():
                return processing_mode
            case "parallel_epochs":
                return cls.OFF
            case "distributed_epoch":
                return cls.DYNAMIC
        raise InvalidArgumentError(
            f"processing_mode is {processing_mode!r}; it must be 'parallel_epochs', 'distributed_epoch' or a "
            "ShardingPolicy"
        )

    @property
    def is_static(self) -> bool:
        """Whether each worker has a fixed part."""
        return self.auto_shard_policy is not None

    @property
    def auto_shard_policy(self) -> AutoShardPolicy | None:
        """How a dataset is divided into fixed parts; None if it is not."""
        match self:
            case ShardingPolicy.FILE:
                return AutoShardPolicy.FILE
            case ShardingPolicy.DATA:
                return AutoShardPolicy.DATA
            case ShardingPolicy.FILE_OR_DATA:
                return AutoShardPolicy.AUTO
            case ShardingPolicy.HINT:
                return AutoShardPolicy.HINT
        return None
