"""The kind `program`: lines of code over a strategy on one host."""

from __future__ import annotations

import functools

from tests.reference.clusters import default_context, make_strategy
from tests.reference.codec import Json
from tests.reference.namespaces import strategy_names
from tests.reference.observation import Observed
from tests.reference.programs import run_program
from tests.reference.world import World


def program(given: Json, world: World, observed: Observed) -> None:
    with default_context():
        strategy = make_strategy(world.clusters, given.get("strategy"), given["replicas"])
        others = {
            name: functools.partial(make_strategy, world.clusters, other.get("strategy"), other["replicas"])
            for name, other in given.get("with_strategies", {}).items()
        }
        observed.fields["result"] = run_program(given["code"], {**strategy_names(strategy), **others})


KINDS = {"program": program}
