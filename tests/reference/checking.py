"""Runs a case and says whether it is met, cannot be expressed, or lacks a name; the same for every way of running."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from tests.reference.decisions import decided
from tests.reference.inexpressible import Excuse, excuse_of
from tests.reference.interpreter.codec import Json
from tests.reference.interpreter.world import World
from tests.reference.kinds import observe
from tests.reference.outcomes import Mismatch, NotExpressible

OWN_VECTORS = Path(__file__).parent / "vectors"


def cases_in(folder: Path) -> Iterator[tuple[str, Json]]:
    """The cases of a folder of vectors, each with its area."""
    for path in sorted(folder.glob("*.json")):
        file = json.loads(path.read_text(encoding="utf-8"))
        for case in file["cases"]:
            yield file["area"], case


def check(case: Json, world: World, excuses: tuple[Excuse, ...] | None = None) -> None:
    """Returns if the case is met, by the expected result or by that of the other release.

    Args:
      case: A case of the vectors.
      world: What it may use.
      excuses: Errors that say that this way of running cannot express the case, and with them effects on the
        notebook's objects; None excuses nothing.

    Raises:
      Mismatch: if it is not met.
      Missing: if a public name that it needs does not exist.
      NotExpressible: if one controller, or this way of running, cannot say it.
    """
    observed = observe(case["input"], world)
    expectations = [case["expected"]]
    if "expected_alternative" in case:
        expectations.append(case["expected_alternative"]["expected"])
    for expected in expectations:
        try:
            return observed.check(decided(case["input"], expected))
        except Mismatch as error:
            mismatch = error
    reason = None if excuses is None else excuse_of(case, observed, excuses)
    if reason is not None:
        raise NotExpressible(reason) from mismatch
    raise mismatch
