"""What notebooks do automatically: draw objects and checkpoints, wait for a cell's steps, count checks.

Importing this must stay cheap: it happens with `import workbench`, before anything else is loaded.
"""

from __future__ import annotations

import importlib
import sys
from typing import Any, Final

from workbench.checkpoint.listeners import listeners
from workbench.ui import formatters

_PATIENCE_SECONDS: Final = 0.5


def install() -> None:
    """Adds the hooks to the running IPython shell, if there is one; does nothing if called again."""
    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    if shell is not None:
        formatters.register(shell.display_formatter.formatters["text/html"])
        formatters.register_live(shell.display_formatter.mimebundle_formatter)
        shell.events.register("post_run_cell", wait_for_steps)
        # After the other hook, which may make the cell fail.
        shell.events.register("post_run_cell", keep_check)
        importlib.import_module("workbench.ui.magics").register(shell)  # it needs IPython
        if getattr(shell, "kernel", None) is not None and show_transfer not in listeners:
            listeners.append(show_transfer)


def show_transfer(transfer: Any) -> None:
    """Shows the progress of saving or restoring a checkpoint."""
    importlib.import_module("workbench.ui.transfers").show(transfer)


def wait_for_steps(result: Any) -> None:
    """Waits at the end of a cell for the steps that it sent, so that their error becomes the cell's error.

    Args:
      result: IPython's record of the cell; gets the error, which makes "Run All" stop here.
    """
    clusters = sys.modules.get("workbench.runtime.connect_cluster")
    cluster = None if clusters is None else clusters.current_cluster()
    if cluster is None or cluster.closed:
        return
    # Another user thread that waits for a step holds the lock; its steps and errors are its own.
    if not cluster.gang.lock.acquire(timeout=_PATIENCE_SECONDS):
        return
    try:
        for group in list(cluster.gang.groups.values()):
            try:
                group.wait()
            except (Exception, KeyboardInterrupt) as error:
                _show(error, result)
    finally:
        cluster.gang.lock.release()


def keep_check(result: Any) -> None:
    """Remembers that a lab's check passed, for `wb.testing.progress`.

    Args:
      result: IPython's record of the cell.
    """
    if (getattr(result.info, "cell_id", None) or "").endswith("-check"):
        importlib.import_module("workbench.testing.checks_done").keep_if_passed(result)


def _show(error: BaseException, result: Any) -> None:
    if result.error_in_exec is None:
        result.error_in_exec = error
    shell = sys.modules["IPython"].get_ipython()
    # The frames are workbench's, and the text names the user's line.
    shell.showtraceback((type(error), error, None))
