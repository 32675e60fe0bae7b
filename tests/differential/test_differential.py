"""Random pipelines without TensorFlow: which errors users see, and that some stages change no element."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.differential.differences import difference
from tests.differential.evaluate import outcome
from tests.differential.kinds import KINDS
from tests.differential.workbench_names import names as workbench_names
from workbench.errors import InvalidArgumentError

_SEEN = {"WorkbenchError", "ValueError", "TypeError", "NotImplementedError", "ZeroDivisionError"}
_PROGRAMS = 60


@pytest.mark.filterwarnings(
    "ignore"
)  # from NumPy: overflows and empty ranges; from readers: damage that they skip
@pytest.mark.parametrize(("kind", "seed"), [*((kind, 0) for kind in KINDS if kind != "served"), ("plain", 1)])
def test_random_pipelines_end_with_errors_for_users_and_the_same_behind_a_prefetch(
    kind: str, seed: int
) -> None:
    names, source = workbench_names(), KINDS[kind](seed)
    for _ in range(_PROGRAMS):
        program = source.next()
        if "target()" in program:  # data service programs, whose servers would go on: only compared by hand
            continue
        once = outcome(program, names)
        errors = [once["made"]] if "made" in once else [x for x in once.get("elements", ()) if "error" in x]
        ours = [
            error for error in errors if error["file"] != "<string>"
        ]  # not of the functions in the program
        unexpected = [error for error in ours if not _SEEN & set(error["error"])]
        assert not unexpected, (program, unexpected)
        if "elements" in once and "folder()" not in program:  # read what another pass has written
            assert not difference(once, outcome(f"{program}.prefetch(2)", names)), program


@pytest.fixture
def served_names() -> Iterator[dict[str, Any]]:
    """Names for programs that start the servers of data services, which end with the test."""
    with contextlib.ExitStack() as servers:
        yield workbench_names(servers)


def test_data_services_give_what_tensorflow_gave(served_names: dict[str, Any]) -> None:
    recorded = json.loads(Path(__file__).with_name("served.json").read_text())
    assert recorded
    for each in recorded:
        found = outcome(each["program"], served_names)
        assert not difference(each["gives"], found), (each, found)


def test_only_errors_for_users_are_refusals() -> None:
    is_refused = workbench_names()["is_refused"]

    def fails(kind: type[Exception]) -> list[int]:
        raise kind("wrong")

    assert not is_refused(lambda: [1])
    for seen in (ValueError, TypeError, NotImplementedError, InvalidArgumentError):
        assert is_refused(lambda seen=seen: fails(seen))
    for unexpected in (AttributeError, AssertionError, KeyError):
        with pytest.raises(unexpected):
            is_refused(lambda unexpected=unexpected: fails(unexpected))


@pytest.mark.parametrize("kind", KINDS)
def test_the_same_seed_makes_the_same_programs(kind: str) -> None:
    one, other = KINDS[kind](5), KINDS[kind](5)
    assert [one.next() for _ in range(50)] == [other.next() for _ in range(50)]


_ARRAY = {"dtype": "int64", "shape": [], "items": 1}
_FOUND = {"elements": [_ARRAY], "spec": {"dtype": "int64", "shape": []}, "cardinality": 1}


@pytest.mark.parametrize(
    ("ours", "kind"),
    [
        (_FOUND, ""),
        ({"made": {"error": ["OSError"]}}, "made"),
        ({"value": 1}, "value"),
        (_FOUND | {"elements": [_ARRAY | {"dtype": "int32"}]}, "elements"),
        (_FOUND | {"elements": []}, "elements"),
        (_FOUND | {"spec": {"dtype": "int64", "shape": [None]}}, "spec"),
        (_FOUND | {"cardinality": -2}, "cardinality"),
    ],
)
def test_what_differs_is_named(ours: dict[str, object], kind: str) -> None:
    assert difference(_FOUND, ours) == kind
