"""Programs over TensorFlow's checkpoints."""

from __future__ import annotations

import functools
import os
import tempfile
from collections.abc import Mapping
from typing import Any

import tensorflow as tf

from tests.differential.cases.tensorflow.programs import run_program, strategy_names
from tests.reference.interpreter.codec import Json


class Thing(tf.Module):
    """An object with state."""

    def __init__(self, **state: Any) -> None:
        super().__init__()
        object.__setattr__(self, "names", sorted(state))  # not part of the state
        for name, part in state.items():
            setattr(self, name, part)


def checkpoint_program(given: Json, strategy: Any) -> Json:
    """What a program leaves, in a folder of its own."""
    sync, aggregation = tf.VariableSynchronization, tf.VariableAggregation
    with tempfile.TemporaryDirectory() as folder:
        names = {
            "Checkpoint": tf.train.Checkpoint,
            "CheckpointManager": tf.train.CheckpointManager,
            "Thing": Thing,
            "folder": folder,
            "iterator": lambda: iter(tf.data.Dataset.range(100)),
            "latest_checkpoint": tf.train.latest_checkpoint,
            "mirrored": functools.partial(tf.Variable, aggregation=aggregation.ONLY_FIRST_REPLICA),
            "name_of": lambda path: None if path is None else os.path.basename(path),
            "on_read": functools.partial(
                tf.Variable, synchronization=sync.ON_READ, aggregation=aggregation.ONLY_FIRST_REPLICA
            ),
            "partly": lambda checkpoint, path: checkpoint.restore(path),
            "shown": lambda checkpoint: shown(_parts(checkpoint)),
            "there": lambda path: os.path.exists(f"{path}.index"),
        }
        return run_program(given, {**strategy_names(strategy), **names})


def _parts(checkpoint: Any) -> dict[str, Any]:
    names = (name for name in checkpoint._trackable_children() if name not in ("save_counter", "_root"))
    return {name: getattr(checkpoint, name) for name in names}


def shown(value: Any) -> Any:
    """The arrays of a state, in lists and dicts; of an iterator, the next number."""
    match value:
        case Mapping():
            return {key: shown(value[key]) for key in sorted(value)}
        case list() | tuple():
            return [shown(item) for item in value]
        case tf.train.Checkpoint():
            return shown(_parts(value))
        case Thing():
            return shown({name: getattr(value, name) for name in value.names})
        case tf.Variable():
            return value.numpy()
        case _:
            return next(value)
