"""Runs a case of any kind; one file per family of kinds, each function filling in what it observes."""

from __future__ import annotations

from collections.abc import Callable

from tests.reference.interpreter.codec import Json
from tests.reference.interpreter.files import write_files
from tests.reference.interpreter.world import World
from tests.reference.kinds import (
    checkpoints,
    collectives,
    coordinator,
    data_programs,
    debugging,
    devices,
    distribution,
    dumps,
    legacy,
    multi_worker,
    partitioners,
    pipelines,
    records,
    resolvers,
    service,
    sharding,
    strategy_programs,
)
from tests.reference.observation import Observed
from tests.reference.outcomes import answer

Kind = Callable[[Json, World, Observed], None]

_FAMILIES = (
    checkpoints,
    collectives,
    coordinator,
    data_programs,
    debugging,
    devices,
    distribution,
    dumps,
    legacy,
    multi_worker,
    partitioners,
    pipelines,
    records,
    resolvers,
    service,
    sharding,
    strategy_programs,
)

KINDS: dict[str, Kind] = {name: kind for family in _FAMILIES for name, kind in family.KINDS.items()}


def observe(given: Json, world: World) -> Observed:
    """Runs the input of a case.

    Raises:
      Missing: if a public name that it needs does not exist yet.
      NotExpressible: if one controller cannot say it.
    """
    kind, observed = KINDS[given["kind"]], Observed()
    write_files(world.scratch, given.get("files", {}))
    outcome = answer(lambda: kind(given, world, observed))
    if isinstance(outcome, BaseException):
        observed.error = outcome
    return observed
