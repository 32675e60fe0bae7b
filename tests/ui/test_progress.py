"""`wb.progress` gives every element and says how far it came: in notebooks, with tqdm and without."""

from __future__ import annotations

import importlib.util
import itertools
import sys
from types import SimpleNamespace
from typing import Any

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
def test_an_epoch_of_a_distributed_dataset_has_a_total(
    strategy: wb.MirroredStrategy, capsys: pytest.CaptureFixture[str]
) -> None:
    for source, length in ((wb.data.Dataset.range(12), 3), (wb.data.Dataset.range(12).repeat(), None)):
        data = strategy.experimental_distribute_dataset(source.batch(4))
        assert len(list(itertools.islice(wb.progress(data), 3))) == 3
        assert ("/3" in capsys.readouterr().err) == (length == 3)


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


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """What a notebook's output has shown, one after the other."""
    import IPython.display

    outputs: list[dict[str, Any]] = []

    def display(bundle: dict[str, Any], *, raw: bool, display_id: bool) -> Any:
        assert (raw, display_id) == (True, True)
        outputs.append(bundle)
        return SimpleNamespace(update=lambda bundle, raw: outputs.append(bundle))

    monkeypatch.setattr(IPython.display, "display", display)
    monkeypatch.setattr(sys.modules["IPython"], "get_ipython", lambda: SimpleNamespace(kernel=object()))
    return outputs


def test_a_notebook_shows_a_bar_that_stays_as_it_was_last(
    shown: list[dict[str, Any]], capsys: pytest.CaptureFixture[str]
) -> None:
    assert list(wb.progress(range(3), label="<b>train</b>")) == [0, 1, 2]

    assert shown[0]["text/plain"] == "<b>train</b>: 0/3 steps, – steps/s"
    assert shown[-1]["text/plain"].startswith("<b>train</b>: 3/3 steps, ")
    assert "left" not in shown[-1]["text/plain"]
    assert '<progress value="3" max="3"' in shown[-1]["text/html"]
    assert "&lt;b&gt;train&lt;/b&gt;: 3/3 steps" in shown[-1]["text/html"]
    assert capsys.readouterr() == ("", "")


def test_a_notebook_shows_how_far_a_loop_came_that_ended_early(shown: list[dict[str, Any]]) -> None:
    for element in wb.progress(iter(range(10))):
        if element == 2:
            break

    assert shown[-1]["text/plain"].startswith("3 steps, ")
    assert "<progress" not in shown[-1]["text/html"]  # the number is unknown
