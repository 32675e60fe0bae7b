"""`wb.layout`: opens a named layout of panes in JupyterLab; `%workbench layout NAME` is its magic."""

from __future__ import annotations

from typing import Final

from workbench.errors import FailedPreconditionError, InvalidArgumentError

MIME: Final = "application/vnd.workbench.layout+json"
"""The MIME type of kernel messages that JupyterLab pages with this notebook listen for."""

LAYOUTS: Final[dict[str, tuple[str, ...]]] = {
    "overview": ("overview", "lanes", "log"),
    "collectives": ("collective_table", "sweep", "lanes", "heat_map"),
    "debugging": ("stuck", "log", "values", "lanes"),
    "data": ("dataset_sharding", "input", "data_service", "array_sharding", "values", "servers"),
}
"""The layouts that come with workbench, and their views. `extension/src/lab/layouts/layouts.ts` says how to arrange
them.
"""


def layout_names() -> tuple[str, ...]:
    """All known layouts: those of workbench, and those saved in JupyterLab on this machine."""
    from workbench.runtime.deploy.registry import SUPPORTED, Registry
    from workbench.server.layout_names import kept

    saved = kept(Registry()) if SUPPORTED else ()
    return (*LAYOUTS, *(name for name in saved if name not in LAYOUTS))


def layout(name: str) -> None:
    """Arranges the panes of JupyterLab in a layout, immediately, even while the cell runs.

    It opens the panes of the layout beside the notebook, or below it in a narrow window, and closes all others. The
    command "Save the layout of panes" in JupyterLab's palette saves the present layout under a name.

    Args:
      name: "overview", "collectives", "debugging", "data", or the name of a saved layout.

    Raises:
      InvalidArgumentError: if there is no such layout; the message lists the existing ones.
      FailedPreconditionError: if this process is not the kernel of a notebook.
    """
    from workbench.ui.widgets.bundle import in_a_kernel

    names = layout_names()
    if name not in names:
        raise InvalidArgumentError(f"there is no layout {name!r}; there are: {', '.join(names)}")
    if not in_a_kernel():
        raise FailedPreconditionError(
            "layouts arrange the panes of JupyterLab: call wb.layout in a notebook that is open there"
        )
    from IPython.display import display

    views = ", ".join(LAYOUTS.get(name, ("as saved in JupyterLab",)))
    text = f"<Layout {name!r}: {views}>"
    display({"text/plain": text, MIME: {"layout": name}}, raw=True)  # type: ignore[no-untyped-call]
