"""A lane on its worker: a thread that makes elements and puts them on a shelf, from which consumers take them."""

from __future__ import annotations

import pickle
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from workbench.data.dataset import Dataset
from workbench.data.failing import guarded
from workbench.data.options import Options
from workbench.data.passes import Pass
from workbench.data.service.blocks import size_of
from workbench.data.service.channel import Channel
from workbench.data.service.lanes.round_shelf import RoundShelf
from workbench.data.service.lanes.shelf import Request, SharedShelf, Shelf, bytes_of
from workbench.data.service.lanes.window_shelf import WindowShelf
from workbench.data.service.policy import CACHE_NEEDS_NO_END, ShardingPolicy
from workbench.data.service.splits import dealt
from workbench.data.service.wire import Fields
from workbench.data.sharding.autoshard import auto_shard
from workbench.data.stage import Pipeline
from workbench.data.stored.position import Position, rest_of
from workbench.data.tables import Failed, Run
from workbench.errors import CaptureError, InvalidArgumentError
from workbench.faults import fault


@dataclass(frozen=True, slots=True)
class LaneKey:
    """Identifies a lane.

    Attributes:
      job: Id of its job.
      lane: Its number in the job.
      move: How often it had been moved to another worker.
    """

    job: str
    lane: int
    move: int

    @staticmethod
    def of(task: Fields) -> LaneKey:
        """The key of a lane from the dispatcher's description."""
        return LaneKey(task["job"], task["lane"], task["move"])


class LaneTask:
    """Computes a lane ahead of its consumers, as far as its shelf has room.

    The worker's condition guards the shelf; taking elements wakes the thread that makes them.

    Attributes:
      key: The key of the lane.
      shelf: Elements that wait for consumers.
      compression: The compression of the elements in transit.
      failure: Why the lane stopped before its end; None if it has ended, or continues.
    """

    def __init__(
        self, task: Fields, channel: Callable[[], Channel], news: threading.Condition, window_bytes: int
    ) -> None:
        """Starts computing.

        Args:
          task: The dispatcher's description of the lane.
          channel: Makes a connection to the dispatcher.
          news: Notified when something is ready.
          window_bytes: How much to keep for trainers that share the lane.
        """
        self.key = LaneKey.of(task)
        self.compression = ""
        self.failure: Exception | None = None
        self._request_failure: Exception | None = None
        self._task = task
        self._channel = channel()
        self._news = news
        self._made = int(task["acknowledged"])
        self.shelf: Shelf
        if task["cached"]:
            self.shelf = WindowShelf(self._made, window_bytes)
        elif task["consumers"]:
            self.shelf = RoundShelf(self.key.lane, self._made, task["consumers"])
        else:
            self.shelf = SharedShelf(self.key.lane, self._made)
        self._ended = self._stopped = False
        self._thread = threading.Thread(target=self._compute, name="wb-data-lane", daemon=True)
        self._thread.start()

    # The thread

    def _compute(self) -> None:
        try:
            for run in self._runs():
                fault("data_worker.element")
                if not self._put(run):
                    return
            self._call("end", {"job": self.key.job, "lane": self.key.lane, "total": self._made})
            with self._news:
                self._ended = True
                self._news.notify_all()
        # The lane was stopped, or the dispatcher was unreachable for too long or dropped the job.
        except Exception as error:
            # Its traceback would keep the pipeline and its threads alive until a garbage collection.
            self.failure = error.with_traceback(None)

    def _runs(self) -> Iterator[Run]:
        try:
            runs = self._dataset().open(Pass(Dataset, self._task["epoch"], in_order=True))
        except Exception as error:
            if self._request_failure is not None:
                raise
            if self._made == 0:  # otherwise an element has reported it
                yield Failed(error)
            return
        for run in guarded(runs):
            if self._request_failure is not None:
                # After a failed request, the rest of a stage, such as a shuffle's buffer, is not what would have
                # followed.
                raise self._request_failure
            if size_of(run):
                yield run
        if self._task["cached"]:  # only now is the dataset known to be finite
            yield Failed(InvalidArgumentError(CACHE_NEEDS_NO_END))

    def _dataset(self) -> Pipeline:
        task = self._task
        fields, data = self._call("dataset", {"dataset": task["dataset"]})
        self.compression = fields["compression"]
        try:
            # The dispatcher received it from a client that had shown the token.
            dataset: Any = pickle.loads(data)
        except Exception as error:
            raise CaptureError(
                f"the dataset cannot be made on a data worker: {type(error).__name__}: {error}; install there too what "
                "it uses"
            ) from error
        policy = ShardingPolicy(task["mode"])
        if policy is ShardingPolicy.DYNAMIC:
            dataset = dealt(dataset, self._ask)
        elif policy.auto_shard_policy is not None:
            options = Options()
            options.experimental_distribute.auto_shard_policy = policy.auto_shard_policy
            dataset = auto_shard(dataset.with_options(options), task["shards"], task["lane"]).dataset
        if not self._made:
            return dataset  # type: ignore[no-any-return]
        return rest_of(dataset, Position("", 0, self._made, task["failed"]))

    def _ask(self, provider: int, visit: int, nth: int) -> int | None:
        fields = {
            "job": self.key.job,
            "lane": self.key.lane,
            "provider": provider,
            "visit": visit,
            "nth": nth,
        }
        split: int | None = self._call("deal", fields)[0]["split"]
        return split

    def _call(self, method: str, fields: Fields) -> tuple[Fields, bytes]:
        try:
            return self._channel.call(method, fields)
        except Exception as error:
            self._request_failure = error
            raise

    def _put(self, run: Run) -> bool:
        """Adds a run once there is room; returns whether it is still needed."""
        size = bytes_of(run)
        with self._news:
            while not self._stopped and not self.shelf.has_room(size):
                self._news.wait(1.0)
            if self._stopped:
                return False
            self.shelf.put(run, size)
            self._made += size_of(run)
            self._news.notify_all()
        return True

    def is_drained(self, request: Request) -> bool:
        """Whether a consumer has received everything, and nothing more will be made; the caller holds the condition."""
        return self._ended and self.shelf.is_used_up(request)

    def stop(self) -> None:
        """Ends the thread."""
        with self._news:
            self._stopped = True
            self._news.notify_all()
        self._channel.close()

    def join(self, timeout_seconds: float) -> None:
        """Waits for the thread, which a user's function may delay further."""
        self._thread.join(timeout_seconds)
