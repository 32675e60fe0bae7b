"""Makes the element specs that pipelines and programs pass to the library."""

from __future__ import annotations

from typing import Any

from tests.reference.interpreter.codec import Json, dtype
from tests.reference.outcomes import api


def decode_spec(value: Json) -> Any:
    """The element spec described by `{"t", "s"}` or a structure of those."""
    match value:
        case {"t": kind, "s": shape}:
            return api("data.TensorSpec", "TensorSpec")(shape, dtype(kind))
        case {"tuple": items} | {"list": items}:
            return tuple(decode_spec(item) for item in items)
        case {"dict": items}:
            return {key: decode_spec(item) for key, item in items.items()}
        case _:
            raise ValueError(f"no rule to decode the spec {value!r}")
