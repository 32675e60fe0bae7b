"""The kind `checkpoint_program`: lines of code over checkpoints, which random comparison makes."""

from __future__ import annotations

import functools
import os
from pathlib import Path
from typing import Any

import numpy as np

import workbench as wb
from tests.reference.interpreter.clusters import default_context, make_strategy
from tests.reference.interpreter.codec import Json
from tests.reference.interpreter.namespaces import strategy_names
from tests.reference.interpreter.programs import run_program
from tests.reference.interpreter.world import World
from tests.reference.observation import Observed


class Thing:
    """An object with state."""

    def __init__(self, **state: Any) -> None:
        vars(self).update(state)


def checkpoint_program(given: Json, world: World, observed: Observed) -> None:
    with default_context():
        strategy = make_strategy(world.clusters, given.get("strategy"), given["replicas"])
        mirrored = functools.partial(wb.Variable, aggregation="ONLY_FIRST_REPLICA")
        names: dict[str, Any] = {
            "Checkpoint": wb.Checkpoint,
            "CheckpointManager": wb.CheckpointManager,
            "Thing": Thing,
            "folder": str(world.scratch),
            "iterator": lambda: iter(wb.data.Dataset.range(100)),
            "latest_checkpoint": wb.latest_checkpoint,
            "mirrored": mirrored,
            "name_of": name_of,
            "on_read": functools.partial(
                wb.Variable, synchronization="ON_READ", aggregation="ONLY_FIRST_REPLICA"
            ),
            "partly": lambda checkpoint, path: checkpoint.restore(path, expect_partial=True),
            "shown": shown,
            "there": lambda path: Path(path).is_dir(),
        }
        namespace = {name: functools.partial(_same, value) for name, value in names.items()}
        observed.fields["result"] = run_program(given["code"], {**strategy_names(strategy), **namespace})


def name_of(path: str | None) -> str | None:
    """The last part of a path."""
    return None if path is None else os.path.basename(path)


def shown(value: Any) -> Any:
    """The arrays of a state, in lists and dicts; of an iterator, the next number."""
    match value:
        case dict():
            return {key: shown(value[key]) for key in sorted(value)}
        case list() | tuple():
            return [shown(item) for item in value]
        case wb.Checkpoint():
            return shown(value.state_dict())
        case Thing():
            return shown(vars(value))
        case wb.Variable():
            return np.asarray(value.numpy())
        case _:
            return next(value)


def _same(value: Any) -> Any:
    return value


KINDS = {"checkpoint_program": checkpoint_program}
