"""Adds views to the pages of a Dask scheduler, so that dask-labextension lists them, too."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from workbench.runtime import Cluster, scheduler_pages
from workbench.telemetry.feed.feed import Feed
from workbench.telemetry.snapshot import Snapshot
from workbench.ui.models.collectives_model import collectives_model
from workbench.ui.render.plain_values import plain
from workbench.ui.widgets.built import STATIC

if TYPE_CHECKING:
    from workbench.distribute.strategies.strategy import Strategy

_VIEWS: Final = {
    "collectives": "collective_table",
    "lanes": "lanes",
    "lateness": "heat_map",
    "sweep": "sweep",
}
"""The view of each page, by name.

Dask's pages have no authentication, so these only show times and sizes. Prints of replicas, alerts, values and data
appear only where users have authenticated themselves.
"""
_PAGE: Final = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>workbench: {name}</title>
<style>
:root {{ color-scheme: light dark; }}
body {{ margin: 0; }}
main {{ height: 100vh; overflow: auto; container-type: size; }}
</style>
</head>
<body>
<main id="view"></main>
<script type="module">
import {{ mount, provideCode }} from "./workbench/widget.js";
provideCode(async (name) => {{
  const answer = await fetch(`./workbench/${{name}}.js`);
  if (!answer.ok) throw new Error("the scheduler does not send it");
  return answer.text();
}});
let version = "", mounted = null;
async function look() {{
  try {{
    const answer = document.hidden ? null : await fetch(`./workbench/model.json?version=${{version}}`);
    if (answer?.status === 404) return mounted?.tell("the pages of workbench were removed");
    if (answer?.status === 200) {{
      const model = await answer.json();
      version = model.version;
      if (mounted) mounted.update(model);
      else mounted = mount("{view}", document.getElementById("view"), model);
    }}
  }} catch (error) {{
    mounted?.tell("the scheduler does not answer");
  }}
  setTimeout(look, 500);
}}
look();
</script>
</body>
</html>
"""


class TimingSite:
    """Times of collectives, folded on the scheduler from passing events; see `scheduler_pages.Site`.

    Attributes:
      pages: See `Site.pages`.
      files: See `Site.files`.
    """

    def __init__(self) -> None:
        self.pages = {name: _PAGE.format(name=name, view=view) for name, view in _VIEWS.items()}
        self.files = STATIC
        # The driver's clock, which is not this machine's, decides what waits: nothing counts as stuck here.
        self._feed = Feed(now_ns=lambda: 0)
        self._made: tuple[Snapshot, dict[str, Any]] | None = None

    def ingest(self, batch: bytes) -> None:
        """As `Site.ingest`."""
        self._feed.ingest(batch)

    def model(self) -> dict[str, Any]:
        """As `Site.model`."""
        snapshot = self._feed.snapshot()
        if self._made is None or self._made[0] is not snapshot:
            model = plain(collectives_model(snapshot, status="live"))
            model["snapshot"]["events"] = []
            self._made = snapshot, model | {"version": snapshot.version}
        return self._made[1]


class DaskPages:
    """Pages that were added to those of a Dask scheduler, until `close`.

    Attributes:
      urls: The scheduler's address of each page, by name.
    """

    def __init__(self, cluster: Cluster) -> None:
        scheduler_pages.add(cluster, TimingSite)
        self._cluster = cluster
        base = str(cluster.client.dashboard_link).rpartition("/")[0]
        self.urls = {name: f"{base}/individual-workbench-{name}" for name in _VIEWS}

    def close(self) -> None:
        """Removes the pages. Idempotent."""
        if self.urls and not self._cluster.closed:
            scheduler_pages.remove(self._cluster)
        self.urls = {}

    def __enter__(self) -> DaskPages:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<DaskPages: {', '.join(self.urls.values()) or 'removed'}>"


def dask_pages(cluster: Strategy | Cluster | None = None) -> DaskPages:
    """Adds the timing of collectives to the pages of a Dask scheduler, and to the list of dask-labextension.

    A Dask dashboard has no authentication: everyone who can reach it sees these pages too. So only this call adds them,
    and they show no more than Dask's own pages do: operations, sizes, times, hosts and lines; no values, no data, and
    nothing that replicas print.

    Args:
      cluster: A cluster that `wb.connect(address)` has connected to; or a strategy on it; by default the current one.

    Raises:
      FailedPreconditionError: if there is no cluster, or its scheduler serves no pages; that of an embedded cluster
        serves none.
      TypeError: if `cluster` is something else.
    """
    # Imported here because the scheduler imports this file and needs no strategies.
    from workbench.ui.cluster.asked_cluster import cluster_of

    return DaskPages(cluster_of(cluster, "wb.dask_pages({})"))
