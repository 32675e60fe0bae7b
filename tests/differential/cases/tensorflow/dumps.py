"""Dumps of TensorFlow's operations."""

from __future__ import annotations

import tempfile
from typing import Any

import tensorflow as tf
from tensorflow.python.debug.lib import debug_events_reader

from tests.differential.cases.dumps import FACTS
from tests.differential.cases.tensorflow.notation import decode, encode
from tests.reference.interpreter.codec import Json

_NAMES = {"Pack": "stack", "AddV2": "add", "Mul": "multiply"}


def dumped_operations(given: Json) -> Json:
    """What a dump tells of operations."""
    options: dict[str, Any] = {"circular_buffer_size": given["buffer"]}
    if "only" in given:
        wanted = [name for name, ours in _NAMES.items() if ours in given["only"]]
        options["op_regex"] = f"^({'|'.join(wanted)})$"
    if "dtypes" in given:
        options["tensor_dtypes"] = given["dtypes"]
    arrays = [decode(array) for array in given["arrays"]]
    with tempfile.TemporaryDirectory() as root:
        debugging = tf.debugging.experimental
        writer = debugging.enable_dump_debug_info(root, given["mode"], **options)
        try:
            for operation, array in zip(given["operations"], arrays, strict=True):
                if operation == "stack":
                    tf.stack([array])
                else:
                    (tf.add if operation == "add" else tf.multiply)(array, array)
            writer.FlushNonExecutionFiles()
            writer.FlushExecutionFiles()
        finally:
            debugging.disable_dump_debug_info()
        with debug_events_reader.DebugDataReader(root) as reader:
            reader.update()
            found = [reader.read_execution(digest) for digest in reader.executions()]
            told = [_told(reader, execution, given["mode"]) for execution in found]
    return {"result": encode([facts for facts in told if facts])}


def _told(reader: Any, execution: Any, mode: str) -> dict[str, Any]:
    """The operation and the mode's facts about its result; nothing without facts."""
    op = {"op": _NAMES.get(execution.op_type, execution.op_type)}
    if mode == "NO_TENSOR":
        return op
    if mode == "FULL_TENSOR":
        (tensor,) = reader.execution_to_tensor_values(execution) or [None]
        return {} if tensor is None else {**op, "tensor": tf.constant(tensor)}
    (numbers,) = execution.debug_tensor_values or [None]
    if numbers is None:
        return {}
    whole = [int(number) for number in numbers]
    match mode:
        case "CURT_HEALTH":
            facts: list[Any] = [bool(whole[1])]
        case "CONCISE_HEALTH":
            facts = whole[1:]
        case "FULL_HEALTH":
            facts = [tf.as_dtype(whole[2]).name, *whole[3:]]
        case _:
            facts = [tf.as_dtype(whole[1]).name, whole[2], whole[3], whole[4 : 4 + whole[2]]]
    return {**op, **dict(zip(FACTS[mode], facts, strict=True))}
