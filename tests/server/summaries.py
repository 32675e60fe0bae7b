"""What the status bar says of a cluster."""

from __future__ import annotations

import workbench as wb
from workbench.server.summary import Summary, summarise
from workbench.telemetry.verdicts import verdicts


def summary(cluster: wb.Cluster) -> Summary:
    """The summary of a cluster now."""
    snapshot = cluster.feed.snapshot()
    return summarise(cluster, snapshot, verdicts(snapshot)[0])
