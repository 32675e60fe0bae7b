"""Folds some records of a feed separately: those of one measurement or cell."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from workbench.telemetry.feed.feed import Feed
from workbench.telemetry.limits import Limit
from workbench.telemetry.recording import batches
from workbench.telemetry.recording.batches import Header, Text

if TYPE_CHECKING:
    import pyarrow as pa


def excerpt(records: pa.Table, limits: Mapping[str, Limit] | None = None) -> Feed:
    """A feed of only these records. They count as the user's, whatever their purpose: `purpose` becomes "".

    Args:
      records: Rows of `Feed.to_arrow`.
      limits: Measured limits of bus bandwidth, by group.
    """
    size = max(1, records.num_rows)
    feed = Feed(max_records=size, max_collectives=size)
    for group, limit in (limits or {}).items():
        feed.set_limit(group, limit)
    for number, batch in enumerate(records.combine_chunks().to_batches()):
        columns = batches.from_batch(batch) | {"purpose": Text.constant("", batch.num_rows)}
        feed.ingest_columns(Header("excerpt", batch.num_rows, 0, 0, (), number), columns)
    return feed
