"""How long collectives took, which replicas were late, what is stuck: for a cluster or a recorded run."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Protocol

from workbench.telemetry import dataframe
from workbench.telemetry.export import trace_files
from workbench.telemetry.export.text import snapshot_text
from workbench.telemetry.feed.losses import losses
from workbench.telemetry.formatting import printable
from workbench.telemetry.snapshot import Snapshot, TableRow
from workbench.telemetry.verdicts import verdicts
from workbench.ui.collectives.timings_table import HEADINGS, LEFT_COLUMNS, timing_cells
from workbench.ui.render import html
from workbench.ui.report import report
from workbench.ui.widgets.bundle import Bundle, mimebundle
from workbench.ui.widgets.collectives import CollectivesSource

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

    from workbench.runtime import Cluster


class TimingSource(Protocol):
    """The common interface of a feed and a recorded run."""

    def snapshot(self) -> Snapshot:
        """What views draw."""
        ...

    def to_arrow(self) -> pa.Table:
        """The records behind it."""
        ...


class Timings:
    """Timings of collectives at the time of the call. Prints as a table; a notebook always shows the newest.

    Attributes:
      snapshot: Everything that is shown.
      group: The strategy whose collectives these are, "" for all.
      internal: Whether workbench's own collectives are also shown.
      status: "live", or "replay" for a recorded run.
      silent: Addresses of workers that did not answer, so that their newest collectives are missing.
    """

    def __init__(
        self,
        source: TimingSource,
        *,
        group: str = "",
        internal: bool = False,
        status: str = "live",
        silent: Sequence[str] = (),
        cluster: Cluster | None = None,
    ) -> None:
        self._source = source
        self._cluster = cluster
        self.group = group
        self.status = status
        self.silent = tuple(silent)
        self.internal = internal
        self.snapshot = self._newest()

    @property
    def rows(self) -> tuple[TableRow, ...]:
        """The table: one row per operation, size, dtype and group."""
        shown = self.snapshot
        return tuple(sorted(shown.table + shown.internal, key=_group_of)) if self.internal else shown.table

    def to_arrow(self) -> pa.Table:
        """The records behind the table, one per replica and collective; columns as in `telemetry.records`."""
        import pyarrow.compute

        records = self._source.to_arrow()
        if self.group:
            records = records.filter(pyarrow.compute.equal(records["group"], self.group))
        return records if self.internal else records.filter(pyarrow.compute.equal(records["purpose"], ""))

    def to_pandas(self) -> pd.DataFrame:
        """`to_arrow` as a data frame.

        Raises:
          BackendUnavailable: if pandas is not installed.
        """
        return dataframe.to_pandas(self.to_arrow())

    def to_csv(self, path: str | os.PathLike[str]) -> None:
        """Writes `to_arrow` as CSV with a header line."""
        trace_files.write_csv(self.to_arrow(), path)

    def to_parquet(self, path: str | os.PathLike[str]) -> None:
        """Writes `to_arrow` as Parquet, for other tools; for `wb.open_run`, use `wb.record`."""
        trace_files.write_parquet(self.to_arrow(), path)

    def to_perfetto(self, path: str | os.PathLike[str]) -> None:
        """Writes a trace for ui.perfetto.dev: hosts as processes, replicas as threads."""
        trace_files.write_json(trace_files.perfetto(self.to_arrow(), self.snapshot.events), path)

    def to_nccl_tests(self, path: str | os.PathLike[str] | None = None) -> str:
        """The table in the format of nccl-tests, to paste beside the output of `all_reduce_perf`.

        Args:
          path: Also writes it there as JSON, in the format of nccl-tests' own report.
        """
        if path is not None:
            trace_files.write_json(trace_files.nccl_tests_json(self.rows), path)
        return trace_files.nccl_tests_text(self.rows)

    def to_html(self, path: str | os.PathLike[str]) -> None:
        """Writes a single-file report, which a browser shows without a server or network; see `wb.report`."""
        report(path, self)

    def to_dict(self) -> dict[str, Any]:
        """Everything that is shown, as JSON-able values."""
        return self.snapshot.as_dict()

    def _newest(self) -> Snapshot:
        return _only(self._source.snapshot(), self.group)

    def _newest_shown(self) -> Snapshot:
        newest = self._newest()
        if not self.internal:
            return newest
        return replace(newest, table=tuple(sorted(newest.table + newest.internal, key=_group_of)))

    def _status_now(self) -> str:
        return self.status if self._cluster is None else self._cluster.status

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> Bundle:
        source = CollectivesSource("collectives", self._newest_shown, self._status_now, self.silent)
        return mimebundle(source, text=repr(self), html=self._repr_html_(), include=include)

    def __repr__(self) -> str:
        shown = replace(self.snapshot, table=self.rows)
        return "\n".join([snapshot_text(shown), *map(_silence, self.silent)])

    def _repr_html_(self) -> str:
        groups = list(dict.fromkeys(row.group for row in self.rows))
        parts = [
            html.table(
                HEADINGS,
                [timing_cells(row) for row in self.rows if row.group == group],
                left=LEFT_COLUMNS,
                caption=group,
            )
            for group in groups
        ]
        found = verdicts(self.snapshot) if groups else ()
        said = [html.verdict(each.severity, each.sentence, each.evidence) for each in found]
        counters = self.snapshot.counters
        facts = [f"{counters.collectives:,} recorded"] if groups else ["none recorded yet"]
        lost = losses(counters)
        facts += [loss.text for loss in lost]
        silent = [html.alert(_silence(address)) for address in self.silent]
        meanings = [html.remark(f"{loss.text}: {loss.meaning}") for loss in lost]
        return html.card("Collectives", facts, word=self.status, parts=[*said, *silent, *parts, *meanings])


def _only(snapshot: Snapshot, group: str) -> Snapshot:
    """The part of a snapshot about one group."""
    if not group:
        return snapshot
    return replace(
        snapshot,
        table=tuple(row for row in snapshot.table if row.group == group),
        internal=tuple(row for row in snapshot.internal if row.group == group),
        groups=tuple(view for view in snapshot.groups if view.group == group),
    )


def _group_of(row: TableRow) -> str:
    return row.group


def _silence(address: str) -> str:
    return f"! worker {printable(address)} did not answer: its newest collectives are missing"
