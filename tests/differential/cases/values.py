"""Random arrays, in the notation of the vectors."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

from tests.reference.interpreter.codec import Json

DTYPES = (
    *("float32",) * 4,
    *("int32",) * 3,
    *("float64", "float16", "bfloat16", "int64", "int8", "uint8", "int16", "uint16", "uint32", "uint64"),
    *("bool", "complex64", "complex128", "string"),
)


class Values:
    """Makes arrays, shapes and choices; the same ones for the same seed."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def either(self, *options: Any) -> Any:
        """One of the options."""
        return self.random.choice(options)

    def rarely(self, chance: float) -> bool:
        """True with this chance."""
        return self.random.random() < chance

    def shape(self, rank: int | None = None) -> list[int]:
        """A shape of small sizes, at times 0."""
        rank = self.either(0, 0, 1, 1, 2, 2, 3) if rank is None else rank
        return [0 if self.rarely(0.06) else self.random.randint(1, 3) for _ in range(rank)]

    def array(self, dtype: str | None = None, shape: Sequence[int] | None = None) -> Json:
        """An array, of any dtype and shape unless they are given."""
        dtype = self.either(*DTYPES) if dtype is None else dtype
        shape = self.shape() if shape is None else shape
        return {"t": dtype, "s": list(shape), "v": self._nested(dtype, shape)}

    def _nested(self, dtype: str, shape: Sequence[int]) -> Json:
        if not shape:
            return self._number(dtype)
        return [self._nested(dtype, shape[1:]) for _ in range(shape[0])]

    def _number(self, dtype: str) -> Json:
        if dtype == "bool":
            return self.either(True, False)
        if dtype == "string":
            return self.either("a", "b", "xyz", "")
        if dtype.startswith("complex"):
            return [self.either(0, 1, -1.5), self.either(0, 1, 2.5)]
        if dtype.startswith("uint"):
            return self.either(0, 1, 1, 2, 30)
        if dtype.startswith("int"):
            return self.either(-3, -1, 0, 1, 1, 2, 20)
        return (
            self.either("nan", "inf", "-inf", -0.0) if self.rarely(0.1) else self.either(0.0, 1.0, -1.5, 2.25)
        )
