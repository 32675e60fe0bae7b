"""The user's copies of notebooks: edits stay, untouched ones follow what is shipped, and nothing is overwritten."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from workbench.cli.working_copy import bring_up_to_date

NAME = "01_quickstart.ipynb"


class Notebooks:
    """What is shipped and what the user has."""

    def __init__(self, folder: Path) -> None:
        self.shipped, self.copy = folder / "shipped", folder / "copy"
        self.shipped.mkdir()
        self.ship("first version")

    def ship(self, text: str, name: str = NAME) -> None:
        (self.shipped / name).write_text(text, encoding="ascii")

    def edit(self, text: str, name: str = NAME) -> None:
        (self.copy / name).write_text(text, encoding="ascii")

    def start(self) -> list[str]:
        return bring_up_to_date(self.shipped, self.copy)

    def mine(self) -> dict[str, str]:
        """The user's folder, as it is shown to them."""
        return {
            path.name: path.read_text(encoding="ascii")
            for path in self.copy.iterdir()
            if not path.name.startswith(".")
        }


@pytest.fixture
def notebooks(tmp_path: Path) -> Notebooks:
    return Notebooks(tmp_path)


def test_the_first_start_copies_notebooks_and_no_leftovers(notebooks: Notebooks) -> None:
    notebooks.ship("about", "README.md")
    notebooks.ship("of a run", "run.parquet")
    (notebooks.shipped / ".ipynb_checkpoints").mkdir()

    assert notebooks.start() == []
    assert notebooks.mine() == {NAME: "first version", "README.md": "about"}


def test_edits_are_there_at_the_next_start_and_what_is_shipped_is_as_it_was(notebooks: Notebooks) -> None:
    notebooks.start()
    notebooks.edit("my work")

    assert notebooks.start() == []
    assert notebooks.mine() == {NAME: "my work"}
    assert (notebooks.shipped / NAME).read_text(encoding="ascii") == "first version"


def test_a_copy_that_fails_leaves_nothing_behind(
    notebooks: Notebooks, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError("no space left")

    monkeypatch.setattr(os, "replace", full)

    with pytest.raises(OSError, match="no space left"):
        notebooks.start()
    assert list(notebooks.copy.iterdir()) == []


def test_an_untouched_notebook_follows_what_is_shipped(notebooks: Notebooks) -> None:
    notebooks.start()
    notebooks.ship("second version")

    assert notebooks.start() == []
    assert notebooks.mine() == {NAME: "second version"}


def test_a_new_version_of_an_edited_notebook_is_put_beside_it_once(notebooks: Notebooks) -> None:
    notebooks.start()
    notebooks.edit("my work")
    notebooks.ship("second version")

    assert notebooks.start() == [
        "01_quickstart.ipynb has a new version, 01_quickstart_new.ipynb; yours stays as it is"
    ]
    assert notebooks.mine() == {NAME: "my work", "01_quickstart_new.ipynb": "second version"}
    notebooks.edit("work in the new one", "01_quickstart_new.ipynb")
    assert notebooks.start() == []
    (notebooks.copy / "01_quickstart_new.ipynb").unlink()
    assert notebooks.start() == []
    assert notebooks.mine() == {NAME: "my work"}


def test_a_third_version_overwrites_neither(notebooks: Notebooks) -> None:
    notebooks.start()
    notebooks.edit("my work")
    notebooks.ship("second version")
    notebooks.start()
    notebooks.ship("third version")

    (sentence,) = notebooks.start()
    assert "01_quickstart_new_2.ipynb" in sentence
    assert notebooks.mine() == {
        NAME: "my work",
        "01_quickstart_new.ipynb": "second version",
        "01_quickstart_new_2.ipynb": "third version",
    }


def test_a_user_who_has_the_new_version_already_gets_none_beside_it(notebooks: Notebooks) -> None:
    notebooks.start()
    notebooks.ship("second version")
    notebooks.edit("second version")

    assert notebooks.start() == []
    notebooks.ship("third version")
    notebooks.start()
    assert notebooks.mine() == {NAME: "third version"}


def test_a_deleted_notebook_comes_back_as_shipped(notebooks: Notebooks) -> None:
    notebooks.start()
    notebooks.edit("my work")
    (notebooks.copy / NAME).unlink()
    notebooks.ship("second version")

    assert notebooks.start() == []
    assert notebooks.mine() == {NAME: "second version"}


@pytest.mark.parametrize("record", [None, "{", "[]"])
def test_a_folder_without_a_record_is_the_users(notebooks: Notebooks, record: str | None) -> None:
    notebooks.copy.mkdir()
    notebooks.edit("my work")
    notebooks.edit("mine, too", "other.ipynb")
    if record is not None:
        (notebooks.copy / ".workbench-notebooks.json").write_text(record, encoding="ascii")

    assert notebooks.start() == []
    assert notebooks.mine() == {NAME: "my work", "other.ipynb": "mine, too"}


def test_an_interrupted_update_leaves_whole_notebooks(
    notebooks: Notebooks, monkeypatch: pytest.MonkeyPatch
) -> None:
    notebooks.start()
    notebooks.ship("second version")

    def interrupted(*paths: Path) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(os, "replace", interrupted)
        with pytest.raises(KeyboardInterrupt):
            notebooks.start()
    assert notebooks.mine() == {NAME: "first version"}
    notebooks.start()
    assert notebooks.mine() == {NAME: "second version"}
