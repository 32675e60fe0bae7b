"""Texts of programs that parse random sequence examples, which may lack features, or have others, or be damaged."""

# ruff: noqa: E501 - each line has one program, or several

from __future__ import annotations

from typing import Any

from tests.differential.programs import Drawn
from workbench.io import encode_example, encode_sequence_example

_VALUES: dict[str, tuple[Any, ...]] = {
    "int64": (0, 5, -3, 2**40),
    "float32": (0.5, -1.0, 3.0),
    "string": (b"", b"x", b"yz"),
}
_KINDS = {"int64": "int64", "float32": "float", "string": "bytes"}
_NAMES = ("a", "b", "c")
_ODD_SHAPES = ([], [1], [2], [2, 1], [None], [-1])  # [0] crashes TensorFlow


class SequencePrograms(Drawn):
    """Makes programs that parse a batch of examples, or one of them."""

    def next(self) -> str:
        """The next program, an expression."""
        context, steps = self._kinds(), self._kinds()
        self._size = self._random.choice((1, 1, 1, 2, 2))  # the size of most features
        count = self._random.choice((1, 1, 1, 2, 2, 3, 3)) if self._random.random() < 0.97 else 0
        examples = [self._example(context, steps) for _ in range(count)]
        wanted = f"{self._wanted(context, sequence=False)}, {self._wanted(steps, sequence=True)}"
        if self._random.random() < 0.15:
            wanted = self._either("{}, {}", "None, None", "{}", wanted.partition("}, ")[0] + "}")
        match self._number(0, 9):
            case 0 | 1 | 2:
                return f"parsed(io.parse_single_sequence_example({examples[0] if examples else b''!r}, {wanted}))"
            case 3:
                rows = (
                    f"Dataset.from_tensor_slices({examples!r})" if examples else "Dataset.from_tensors(b'')"
                )
                return f"{rows}.map(lambda x: io.parse_single_sequence_example(x, {self._fixed(context, steps)}))"
            case 4:
                rows = (
                    f"Dataset.from_tensor_slices({examples!r}).batch(2)"
                    if examples
                    else "Dataset.from_tensors([b''])"
                )
                return f"{rows}.map(lambda x: io.parse_sequence_example(x, {self._fixed(context, steps)}))"
            case 5:
                return f"parsed(io.parse_{self._either('', 'single_')}example({self._plain(context)}, {self._wanted(context, sequence=False, steps=True)}))"
            case _:
                return f"parsed(io.parse_sequence_example(texts({examples!r}), {wanted}))"

    def _kinds(self) -> dict[str, str]:
        return {name: self._either(*_VALUES) for name in self._random.sample(_NAMES, self._number(0, 2))}

    def _values(self, dtype: str) -> Any:
        """The values of a feature: usually of its dtype and in the usual number."""
        if self._random.random() < 0.05:
            dtype = self._either(*_VALUES)
        count = self._size if self._random.random() < 0.93 else self._number(0, 3)
        values = [self._random.choice(_VALUES[dtype]) for _ in range(count)]
        return {_KINDS[dtype]: values}

    def _features(self, kinds: dict[str, str]) -> dict[str, Any]:
        return {name: self._values(dtype) for name, dtype in kinds.items() if self._random.random() < 0.9}

    def _example(self, context: dict[str, str], steps: dict[str, str]) -> bytes:
        lists = {
            name: [self._values(dtype) for _ in range(self._number(0, 3))]
            for name, dtype in steps.items()
            if self._random.random() < 0.85
        }
        data = encode_sequence_example(self._features(context), lists)
        return data[:-1] if data and self._random.random() < 0.04 else data

    def _plain(self, kinds: dict[str, str]) -> str:
        return repr(encode_example(self._features(kinds)))

    def _wanted(self, kinds: dict[str, str], *, sequence: bool, steps: bool = False) -> str:
        found = []
        for name in self._random.sample(_NAMES, self._number(0, 2)) if self._number(0, 9) == 0 else kinds:
            dtype = kinds.get(name, "int64")
            if self._random.random() < 0.05:
                dtype = self._either(*_VALUES, "int32", "float64")
            found.append(f"{name!r}: {self._feature(dtype, sequence, steps)}")
        return f"{{{', '.join(found)}}}"

    def _feature(self, dtype: str, sequence: bool, steps: bool) -> str:
        fitting = {1: ([], [], [1], [1, 1]), 2: ([2], [2, 1])}[self._size]
        shape = self._random.choice(_ODD_SHAPES if self._random.random() < 0.06 else fitting)
        default = {"int64": "7", "float32": "0.5", "string": "'d'"}.get(dtype, "1")
        fitting = self._either(default, f"[{default}]") if self._size == 1 else f"[{default}] * {self._size}"
        default = self._either("None", fitting)
        if self._random.random() < 0.05:
            default = self._either("1.5", "'x'", "[1, 2]", "[]", "7", "None")
        fixed = f"io.FixedLenFeature({shape}, dtypes.{dtype}, {default})"
        missing = self._either(*[", allow_missing=True"] * 5, ", allow_missing=False", "")
        default = f", default_value={default}" if self._random.random() < (0.4 if steps else 0.05) else ""
        of_steps = f"io.FixedLenSequenceFeature({shape}, dtypes.{dtype}{missing}{default})"
        varying = f"io.VarLenFeature(dtypes.{dtype})"
        if self._random.random() < 0.03:
            return self._either(fixed, of_steps, "1", "None")
        if sequence:
            return self._either(of_steps, of_steps, varying)
        return self._either(fixed, fixed, varying, *([of_steps] if steps else []))

    def _fixed(self, context: dict[str, str], steps: dict[str, str]) -> str:
        """The features to request in a map, where only arrays can be compared."""
        shape = [] if self._size == 1 else [self._size]
        one = ", ".join(
            f"{name!r}: io.FixedLenFeature({shape}, dtypes.{dtype})" for name, dtype in context.items()
        )
        other = ", ".join(
            f"{name!r}: io.FixedLenSequenceFeature({shape}, dtypes.{dtype}, True)"
            for name, dtype in steps.items()
        )
        return f"{{{one}}}, {{{other}}}"
