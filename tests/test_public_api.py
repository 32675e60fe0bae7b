"""The public surface: every name resolves, is documented, and none is there by accident."""

from __future__ import annotations

import ast
import importlib
import pydoc
import subprocess
import sys
from pathlib import Path

import pytest

import workbench as wb

ROOT = Path(wb.__file__).parent
PACKAGES = sorted(".".join(path.parent.relative_to(ROOT.parent).parts) for path in ROOT.rglob("__init__.pyi"))


@pytest.mark.parametrize("name", wb.__all__)
def test_a_public_name_resolves_and_is_documented(name: str) -> None:
    assert (getattr(wb, name).__doc__ or "").strip()


def test_dir_lists_the_public_names_only() -> None:
    assert dir(wb) == sorted([*wb.__all__, "__version__"])


@pytest.mark.parametrize("package", PACKAGES)
def test_every_name_of_a_package_resolves(package: str) -> None:
    module = importlib.import_module(package)

    assert module.__all__
    assert all(getattr(module, name) is not None for name in module.__all__)
    assert set(dir(module)) >= set(module.__all__)


@pytest.mark.parametrize("package", [each for each in PACKAGES if each != "workbench.runtime"])
def test_objects_of_every_public_class_tell_what_they_are(package: str) -> None:
    module = importlib.import_module(package)
    classes = [each for name in module.__all__ if isinstance(each := getattr(module, name), type)]
    objects = [each for each in classes if not issubclass(each, BaseException)]

    assert [each.__name__ for each in objects if each.__repr__ is object.__repr__] == []


@pytest.mark.parametrize("package", PACKAGES)
def test_a_list_of_names_holds_nothing_that_only_type_checkers_see(package: str) -> None:
    stub = Path(str(importlib.import_module(package).__file__)).with_suffix(".pyi")
    other = [
        ast.unparse(node)
        for node in ast.parse(stub.read_text(encoding="utf-8")).body
        if not isinstance(node, ast.ImportFrom) or any(alias.asname is None for alias in node.names)
    ]

    assert other == (["__version__: str"] if package == "workbench" else [])


def test_a_star_import_gives_all_names() -> None:
    program = "from workbench.io import *; print(crc32c.__module__)"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True
    )

    assert done.stdout.strip() == "workbench.io.checksums"


@pytest.mark.parametrize("name", ["collectives", "devices"])
def test_help_shows_the_arguments_of_what_can_be_called(name: str) -> None:
    text = pydoc.plain(pydoc.render_doc(getattr(wb, name)))

    assert "of: " in text
    assert "Args:" in text


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        wb.nonsense


def test_the_version_is_that_of_the_package() -> None:
    import tomllib

    project = Path(wb.__file__).parents[1] / "pyproject.toml"
    assert tomllib.loads(project.read_text(encoding="utf-8"))["project"]["version"] == wb.__version__
