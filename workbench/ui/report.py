"""`wb.report`: a single-file page that shows views without a server, a network, or a cluster."""

from __future__ import annotations

import datetime
import json
import os
import secrets
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from workbench.errors import InvalidArgumentError
from workbench.ui.formatters import bundle_of
from workbench.ui.render import html
from workbench.ui.widgets.built import STATIC, is_built
from workbench.ui.widgets.bundle import MIME

_STYLE: Final = """
:root { color-scheme: light dark; }
body { max-width: 1400px; margin: 0 auto; padding: 16px; font: 14px/1.5 system-ui, "DejaVu Sans", sans-serif; }
h1 { font-size: 20px; }
section { margin: 0 0 28px; }
summary { cursor: pointer; opacity: .75; }
"""


def report(path: str | os.PathLike[str], *shown: Any, title: str = "") -> Path:
    """Writes what a notebook shows for some objects as a single-file page.

    A browser opens the file from disk, without a server or network. It shows the views with all their switches or,
    without scripts, their tables. The page shows a cluster as of now, and names the time at which a recorded run ended.
    Nothing in the data becomes markup or runs.

    Args:
      path: The file; an existing one is replaced.
      shown: Strategies, clusters, and results of `wb.collectives`, `wb.open_run`, `wb.inspect`, `wb.topology` and such.
      title: Title of the page.

    Returns:
      The path.

    Raises:
      InvalidArgumentError: if there is nothing to show.
      TypeError: if something has no view.

    >>> path = wb.report("report.html", wb.inspect(strategy.run(lambda: 1)), title="One number")
    """
    if not shown:
        raise InvalidArgumentError(
            "a report needs something to show: wb.report('report.html', wb.collectives())"
        )
    where = Path(path)
    with html.recorded():
        bundles = [bundle_of(each, {MIME}) for each in shown]
    where.write_text(_page(bundles, title or where.stem), encoding="utf-8")
    return where


def _page(bundles: Sequence[dict[str, Any]], title: str) -> str:
    # Scripts without this nonce do not run. Nobody who wrote a displayed text could have known it.
    nonce = secrets.token_urlsafe(16)
    policy = (
        f"default-src 'none'; script-src 'nonce-{nonce}'; style-src 'unsafe-inline'; img-src data: blob:; "
        "base-uri 'none'; form-action 'none'"
    )
    sections = "\n".join(
        f'<section data-view="{index}">{bundle["text/html"]}</section>'
        for index, bundle in enumerate(bundles)
    )
    views = [bundle.get(MIME) for bundle in bundles]
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width">
<title>{html.escaped(title)}</title>
<style>{_STYLE}</style>
</head>
<body>
<h1>{html.escaped(title)}</h1>
<p>{html.escaped(_dates(views))} by workbench</p>
<main>
{sections}
</main>
<script type="application/json" id="workbench-views">{_inert(views)}</script>
{_script(nonce)}
</body>
</html>
"""


def _dates(views: Sequence[dict[str, Any] | None]) -> str:
    """When the runs were recorded, and that live clusters are shown as of now."""
    runs = [view["model"]["run"] for view in views if view is not None and view["view"] == "replay"]
    recorded = [
        f"run {run['name']} recorded {run['written'].replace('T', ' ')}" for run in runs if run["written"]
    ]
    now = datetime.datetime.now().astimezone().isoformat(sep=" ", timespec="seconds")
    return ", ".join([*recorded, f"exported {now}"])


def _inert(value: Any) -> str:
    """JSON without "<", so that an HTML parser cannot mistake it for markup."""
    return json.dumps(value, allow_nan=False, separators=(",", ":")).replace("<", "\\u003c")


def _script(nonce: str) -> str:
    """The views, and the module that draws the page's JSON and exports files; "" if they were not built."""
    if not is_built():
        return ""
    return (
        f'<script type="module" nonce="{nonce}">{_code("widget")}</script>\n'
        f'<script type="module" nonce="{nonce}" id="workbench-exports">{_code("exports")}</script>'
    )


def _code(name: str) -> str:
    code = (STATIC / f"{name}.js").read_text(encoding="utf-8")
    # Our own code could contain these only in literals, where a backslash changes nothing.
    return code.replace("</script", "<\\/script").replace("<!--", "<\\!--")
