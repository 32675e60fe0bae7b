"""The kind `program`: lines of code over a strategy on one host."""

from __future__ import annotations

import functools

from tests.reference.interpreter.clusters import default_context, make_strategy
from tests.reference.interpreter.codec import Json
from tests.reference.interpreter.namespaces import strategy_names
from tests.reference.interpreter.programs import run_program
from tests.reference.interpreter.world import World
from tests.reference.observation import Observed


def program(given: Json, world: World, observed: Observed) -> None:
    with default_context():
        strategy = make_strategy(world.clusters, given.get("strategy"), given["replicas"])
        others = {
            name: functools.partial(make_strategy, world.clusters, other.get("strategy"), other["replicas"])
            for name, other in given.get("with_strategies", {}).items()
        }
        observed.fields["result"] = run_program(given["code"], {**strategy_names(strategy), **others})


KINDS = {"program": program}
