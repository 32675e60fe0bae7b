"""`wb.record`: keeps the telemetry of a cluster in a Parquet file."""

from __future__ import annotations

import os
import weakref
from pathlib import Path
from types import TracebackType

from workbench.errors import FailedPreconditionError
from workbench.runtime import Cluster, current_cluster
from workbench.runtime.cells import with_cell_names
from workbench.telemetry.recorder import Recorder
from workbench.ui import html


class Recording:
    """A recording that runs. `close` ends it; so does the end of its `with` block, and that of the notebook.

    Attributes:
      path: The file; it appears, whole and owner-only, when the recording ends.
    """

    def __init__(self, path: str | os.PathLike[str], cluster: Cluster) -> None:
        self._cluster = cluster
        self._recorder = Recorder(path, name_sites=with_cell_names)
        self.path = self._recorder.path
        self._keep = self._recorder.add  # one object, to be found again among the listeners
        self._keep_event = self._recorder.add_event
        cluster.telemetry_listeners.append(self._keep)
        cluster.event_listeners.append(self._keep_event)
        self._finalizer = weakref.finalize(self, self._recorder.close)

    @property
    def status(self) -> str:
        """One word: "live" or "stopped"."""
        return "live" if self._finalizer.alive else "stopped"

    def close(self) -> Path:
        """Writes what is left and makes the file appear; again: does nothing.

        Raises:
          StorageFull: if there is no space.
        """
        if self._finalizer.alive:
            if not self._cluster.closed:
                self._cluster.flush_telemetry()
            self._cluster.telemetry_listeners.remove(self._keep)
            self._cluster.event_listeners.remove(self._keep_event)
            self._finalizer()
        return self.path

    def __enter__(self) -> Recording:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Recording: {str(self.path)!r}, {self.status}>"

    def _repr_html_(self) -> str:
        return html.card("Recording", [str(self.path)], word=self.status)


def record(path: str | os.PathLike[str], cluster: Cluster | None = None) -> Recording:
    """Records the collectives from now on to a Parquet file; `wb.open_run(path)` shows it again without a cluster.

    >>> with wb.record("run.parquet"):  # doctest: +SKIP
    ...     strategy.run(step)

    Args:
      path: The file; it is replaced if it exists.
      cluster: By default the current one.

    Raises:
      FailedPreconditionError: if there is no cluster yet.
      StorageFull: if there is no space.
    """
    cluster = cluster or current_cluster()
    if cluster is None or cluster.closed:
        raise FailedPreconditionError(
            "there is nothing to record without a cluster: call wb.connect(...) first"
        )
    return Recording(path, cluster)
