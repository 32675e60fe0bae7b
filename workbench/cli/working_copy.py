"""The notebooks that a user works in: copies of those that workbench ships, which updates never overwrite."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

_DELIVERED = ".workbench-notebooks.json"
_SUFFIXES = (".ipynb", ".md")


def bring_up_to_date(shipped: Path, copy: Path) -> list[str]:
    """Copies notebooks that are missing or untouched, and leaves alone what the user has changed.

    Where both sides have changed, the new version is put beside the user's, once. A notebook that the user has deleted
    comes back as it is shipped.

    Args:
      shipped: The folder of notebooks of this workbench.
      copy: The user's folder; it is made if there is none.

    Returns:
      What the user should know, a sentence for each notebook that got a new version beside it.

    Raises:
      OSError: If the folder cannot be written.
    """
    copy.mkdir(parents=True, exist_ok=True)
    delivered = _delivered(copy)
    sentences = []
    for source in sorted(path for path in shipped.iterdir() if path.suffix in _SUFFIXES):
        mine, new = copy / source.name, _digest(source)
        if not mine.exists() or _digest(mine) == delivered.get(source.name):
            _put(source, mine)
        elif new not in (_digest(mine), delivered.get(source.name, new)):
            beside = next(path for path in _names_beside(mine) if not path.exists())
            _put(source, beside)
            sentences.append(f"{mine.name} has a new version, {beside.name}; yours stays as it is")
        delivered[source.name] = new
        _remember(copy, delivered)  # at once: a version that was put beside a notebook is not put there again
    return sentences


def _names_beside(notebook: Path) -> Iterator[Path]:
    yield notebook.with_stem(f"{notebook.stem}_new")
    number = 2
    while True:
        yield notebook.with_stem(f"{notebook.stem}_new_{number}")
        number += 1


def _put(source: Path, target: Path) -> None:
    """Replaces `target` in one piece: after an interrupt there is the old file or the new one."""
    part = target.with_name(f".{target.name}.part")
    shutil.copyfile(source, part)
    os.replace(part, target)


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _delivered(copy: Path) -> dict[str, str]:
    """By name, the digest of the version that the user's notebook began as, or that was put beside it since."""
    try:
        found = json.loads((copy / _DELIVERED).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}  # a folder from elsewhere: what is there counts as the user's
    return found if isinstance(found, dict) else {}


def _remember(copy: Path, delivered: dict[str, str]) -> None:
    part = copy / f"{_DELIVERED}.part"
    part.write_text(json.dumps(delivered, indent=2) + "\n", encoding="utf-8")
    os.replace(part, copy / _DELIVERED)
