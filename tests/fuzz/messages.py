"""Serialized examples as targets: batches are compared with what is read of each example alone."""

from __future__ import annotations

import random
from typing import Any, ClassVar

import numpy as np

from tests.fuzz.targets import Target, WrongData
from tests.io.test_columns import NAMES, random_example, values_by_row
from workbench.errors import InvalidArgumentError
from workbench.io import (
    FixedLenSequenceFeature,
    VarLenFeature,
    decode_example,
    decode_sequence_example,
    encode_sequence_example,
    parse_sequence_example,
    parse_tensor,
    serialize_tensor,
)


class Examples(Target):
    """A damaged example among good ones."""

    name = "examples"

    def good_inputs(self) -> list[bytes]:
        rng = np.random.default_rng(3)
        self.others = [random_example(rng, 0.0) for _ in range(11)]
        self.values = values_by_row(self.others)
        return [random_example(rng, strange) for strange in (0.0, 0.0, 0.0, 0.3) for _ in range(20)]

    def check(self, data: bytes) -> None:
        batch = [*self.others[:5], data, *self.others[5:]]
        try:
            alone = {name: values.tolist() for name, values in decode_example(data).items() if name in NAMES}
        except InvalidArgumentError:
            alone = None
        try:
            found = values_by_row(batch)
        except InvalidArgumentError as error:
            if alone is not None or "example 5" not in str(error):
                raise WrongData(f"a good example is refused, or another one: {error}") from error
            raise
        # Features that are not requested are not examined, so an example may be good enough.
        if repr(found[:5] + found[6:]) != repr(self.values):
            raise WrongData("damage in one example changes others")
        if alone is not None and repr(sorted(found[5].items())) != repr(sorted(alone.items())):
            raise WrongData(f"{found[5]!r:.300} is read where {alone!r:.300} stands")


class SequenceExamples(Target):
    """A damaged sequence example behind a good one."""

    name = "sequence-examples"
    wanted: ClassVar[dict[str, Any]] = {
        "x": FixedLenSequenceFeature([2], np.float32, allow_missing=True),
        "v": VarLenFeature(np.int64),
        "t": VarLenFeature("string"),
    }

    def good_inputs(self) -> list[bytes]:
        rng = random.Random(5)
        steps = [
            {
                "x": [[rng.random(), rng.random()] for _ in range(count)],
                "v": [
                    [rng.randrange(1 << rng.randrange(63)) for _ in range(rng.randrange(1, 5))]
                    for _ in range(count)
                ],
                "t": [["text", "more"]] * count,
            }
            for count in (0, 1, 3, 20)
        ]
        return [encode_sequence_example({"c": 1, "n": "name"}, each) for each in steps]

    def check(self, data: bytes) -> None:
        context = {"c": VarLenFeature(np.int64)}
        parsed, sequences, lengths = parse_sequence_example([self.inputs[1], data], context, self.wanted)
        whole, lists = decode_sequence_example(data)
        if "c" in whole and parsed["c"].lengths[1] != len(whole["c"]):
            raise WrongData("the context has another number of values")
        if lengths["x"][1] != len(lists.get("x", [])):
            raise WrongData("the sequence has another number of steps")
        for step, values in enumerate(lists.get("v", [])):
            if sequences["v"].values[1, step, : len(values)].tolist() != values.tolist():
                raise WrongData(f"step {step} has other values")


class Tensors(Target):
    """Serialized tensors."""

    name = "tensors"

    def good_inputs(self) -> list[bytes]:
        arrays = [
            np.arange(12).reshape(3, 4),
            np.float32(3),
            np.array([b"a", b"bc"], object),
            np.zeros((0, 3)),
        ]
        return [serialize_tensor(array) for array in arrays]

    def check(self, data: bytes) -> None:
        for dtype in (np.int64, np.float32, "string", np.float64):
            try:
                parse_tensor(data, dtype)
            except InvalidArgumentError:
                continue
