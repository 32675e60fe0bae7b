"""What the notebooks print and show, each executed once."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.notebooks.executed import executed

OutputsOf = Callable[[str], dict[str, str]]


@pytest.fixture(scope="session")
def outputs_of(
    outputs_in_jupyterlab: dict[str, dict[str, str]], tmp_path_factory: pytest.TempPathFactory
) -> OutputsOf:
    """The text of each code cell of a notebook, by the cell's id: from JupyterLab where it has just run there."""

    def outputs_of(name: str) -> dict[str, str]:
        return outputs_in_jupyterlab.get(name) or executed(name, tmp_path_factory.mktemp("notebook"))

    return outputs_of
