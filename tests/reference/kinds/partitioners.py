"""The kind `partitioner`."""

from __future__ import annotations

from tests.reference.interpreter.codec import Json, dtype
from tests.reference.interpreter.world import World
from tests.reference.observation import Observed
from tests.reference.outcomes import api


def partitioner(given: Json, world: World, observed: Observed) -> None:
    observed.phase = "construct"
    partition = api(f"distribute.experimental.partitioners.{given['partitioner']}")(**given["args"])
    observed.phase = "call"
    axis = {"axis": given["axis"]} if "axis" in given else {}
    kind = given["dtype"] if given["dtype"] == "string" else dtype(given["dtype"])
    observed.fields["result"] = list(partition(tuple(given["shape"]), kind, **axis))


KINDS = {"partitioner": partitioner}
