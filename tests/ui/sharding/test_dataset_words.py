"""What is said of a dataset's sharding, with the reason and the price."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import pytest

import workbench as wb
from workbench.data.sharding.explain import explain_sharding
from workbench.data.sharding.model import Shape, Sharding
from workbench.ui.sharding.dataset_model import dataset_model
from workbench.ui.sharding.dataset_words import (
    advice,
    figures,
    nothing,
    remainder_text,
    remedy,
    runs_text,
    sentence,
)

_REMEDIES: Final = Path(__file__).parents[3] / "extension" / "src" / "sharding" / "remedy.tsx"


def code_of(remedy: str) -> str:
    """The code that views have for a remedy."""
    found = re.search(rf"{remedy}: {{[^`]*code: `([^`]*)`", _REMEDIES.read_text(encoding="utf-8"))
    assert found is not None
    return found[1]


def of_files(folder: Path, *lines: int) -> Sharding:
    """Files with some lines each, one host and replica for each, in batches of 128."""
    paths = [str(folder / f"{number}.txt") for number in range(len(lines))]
    for path, count in zip(paths, lines, strict=True):
        Path(path).write_text("x\n" * count)
    data = wb.data.TextLineDataset(paths).batch(128)
    return explain_sharding(data, Shape(len(paths), 1), policy="FILE")


def test_runs_of_numbers_are_short() -> None:
    assert runs_text([]) == ""
    assert runs_text([3]) == "3"
    assert runs_text([0, 1, 2, 5]) == "0–2, 5"
    assert runs_text(range(0, 20, 2)) == "0, 2, 4, 6 and 6 more"


def test_a_host_without_elements_is_named_and_priced(tmp_path: Path) -> None:
    found = of_files(tmp_path, 360, 360, 320, 0)

    assert sentence(found) == "Replica 3 gets no data: host 3 has no file with elements"
    assert advice(found) == "a step uses 96 rows, not 128; policy DATA deals elements out instead of files"
    names = {"wb": wb, "dataset": wb.data.TextLineDataset([str(tmp_path / "0.txt")]).batch(128)}
    exec(code_of(remedy(found)), names)
    assert explain_sharding(names["dataset"], Shape(4, 1)).counts == (90, 90, 90, 90)
    assert [nothing(found, replica) for replica in range(3)] == ["", "", ""]
    assert figures(found) == (
        "1,040 elements · 4 hosts × 1 replica · schedule · 0 duplicates · 0 dropped · ▲ 14 turns without rows"
    )
    assert remainder_text(found) == "replica 2 has no rows from step 10 on; the remainder is 8 + 8"


def test_batches_that_are_too_small_for_all_replicas_are_named() -> None:
    found = explain_sharding(wb.data.Dataset.range(30).batch(3), 4)

    assert sentence(found) == "Replica 3 gets no data: a batch of 3 has no row for it"
    assert advice(found) == "batches of a multiple of 4 rows have as many for each replica"
    five = explain_sharding(wb.data.Dataset.range(30).batch(5), 4)  # 2 + 2 + 1 + 0
    assert sentence(five) == "Replica 3 gets no data: its part of each batch is empty"
    assert advice(five) == advice(found)
    assert remedy(five) == remedy(found) == ""


def test_a_host_that_gets_no_elements_is_named() -> None:
    found = explain_sharding(wb.data.Dataset.range(1).batch(4), Shape(2, 2), policy="DATA")

    assert nothing(found, 3) == "host 1 gets no elements"
    assert "can be tried out" in advice(explain_sharding(wb.data.Dataset.range(2).batch(3), Shape(3, 1)))


@pytest.mark.parametrize(
    ("elements", "batch", "replicas", "expected"),
    [
        (100, 16, 4, "the remainder is 4 × 1"),
        (1400, 190, 4, "the remainder is 18 + 18 + 18 + 16"),
        (96, 16, 4, ""),
        (18, 16, 4, "replicas 2–3 have no rows from step 1 on; the remainder is 1 + 1"),
        (100, 91, 16, "replicas 9–15 have no rows from step 1 on; the remainder is 9 × 1"),
        (146, 91, 16, "replicas 14–15 have no rows from step 1 on; the remainder is 55"),
    ],
)
def test_the_remainder_is_told(elements: int, batch: int, replicas: int, expected: str) -> None:
    assert (
        remainder_text(explain_sharding(wb.data.Dataset.range(elements).batch(batch), replicas)) == expected
    )


def test_where_all_get_something_nothing_is_said_and_of_steps_that_are_not_known_no_remainder() -> None:
    data = wb.data.Dataset.range(100).batch(16)
    found = explain_sharding(data, 4)

    assert (sentence(found), advice(found), nothing(found, 0), remedy(found)) == ("", "", "", "")
    part = explain_sharding(data, 4, max_elements=50)
    assert (remainder_text(part), figures(part)) == (
        "",
        "64 elements · even split · 0 duplicates · – dropped",
    )
    endless = explain_sharding(wb.data.Dataset.counter().take(8).batch(4), 2)
    assert dataset_model(endless).figures.endswith("0 duplicates · – dropped (the source has no end)")
    twice = explain_sharding(data, Shape(2, 1), policy="OFF")
    assert "▲ 100 duplicates" in figures(twice)
    assert sentence(explain_sharding(wb.data.Dataset.range(0).batch(4), 4)) == ""


def test_a_reading_counts_the_elements_that_its_text_has_no_room_for() -> None:
    data = wb.data.Dataset.range(64).shuffle(64, seed=3).batch(32)
    readings = [one for reader in dataset_model(explain_sharding(data, 2)).readers for one in reader.readings]

    assert all(reading.text.endswith(f"and {reading.hidden} more") for reading in readings)
    assert min(reading.hidden for reading in readings) > 0
    ordered = dataset_model(explain_sharding(wb.data.Dataset.range(64).batch(32), 2))
    assert {reading.hidden for reader in ordered.readers for reading in reader.readings} == {0}
