"""The doctor's checks of Python, packages and Jupyter. Looks packages up without importing them."""

from __future__ import annotations

import platform
import sys
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

from workbench.cli.findings import Finding, note, ok, problem

CORE = (
    "numpy",
    "dask",
    "distributed",
    "cloudpickle",
    "cryptography",
    "anywidget",
    "optree",
    "psutil",
    "threadpoolctl",
    "crc32c",
    "fsspec",
    "pyarrow",
)
"""Required packages, as in pyproject.toml."""

EXTRAS = {
    "lab": ("jupyterlab", "ipykernel", "nbformat", "scikit-learn"),
    "dashboard": ("panel",),
    "jax": ("jax",),
    "images": ("pillow",),
    "remote": ("aiohttp", "s3fs"),
    "zarr": ("zarr",),
}
"""Packages of each optional part, as in pyproject.toml. Those for GPUs are only looked up if there is a GPU."""

FRAMEWORKS = {"torch": "PyTorch"}
"""Libraries that users install themselves and that a lab uses."""


def python() -> Iterator[Finding]:
    """The interpreter."""
    text = f"{platform.python_implementation()} {platform.python_version()} at {sys.executable}"
    yield ok(f"{text} on {platform.system()} {platform.machine()}")
    if platform.system() != "Linux":
        yield note(
            "this is not Linux", "workbench is tested on Linux only; elsewhere, use a container or WSL 2"
        )


def packages() -> Iterator[Finding]:
    """The required packages."""
    found = {name: version(name) for name in CORE}
    present = [f"{name} {number}" for name, number in found.items() if number]
    for start in range(0, len(present), 4):
        yield ok(", ".join(present[start : start + 4]))
    if missing := [name for name, number in found.items() if number is None]:
        yield problem(f"missing: {', '.join(missing)}", install(*missing))


def extras() -> Iterator[Finding]:
    """The optional parts, and how to get those that are missing."""
    for extra, names in EXTRAS.items():
        found = {name: version(name) for name in names}
        missing = [name for name, number in found.items() if number is None]
        if missing:
            yield note(f"[{extra}] without {', '.join(missing)}", install(*missing))
        else:
            yield ok(f"[{extra}] {', '.join(f'{name} {number}' for name, number in found.items())}")
    for package, name in FRAMEWORKS.items():
        if number := version(package):
            yield ok(f"{name} {number}")
        else:
            yield note(f"{name} is not installed: lab 6 skips its part", install(package))


def jupyter() -> Iterator[Finding]:
    """JupyterLab, and a kernel with this interpreter."""
    if version("jupyterlab") is None:
        yield note("JupyterLab is not installed", install(*EXTRAS["lab"]))
        return
    yield ok(f"JupyterLab {version('jupyterlab')}")
    kernel = Path(sys.prefix, "share", "jupyter", "kernels", "python3", "kernel.json")
    if kernel.is_file():
        yield ok(f"kernel python3 at {kernel.parent}")
    else:
        yield problem("no kernel for this interpreter", f"{sys.executable} -m ipykernel install --sys-prefix")


def install(*names: str) -> str:
    """The command that installs packages where this interpreter finds them."""
    return f"{sys.executable} -m pip install {' '.join(names)}"


def version(package: str) -> str | None:
    """The installed version of a package, or None."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None
