"""workbench: drive many devices from a notebook, and see what happens there.

`import workbench as wb` is cheap: a name of `__init__.pyi` is imported when it is first used.
"""

from __future__ import annotations

import importlib
import sys
from typing import TYPE_CHECKING

from workbench import cluster_listeners, lazy_names

if TYPE_CHECKING:
    from workbench.runtime.cluster import Cluster

__version__ = "0.1.0"
__getattr__, _names = lazy_names.attach(__name__)


def __dir__() -> list[str]:
    return sorted([*_names(), "__version__"])


def _announce(cluster: Cluster) -> None:
    """Announces a cluster to JupyterLab and `workbench dashboard`, without further action by the user."""
    importlib.import_module("workbench.server.announcing").announce(cluster)


cluster_listeners.listeners.append(_announce)


if "IPython" in sys.modules:  # in a notebook, objects are drawn and cells wait for their steps
    importlib.import_module("workbench.ui.notebook").install()
