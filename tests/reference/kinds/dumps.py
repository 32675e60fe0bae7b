"""The kind `dumped_operations`: what a dump tells of operations, which random comparison makes."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

import workbench as wb
from tests.differential.cases.dumps import FACTS
from tests.reference.interpreter.clusters import default_context, make_strategy
from tests.reference.interpreter.codec import Json, decode
from tests.reference.interpreter.world import World
from tests.reference.observation import Observed


def dumped_operations(given: Json, world: World, observed: Observed) -> None:
    options: dict[str, Any] = {"circular_buffer_size": given["buffer"]}
    if "only" in given:
        options["op_regex"] = f"^({'|'.join(given['only'])})$"
    if "dtypes" in given:
        options["tensor_dtypes"] = given["dtypes"]
    root = world.scratch / "dump"
    with default_context():
        strategy = make_strategy(world.clusters, None, 1)
        writer = wb.debugging.experimental.enable_dump_debug_info(root, given["mode"], **options)
        try:
            arrays = [decode(array) for array in given["arrays"]]
            strategy.run(functools.partial(_step, given["operations"]), args=(arrays,))
            writer.FlushNonExecutionFiles()
            writer.FlushExecutionFiles()
        finally:
            wb.debugging.experimental.disable_dump_debug_info()
    dump = wb.open_dump(root)
    told = [_facts(row, dump.array(row), given["mode"]) for row in dump.select()]
    observed.fields["result"] = [facts for facts in told if facts]


def _step(operations: list[str], arrays: list[Any]) -> None:
    for operation, array in zip(operations, arrays, strict=True):
        np.stack([array]) if operation == "stack" else getattr(np, operation)(array, array)


def _facts(row: dict[str, Any], array: Any, mode: str) -> dict[str, Any]:
    """The operation and the mode's facts about its result; nothing without facts."""
    whole = {**row, "tensor": array, "rank": None if row["shape"] is None else len(row["shape"])}
    facts = {name: whole[name] for name in FACTS[mode]}
    return {} if any(fact is None for fact in facts.values()) else {"op": row["op"], **facts}


KINDS = {"dumped_operations": dumped_operations}
