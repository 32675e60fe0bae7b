"""The table of results: every case is in it, under the heading that it deserves."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

pytest_plugins = "pytester"

DIVISION = {
    "area": "sums",
    "format": 1,
    "cases": [
        {
            "id": "sums/right",
            "input": {"kind": "device_spec_parse", "string": "GPU:1"},
            "expected": {"to_string": "/device:GPU:1"},
        },
        {
            "id": "sums/other-release",
            "input": {"kind": "device_spec_parse", "string": "GPU:1"},
            "expected": {"to_string": "?"},
            "expected_alternative": {"source": "another", "expected": {"device_index": 1}},
        },
        {
            "id": "sums/wrong",
            "input": {"kind": "device_spec_parse", "string": "GPU:1"},
            "expected": {"to_string": "/device:GPU:2"},
        },
        {
            "id": "sums/missing",
            "input": {"kind": "debugging", "fn": "assert_nothing_of_that_name", "args": []},
            "expected": {"ok": True},
        },
        {
            "id": "sums/not-expressible",
            "input": {"kind": "multi_worker_program", "workers": 2, "code": ["result = strategy.task_id"]},
            "expected": {"workers": [{"result": None}, {"result": None}]},
        },
    ],
}


def test_every_outcome_is_counted_and_named(pytester: pytest.Pytester) -> None:
    vectors = pytester.mkdir("vectors")
    (vectors / "sums.json").write_text(json.dumps(DIVISION))
    folder = Path(__file__).parent

    result = pytester.runpytest_subprocess(
        "-p",
        "no:cacheprovider",
        f"--rootdir={folder.parents[1]}",
        f"{folder / 'test_vectors.py'}::test_vector",
        f"--vectors={vectors}",
    )

    result.assert_outcomes(passed=2, failed=1, skipped=2)
    result.stdout.fnmatch_lines(
        [
            "area *cases *passed *failed *missing *not expressible *what is missing",
            "sums * 5 * 2 * 1 * 1 * 1 *wb.debugging.assert_nothing_of_that_name (1)",
            "all * 5 * 2 * 1 * 1 * 1",
            "not expressible: sums/not-expressible: asks for `task_id`*",
        ]
    )


def test_a_folder_without_vectors_is_refused(pytester: pytest.Pytester) -> None:
    folder = Path(__file__).parent
    empty = pytester.mkdir("empty")

    result = pytester.runpytest_subprocess(
        "-p",
        "no:cacheprovider",
        f"--rootdir={folder.parents[1]}",
        f"{folder / 'test_vectors.py'}::test_vector",
        f"--vectors={empty}",
    )

    assert result.ret != 0
    result.stdout.fnmatch_lines(["*there are no vectors*"])
