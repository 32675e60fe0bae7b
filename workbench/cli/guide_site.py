"""The guide as a site: built by Sphinx from the installed pages, once per version."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

from workbench import __version__
from workbench.cli.lab import shipped_notebooks
from workbench.extras import install_command

_KEPT: Final = 2
"""How many sites to keep: that of this version, and an earlier one."""


class GuideMissing(Exception):
    """The guide cannot be built here; the message says why and what to do."""


def built_site(*, print_progress: bool = False) -> Path:
    """The folder of the site, with `guide/index.html`; built unless there is one for these pages.

    Args:
      print_progress: Whether to announce on stderr that the guide is being built, which takes some 20 seconds.

    Raises:
      GuideMissing: if Sphinx is not installed, the pages are missing, or Sphinx fails.
    """
    notebooks = shipped_notebooks()
    if notebooks is None or not (notebooks / "guide" / "conf.py").is_file():
        raise GuideMissing("the guide is not part of this installation of workbench: reinstall it")
    site = _sites() / f"{__version__}-{_digest(notebooks)[:12]}"
    if (site / "guide" / "index.html").is_file():
        return site
    missing = [name for name in ("sphinx", "myst_nb", "furo") if importlib.util.find_spec(name) is None]
    if missing:
        raise GuideMissing(
            f"{missing[0]} is missing, which builds the guide: {install_command('docs')}. "
            f"Its pages are Markdown, in {notebooks / 'guide'}"
        )
    if print_progress:
        print("Building the guide, once for this version: some 20 seconds", file=sys.stderr)
    _build(notebooks, site)
    return site


def build(notebooks: Path, target: Path, *options: str) -> None:
    """Builds the site with Sphinx.

    Args:
      notebooks: The folder that has `guide/`.
      target: The folder for the site.
      options: Further options of Sphinx, such as "-W".

    Raises:
      GuideMissing: if Sphinx fails; the message has its output.
    """
    with tempfile.TemporaryDirectory(prefix="workbench-guide-") as trees:
        command = [
            sys.executable,
            "-m",
            "sphinx",
            "-q",
            "-d",
            trees,
            "-c",
            str(notebooks / "guide"),
            *options,
        ]
        done = subprocess.run(
            [*command, str(notebooks), str(target)], capture_output=True, text=True, timeout=600, check=False
        )
    if done.returncode:
        raise GuideMissing(f"Sphinx could not build the guide:\n{done.stderr.strip()}")


def _build(notebooks: Path, site: Path) -> None:
    """Builds in a temporary folder and renames it, because another process may build the same site."""
    site.parent.mkdir(parents=True, exist_ok=True)
    part = Path(tempfile.mkdtemp(prefix=".part-", dir=site.parent))
    try:
        build(notebooks, part)
        try:
            os.replace(part, site)
        except OSError:  # another process was faster; its site is the same
            if not site.is_dir():
                raise
    finally:
        shutil.rmtree(part, ignore_errors=True)
    older = sorted(site.parent.glob("[!.]*"), key=lambda folder: folder.stat().st_mtime, reverse=True)
    for folder in older[_KEPT:]:
        if folder != site:
            shutil.rmtree(folder, ignore_errors=True)


def _sites() -> Path:
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache) / "workbench" / "guide"


def _digest(notebooks: Path) -> str:
    """A digest of the pages' sources. Docstrings and views count by version, or by modification time in a clone."""
    seen = hashlib.sha256()
    files = [
        *notebooks.glob("*.ipynb"),
        *(path for path in (notebooks / "guide").rglob("*") if path.is_file()),
    ]
    for path in sorted(path for path in files if "__pycache__" not in path.parts):
        seen.update(path.relative_to(notebooks).as_posix().encode() + b"\0" + path.read_bytes() + b"\0")
    package = Path(__file__).parents[1]
    for path in (*sorted(package.rglob("*.py")), *sorted((package / "static").glob("*.js"))):
        seen.update(f"{path.relative_to(package)} {path.stat().st_mtime_ns}\0".encode())
    return seen.hexdigest()
