"""`wb.layout`: opens a named layout of panes in JupyterLab; `%workbench layout NAME` is its magic."""

from __future__ import annotations

from typing import Final

from workbench.errors import FailedPreconditionError, InvalidArgumentError

MIME: Final = "application/vnd.workbench.layout+json"
"""What the pages of JupyterLab that show this notebook listen for, among what its kernel publishes."""

LAYOUTS: Final[dict[str, tuple[str, ...]]] = {
    "overview": ("overview", "lanes", "log"),
    "collectives": ("collective_table", "sweep", "lanes", "heat_map"),
    "debugging": ("stuck", "log", "values", "lanes"),
    "data": ("dataset_sharding", "input", "data_service", "array_sharding", "values", "servers"),
}
"""Those that come with workbench, with their views; how these lie is said in `extension/src/lab/layouts/layouts.ts`."""


def layout_names() -> tuple[str, ...]:
    """All layouts that are known here: those of workbench, and those that were saved in JupyterLab on this machine."""
    from workbench.runtime.deploy.registry import SUPPORTED, Registry
    from workbench.server.layout_names import kept

    saved = kept(Registry()) if SUPPORTED else ()
    return (*LAYOUTS, *(name for name in saved if name not in LAYOUTS))


def layout(name: str) -> None:
    """Arranges the panes of JupyterLab as a layout says, at once, also while the cell goes on.

    Panes that belong to the layout are opened, beside the notebook, and those that do not are closed. The command
    "Save the layout of panes" in JupyterLab's palette keeps one under a name.

    Args:
      name: "overview", "collectives", "debugging", "data", or a saved one.

    Raises:
      InvalidArgumentError: if there is no such layout; the text names those that there are.
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
