"""The notebooks that a user works in: copies of those that workbench ships, which updates never overwrite."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from workbench.cli.whole_files import digest, put

_DELIVERED = ".workbench-notebooks.json"
_SUFFIXES = (".ipynb", ".md")


def bring_up_to_date(shipped: Path, copy: Path) -> list[str]:
    """Copies notebooks that are missing or unchanged, and keeps those that the user has changed.

    If both sides have changed, it puts the new version beside the user's, once. It restores notebooks that the user has
    deleted.

    Args:
      shipped: The folder of notebooks of this workbench.
      copy: The user's folder; created if missing.

    Returns:
      A sentence for the user about each notebook that got a new version beside it.

    Raises:
      OSError: if the folder cannot be written.
    """
    copy.mkdir(parents=True, exist_ok=True)
    delivered = _delivered(copy)
    sentences = []
    for source in sorted(path for path in shipped.iterdir() if path.suffix in _SUFFIXES):
        mine, content = copy / source.name, source.read_bytes()
        new, found = digest(content), digest(mine.read_bytes()) if mine.exists() else None
        if found in (None, delivered.get(source.name)):
            put(mine, content)
        elif new not in (found, delivered.get(source.name, new)):
            beside = next(path for path in _names_beside(mine) if not path.exists())
            put(beside, content)
            sentences.append(f"{mine.name} has a new version, {beside.name}; yours stays as it is")
        delivered[source.name] = new
        # Written after each notebook, so that an interrupted run does not add the same version again.
        put(copy / _DELIVERED, (json.dumps(delivered, indent=2) + "\n").encode())
    return sentences


def _names_beside(notebook: Path) -> Iterator[Path]:
    yield notebook.with_stem(f"{notebook.stem}_new")
    number = 2
    while True:
        yield notebook.with_stem(f"{notebook.stem}_new_{number}")
        number += 1


def _delivered(copy: Path) -> dict[str, str]:
    """For each notebook, the digest of the version that the user's copy started from, or that was added later."""
    try:
        found = json.loads((copy / _DELIVERED).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}  # not written by workbench, so its files count as the user's
    return found if isinstance(found, dict) else {}
