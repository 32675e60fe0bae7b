"""What an object displays in a notebook: text, script-free HTML, the model, and with a kernel the live view."""

from __future__ import annotations

import sys
from collections.abc import Container
from typing import Any, Final, TypeAlias

from workbench.ui.widgets.built import is_built
from workbench.ui.widgets.sources import Source

MIME: Final = "application/vnd.workbench.view+json"
"""View and model, for front ends that can draw them without a kernel, such as a saved notebook in JupyterLab."""
VERSION: Final = 1
"""The version of this format, the only one that `extension/src/lab/saved/saved_model.ts` draws."""
Bundle: TypeAlias = dict[str, Any] | tuple[dict[str, Any], dict[str, Any]]
"""What IPython accepts from `_repr_mimebundle_`: formats, or formats with metadata for front ends."""


def mimebundle(source: Source, *, text: str, html: str, include: Container[str] | None = None) -> Bundle:
    """All representations of a source.

    Args:
      source: The view and its model.
      text: The text version.
      html: The script-free HTML.
      include: The formats that IPython requests; if it contains `MIME`, only text, HTML and the model, even without a
        kernel.

    Returns:
      The formats. In Google Colab, also metadata with the address of the code that shows widgets; without it, Colab
      loads only its own widgets.
    """
    bundle: dict[str, Any] = {"text/plain": text, "text/html": html}
    if include is not None and MIME in include:
        return bundle | {MIME: {"version": VERSION, "view": source.view, "model": source.model()}}
    if not in_a_kernel() or not is_built():
        return bundle
    from workbench.ui.widgets.outputs import WIDGET, outputs
    from workbench.ui.widgets.pusher import pusher, watch_cells
    from workbench.ui.widgets.widget import ViewWidget

    widget = ViewWidget(source)
    outputs().add(widget)
    pusher.add(widget)
    watch_cells()
    bundle[MIME] = {"version": VERSION, "view": source.view, "model": widget.model}
    shown = widget._repr_mimebundle_()
    assert shown is not None  # as for a widget with a view
    data, metadata = shown
    bundle[WIDGET] = data[WIDGET]
    return (bundle, metadata) if metadata else bundle


def is_drawn(include: Container[str] | None) -> bool:
    """Whether `mimebundle` returns more than texts: only then is it worth querying replicas for a model."""
    return (include is not None and MIME in include) or (in_a_kernel() and is_built())


def in_a_kernel() -> bool:
    """Whether this process is the kernel of a notebook."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    return getattr(shell, "kernel", None) is not None
