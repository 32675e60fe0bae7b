"""The comparison's pictures are small and of one size, and its figures are those of the committed results."""

from __future__ import annotations

import json

import numpy as np
import pytest

from tests.benchmarks import side_by_side
from tests.benchmarks.ours.views.frames import rate
from tests.benchmarks.pictures import IMAGES, MOST_BYTES, PICTURES, SIZE, TAKEN
from tests.benchmarks.readme import between, newest
from tests.benchmarks.suites import SUITES
from tests.benchmarks.summary import Key
from tests.benchmarks.test_readme import results
from tests.benchmarks.test_summary import row
from tests.few_colours import few_colours

KNOWN = {picture.name: {"version": "1.2", "date": "2026-01-31"} for picture in PICTURES}


def test_the_comparison_says_what_the_results_say() -> None:
    text = side_by_side.PAGE.read_text(encoding="utf-8")

    assert between(text) == side_by_side.section(newest()), "python -m tests.benchmarks.readme"


def test_every_picture_is_small_has_the_same_size_and_is_dated() -> None:
    image = pytest.importorskip("PIL.Image", reason="Pillow is not installed: pip install -e '.[images]'")
    files = {file.stem: file for file in IMAGES.iterdir()}

    assert files.keys() == json.loads(TAKEN.read_text(encoding="utf-8")).keys()
    assert files.keys() <= {picture.name for picture in PICTURES}
    for file in files.values():
        assert file.stat().st_size <= MOST_BYTES, file.name
        with image.open(file) as picture:
            assert picture.size == SIZE, file.name


def test_a_small_mark_keeps_its_colour_among_thousands_of_others() -> None:
    image = pytest.importorskip("PIL.Image", reason="Pillow is not installed: pip install -e '.[images]'")
    across, down = np.linspace(0, 255, 600), np.linspace(120, 255, 100)[:, None]
    pixels = np.empty((200, 600, 3), np.uint8)
    pixels[:100] = across[:, None]  # greys, such as text
    pixels[100:, :, 0], pixels[100:, :, 1], pixels[100:, :, 2] = 255 - 0.3 * across, down, across
    pixels[20:30, 100:110] = green = (27, 110, 42)  # such as the dot of a status
    pixels[100:, 300:] = ground = (247, 247, 247)

    found = few_colours(image.fromarray(pixels)).convert("RGB")

    shown = np.asarray(found)
    assert len(np.unique(shown.reshape(-1, 3), axis=0)) <= 256
    assert np.abs(shown[25, 105].astype(int) - green).max() <= 12
    assert tuple(shown[150, 599]) == ground


def test_every_picture_is_taken_by_a_script_of_the_suite() -> None:
    assert {picture.command for picture in PICTURES} <= {job.command for job in SUITES["views"]}


def test_pictures_stand_two_in_a_row_below_their_versions_and_days() -> None:
    lines = side_by_side.section([results()], KNOWN).splitlines()

    assert lines[0].startswith(
        "| workbench 1.2: Overview, 2026-01-31 | Dask's dashboard 1.2: Status, 2026-01-31 |"
    )
    assert lines[2].count("](images/side-by-side/") == 2
    assert sum(line.count(".webp)") for line in lines) == len(PICTURES)


def test_a_picture_that_was_never_taken_is_not_shown() -> None:
    text = side_by_side.section([results()], {"overview": KNOWN["overview"]})

    assert ".webp" in text
    assert "dask.webp" not in text


def test_costs_are_told_by_tool_and_what_was_not_measured_is_said() -> None:
    ours = Key("views", 2, "workbench", "page, first data")
    board = ours._replace(who="TensorBoard")
    text = side_by_side.section([results(row(ours, 0, 0.2, unit="s"), row(board, 0, 1.5, unit="s"))], KNOWN)

    (line,) = [line for line in text.splitlines() if line.startswith("| opened until")]
    assert line.split("|")[2:6] == [" 0.2 s ", " not measured ", " 1.5 s ", " not measured "]
    assert "without a GPU (2026-01-31)" in text
    assert "with gzip not measured" in text


def test_a_late_frame_lowers_the_rate() -> None:
    on_time = [1000 * turn / 60 for turn in range(61)]
    one_left_out = on_time[:30] + on_time[31:]

    assert (rate(on_time), rate(one_left_out)) == (60, 59)
