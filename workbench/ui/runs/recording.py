"""`wb.record`: keeps the telemetry of a cluster, and what its views show, in a Parquet file."""

from __future__ import annotations

import contextlib
import logging
import os
import threading
import weakref
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any, Final

from workbench import arguments
from workbench.distribute.strategies.strategy import Strategy
from workbench.errors import FailedPreconditionError, InvalidArgumentError, WorkbenchError
from workbench.runtime import Cluster
from workbench.runtime.user_code.notebook_cells import with_cell_names
from workbench.telemetry.runs.recorder import Recorder
from workbench.ui.cluster.asked_cluster import cluster_of
from workbench.ui.cluster.cluster_model import DeviceHistory, topology_model
from workbench.ui.inspect.inspections import Inspections
from workbench.ui.render import html
from workbench.ui.render.plain_values import plain
from workbench.ui.widgets import shown
from workbench.ui.widgets.sources import Source

_LOOK_SECONDS: Final = 1.0
_STOP_SECONDS: Final = 5.0
_PATIENCE_SECONDS: Final = 20.0  # records that replicas have not sent by then are missing

log = logging.getLogger(__name__)


class Recording:
    """A running recording.

    `close` ends it, and so does the end of its `with` block, of the cluster, or of the notebook.

    Attributes:
      path: The file; it appears, complete and readable only by its owner, when the recording ends.
    """

    def __init__(self, path: str | os.PathLike[str], cluster: Cluster) -> None:
        # Records that are now in transit belong to the time before the recording.
        cluster.flush_telemetry(_PATIENCE_SECONDS)
        self._cluster = cluster
        self._recorder = Recorder(path, name_sites=with_cell_names)
        self.path = self._recorder.path
        self._listening: tuple[tuple[list[Any], Callable[..., object]], ...] = (
            (cluster.telemetry_listeners, self._recorder.add),
            (cluster.event_listeners, self._recorder.add_event),
            (shown.listeners, _kept_by(self._recorder)),
        )
        for listeners, listener in self._listening:
            listeners.append(listener)
        self._look = _Look(cluster, self._recorder)
        cluster.closing.append(self._end_with_cluster)
        self._finalizer = weakref.finalize(self, _finish, self._look, self._recorder)

    @property
    def status(self) -> str:
        """One word: "live" or "stopped"."""
        return "live" if self._finalizer.alive else "stopped"

    def close(self) -> Path:
        """Writes the rest and gives the file its name; does nothing if called again.

        Raises:
          StorageFull: if there is no space.
        """
        with contextlib.suppress(ValueError):  # the recorder was closed before
            self._cluster.closing.remove(self._end_with_cluster)
        self._end()
        return self.path

    def _end_with_cluster(self) -> None:
        try:
            self._end()
        except (WorkbenchError, OSError) as error:  # the cluster must close anyway
            log.warning("the recording %s is lost: %s", self.path, error)

    def _end(self) -> None:
        if not self._finalizer.alive:
            return
        if not self._cluster.closed:
            self._cluster.flush_telemetry(_PATIENCE_SECONDS)
        for listeners, listener in self._listening:
            listeners.remove(listener)
        self._finalizer()

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


class _Look:
    """Reads a recorded cluster's state once a second, so that its last state is known however it ends."""

    def __init__(self, cluster: Cluster, recorder: Recorder) -> None:
        self._cluster = cluster
        self._recorder = recorder
        self._devices = DeviceHistory(cluster)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="workbench-recording", daemon=True)
        self._thread.start()

    def end(self) -> None:
        """Reads the last state."""
        self._stop.set()
        self._thread.join(_STOP_SECONDS)

    def _run(self) -> None:
        ending = False
        while not ending and not self._cluster.closed:
            self._look()
            ending = self._stop.wait(_LOOK_SECONDS)
        if ending and not self._cluster.closed:
            self._look()

    def _look(self) -> None:
        cluster, recorder = self._cluster, self._recorder
        try:
            recorder.keep("topology", plain(topology_model(cluster)))
            for group in list(cluster.gang.groups.values()):
                if (limit := cluster.feed.limit(group.name)) is not None:
                    recorder.set_limit(group.name, limit)
            recorder.keep("devices", plain(self._devices.model()))
            for (
                name,
                told,
            ) in cluster.feed.all_told().items():  # including strategies without references
                recorder.set_told(name, told)
        except Exception:  # the cluster may end at any moment; the recording of its collectives must continue
            log.debug("could not look at %s for its recording", cluster.name, exc_info=True)


def _kept_by(recorder: Recorder) -> Callable[[str, Callable[[], Source]], None]:
    inspections = Inspections()

    def keep(view: str, make: Callable[[], Source]) -> None:
        model = make().model()
        recorder.keep(view, inspections.with_earlier(model) if view == "values" else model)

    return keep


def _finish(look: _Look, recorder: Recorder) -> None:
    look.end()
    recorder.close()


def record(path: str | os.PathLike[str], cluster: Strategy | Cluster | None = None) -> Recording:
    """Records all collectives from now on in a Parquet file; `wb.open_run(path)` opens it without a cluster.

    The file also holds events, the topology, the use of devices, and what you inspect or explain during the recording.

    Args:
      path: The file, `….parquet`. An existing file is replaced, and a missing folder is created. JupyterLab's panel
        lists the runs in a folder named `runs`.
      cluster: The cluster to record, or a strategy: its cluster; by default the current one.

    Raises:
      InvalidArgumentError: if `path` is a folder, or does not end in `.parquet`.
      FailedPreconditionError: if there is no cluster yet, or it was closed.
      TypeError: if `cluster` is something else.
      StorageFull: if there is no space.

    >>> def step():
    ...     return wb.distribute.get_replica_context().all_reduce("sum", np.ones(4))
    >>> with wb.record("runs/first.parquet"):
    ...     result = strategy.run(step)
    """
    _check(arguments.path(path, "the file of a recording"))
    asked = cluster_of(cluster, f"wb.record({str(path)!r}, {{}})")
    if asked.closed:
        raise FailedPreconditionError(
            f"there is nothing to record: {asked!r} was closed. Call wb.connect(...) first"
        )
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    return Recording(path, asked)


def _check(path: Path) -> None:
    """Checks the path now, because an error at the end would lose the recording."""
    if path.is_dir():
        inside = str(path / "first.parquet")
        raise InvalidArgumentError(f"{str(path)!r} is a folder: name a file in it, as wb.record({inside!r})")
    if path.suffix != ".parquet":
        raise InvalidArgumentError(
            f"the name of a recording ends with .parquet, by which wb.runs and JupyterLab find it, got {str(path)!r}"
        )
