"""How to install the optional parts of workbench: its extras, as pyproject.toml names them.

The distribution is not on the package index yet, so every command that is shown to users installs from a clone.
"""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Final

DISTRIBUTION: Final = "replica-workbench"
"""The name for pip. There, `workbench` belongs to another project; `import workbench` is ours."""


def install_command(extra: str) -> str:
    """The command that installs an extra; it works in any folder if this workbench is a clone.

    Args:
      extra: A name under `[project.optional-dependencies]`, such as "gpu13".
    """
    clone = Path(__file__).parents[1]
    if _is_clone(clone):
        return f"pip install -e {shlex.quote(f'{clone}[{extra}]')}"
    return f"pip install '.[{extra}]' in a clone of workbench"


def _is_clone(folder: Path) -> bool:
    try:
        text = (folder / "pyproject.toml").read_text(encoding="utf-8")
    except OSError:
        return False
    return f'name = "{DISTRIBUTION}"' in text  # other packages leave a file of this name in site-packages
