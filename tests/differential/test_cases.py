"""Random cases without TensorFlow: each ends, with a result or an error that users are meant to see."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.differential.cases.comparing import AREAS, difference, random_cases
from tests.reference.interpreter.clusters import Clusters
from tests.reference.interpreter.world import World
from tests.reference.kinds import observe

_SEEN = {"WorkbenchError", "ValueError", "TypeError", "NotImplementedError"}
# Programs in the wrong context; in some the context is None.
_IN_CONTEXTS = {"RuntimeError", "AttributeError"}
_CASES = 40
_FEWER = {
    "scheduling": 12,
    "servers": 12,  # each starts a coordinator
    "checkpoints": 12,
    "managers": 8,
    "dumps": 12,  # each writes files
}


@pytest.mark.filterwarnings("ignore::RuntimeWarning", "ignore::UserWarning")
@pytest.mark.parametrize("area", AREAS)
def test_random_cases_end_with_errors_for_users(area: str, tmp_path: Path) -> None:
    clusters = Clusters(replicas=4)
    try:
        for number, given in enumerate(random_cases(area, 1, _FEWER.get(area, _CASES))):
            scratch = tmp_path / str(number)
            scratch.mkdir()
            error = observe(given, World(scratch, clusters)).error
            seen = _SEEN | (_IN_CONTEXTS if area == "contexts" else set())
            assert error is None or {kind.__name__ for kind in type(error).__mro__} & seen, (given, error)
    finally:
        clusters.close()


def test_the_same_seed_makes_the_same_cases() -> None:
    for area in AREAS:
        assert random_cases(area, 3, 30) == random_cases(area, 3, 30)


def test_an_outcome_that_differs_is_told(tmp_path: Path) -> None:
    world = World(tmp_path, Clusters())
    given = {"kind": "slurm_expand_hostlist", "hostlist": "n[1-2]"}
    refused = {"error": {"kind": "ValueError", "classes": []}}

    assert difference(given, {"result": ["n1", "n2"]}, world) == ""
    assert "expected" in difference(given, {"result": ["n1"]}, world)
    assert "ValueError" in difference(given, refused, world)
    assert difference({**given, "hostlist": "n["}, refused, world) == ""
