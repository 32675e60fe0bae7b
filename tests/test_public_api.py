"""The public surface: every name resolves, is documented, and none is there by accident."""

from __future__ import annotations

import ast
import pydoc
from pathlib import Path

import pytest

import workbench as wb

SOURCE = Path(wb.__file__).read_text(encoding="utf-8")


@pytest.mark.parametrize("name", wb.__all__)
def test_a_public_name_resolves_and_is_documented(name: str) -> None:
    assert (getattr(wb, name).__doc__ or "").strip()


def test_dir_lists_the_public_names_only() -> None:
    assert dir(wb) == sorted([*wb.__all__, "__version__"])


def test_type_checkers_see_the_same_names_from_the_same_modules() -> None:
    blocks = [node for node in ast.parse(SOURCE).body if isinstance(node, ast.If)]
    (block,) = [block for block in blocks if ast.unparse(block.test) == "TYPE_CHECKING"]
    seen = {
        alias.asname: node.module
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }  # fmt: skip

    assert seen == {**dict.fromkeys(wb._MODULES, "workbench"), **wb._EXPORTS}


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
