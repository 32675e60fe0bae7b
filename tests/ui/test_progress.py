"""`wb.progress` gives every element and says how far it came, with tqdm and without."""

from __future__ import annotations

import importlib.util

import pytest
import tqdm

import workbench as wb


@pytest.fixture(params=["tqdm", "plain"])
def either(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "plain":
        monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    else:
        monkeypatch.setattr(tqdm.tqdm, "monitor_interval", 0)  # its thread would outlive the test


@pytest.mark.usefixtures("either")
def test_every_element_comes_and_the_count_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    assert list(wb.progress(range(5), label="train")) == [0, 1, 2, 3, 4]
    shown = capsys.readouterr().err

    assert "train: " in shown
    assert "5/5" in shown


@pytest.mark.usefixtures("either")
def test_a_loop_that_ends_early_is_fine() -> None:
    for element in wb.progress(iter(range(100))):
        if element == 3:
            break

    assert element == 3


@pytest.mark.usefixtures("either")
def test_an_error_while_reading_is_raised() -> None:
    def broken():
        yield 1
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        list(wb.progress(broken()))
