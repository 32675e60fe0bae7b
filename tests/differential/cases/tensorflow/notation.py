"""Values of vectors as TensorFlow's, and back."""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow.python.distribute import ps_values
from tensorflow.python.distribute import values as distributed

from tests.reference.interpreter.codec import Json, array, decode_special


def decode(value: Json) -> Any:
    """The tensor, Python value or structure that `value` stands for."""
    match value:
        case {"t": _, "s": _, "v": _}:
            return tf.constant(array(value))
        case {"py": plain} | {"pystr": plain}:
            return decode_special(plain)
        case {"tuple": items}:
            return tuple(decode(item) for item in items)
        case {"list": items} | [*items]:
            return [decode(item) for item in items]
        case {"dict": items}:
            return {key: decode(item) for key, item in items.items()}
        case {"indexed_slices": parts}:
            return tf.IndexedSlices(*(decode(parts[name]) for name in ("values", "indices", "dense_shape")))
        case _:
            return value


def encode(value: Any) -> Json:
    """What a vector says of `value`."""
    match value:
        case None | tf.Operation():
            return None
        case bool() | int() | str():
            return {"py": value}
        case float() if not isinstance(value, np.generic):
            return {"py": _number(value)}
        case tf.IndexedSlices():
            return {
                "indexed_slices": {
                    name: encode(getattr(value, name)) for name in ("values", "indices", "dense_shape")
                }
            }
        case distributed.DistributedVariable():
            on_read = isinstance(value, distributed.SyncOnReadVariable)
            return _variable("SyncOnReadVariable" if on_read else "MirroredVariable", value.values)
        case distributed.Mirrored():
            return {"mirrored": [encode(part) for part in value.values]}
        case distributed.DistributedValues():
            return {"per_replica": [encode(part) for part in value.values]}
        case ps_values.AggregatingVariable():
            return encode(value.read_value())
        case tf.Variable():
            return {"variable": "Variable", "components": [_array(value.read_value().numpy())]}
        case tf.Tensor():
            return _array(value.numpy())
        case tuple():
            return {"tuple": [encode(item) for item in value]}
        case list():
            return {"list": [encode(item) for item in value]}
        case dict():
            return {"dict": {str(key): encode(item) for key, item in value.items()}}
        case _:
            return _array(value)


def encode_spec(spec: Any) -> Json:
    """What a vector says of an element spec."""
    match spec:
        case distributed.PerReplicaSpec():
            return {"per_replica": [encode_spec(part) for part in spec._value_specs]}
        case tuple():
            return {"tuple": [encode_spec(part) for part in spec]}
        case dict():
            return {"dict": {key: encode_spec(part) for key, part in spec.items()}}
        case _:
            return {"t": spec.dtype.name, "s": None if spec.shape.rank is None else list(spec.shape)}


def component(value: Any, replica: int) -> Json:
    """The structure as one replica has it."""
    return encode(
        tf.nest.map_structure(
            lambda leaf: leaf.values[replica] if isinstance(leaf, distributed.DistributedValues) else leaf,
            value,
        )
    )


def described(error: Exception) -> Json:
    """The error, with the names of its classes."""
    kind, *classes = [
        each.__name__ for each in type(error).__mro__ if each not in (object, BaseException, Exception)
    ]
    return {"error": {"kind": kind, "classes": classes, "text": str(error)[:200]}}


def _variable(kind: str, components: Any) -> Json:
    return {"variable": kind, "components": [encode(part) for part in components]}


def _array(value: Any) -> Json:
    found = np.asarray(value)
    if found.dtype.kind in "OSU":
        return {
            "t": "string",
            "s": list(found.shape),
            "v": _nested(lambda text: text.decode(), found.tolist()),
        }
    plain = found.astype(np.float32) if found.dtype.name == "bfloat16" else found
    return {"t": found.dtype.name, "s": list(found.shape), "v": _nested(_number, plain.tolist())}


def _nested(change: Any, value: Any) -> Any:
    return [_nested(change, item) for item in value] if isinstance(value, list) else change(value)


def _number(value: Any) -> Json:
    if isinstance(value, complex):
        return [_number(value.real), _number(value.imag)]
    if isinstance(value, float) and not np.isfinite(value):
        return "nan" if np.isnan(value) else "inf" if value > 0 else "-inf"
    return value
