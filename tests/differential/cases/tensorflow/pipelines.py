"""Pipelines of vectors as TensorFlow's."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from tests.differential.cases.tensorflow.notation import decode
from tests.reference.interpreter.codec import Json


def build(steps: Sequence[Json]) -> Any:
    """The dataset that `steps` describe."""
    first, *rest = steps
    match first:
        case {"op": "range", "args": args}:
            dataset = tf.data.Dataset.range(*args)
        case {"op": "from_tensor_slices", "value": value}:
            dataset = tf.data.Dataset.from_tensor_slices(decode(value))
        case _:
            raise NotImplementedError(first["op"])
    for step in rest:
        given = {name: value for name, value in step.items() if name != "op"}
        dataset = (
            _with_options(dataset, given)
            if step["op"] == "options"
            else getattr(dataset, step["op"])(**given)
        )
    return dataset


def _with_options(dataset: Any, given: Json) -> Any:
    options = tf.data.Options()
    policy = getattr(tf.data.experimental.AutoShardPolicy, given["auto_shard_policy"])
    options.experimental_distribute.auto_shard_policy = policy
    return dataset.with_options(options)
