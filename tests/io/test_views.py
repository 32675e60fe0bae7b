"""Texts of examples as views of their bytes: the values are those of copies."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.io.test_columns import random_example
from workbench.data import Dataset
from workbench.errors import InvalidArgumentError
from workbench.io import (
    FixedLenFeature,
    FixedLenSequenceFeature,
    PaddedValues,
    VarLenFeature,
    encode_example,
    encode_sequence_example,
    parse_example,
    parse_sequence_example,
    parse_single_example,
)


def flat(values: Any) -> list[Any]:
    array = values.values if isinstance(values, PaddedValues) else values
    return array.ravel().tolist()


@given(st.integers(0, 2**32), st.floats(0, 0.5), st.sampled_from([1, 9, 40]), st.sampled_from([0, 20_000]))
def test_views_are_what_copies_would_be(seed: int, strange: float, count: int, size: int) -> None:
    rng = np.random.default_rng(seed)
    batch = [
        random_example(rng, strange) + encode_example({"t": rng.bytes(size), "u": [b"u", rng.bytes(3)]})
        if rng.random() > strange
        else encode_example({"t": b"", "u": rng.bytes(2)})
        for _ in range(count)
    ]
    shared: dict[str, Any] = {"u": VarLenFeature(bytes), "n": VarLenFeature(np.int64)}
    copied = parse_example(
        batch, {"t": FixedLenFeature([], bytes, b"none"), "v": VarLenFeature(bytes), **shared}
    )
    viewed = parse_example(
        batch, {"t": FixedLenFeature([], memoryview, b"none"), "v": VarLenFeature(memoryview), **shared}
    )
    for name, values in viewed.items():
        expected = {"t": memoryview, "v": memoryview, "u": bytes, "n": int}[name]
        assert {type(value) for value in flat(values)} <= {expected}
        assert flat(values) == flat(copied[name])


def test_a_view_of_a_long_text_is_one_of_its_example() -> None:
    batch = [encode_example({"image": bytes([row]) * 20_000}) for row in range(16)]
    images = parse_example(np.array(batch, object), {"image": FixedLenFeature([], memoryview)})["image"]
    assert all(view.obj is example and view.readonly for view, example in zip(images, batch, strict=True))
    assert [bytes(view) for view in images] == [bytes([row]) * 20_000 for row in range(16)]


def test_one_example_and_steps_have_views_too() -> None:
    one = parse_single_example(encode_example({"x": b"abc"}), {"x": FixedLenFeature([], memoryview)})["x"]
    assert type(one) is memoryview
    assert one == b"abc"
    steps = encode_sequence_example({"c": b"context"}, {"s": [b"one", b"two"]})
    context, sequences, _ = parse_sequence_example(
        [steps, encode_sequence_example({"c": b""}, {"s": [b"three"]})],
        {"c": FixedLenFeature([], memoryview)},
        {"s": FixedLenSequenceFeature([], memoryview)},
    )
    assert flat(context["c"]) == [b"context", b""]
    assert flat(sequences["s"]) == [b"one", b"two", b"three", b""]
    assert {type(value) for value in [*flat(context["c"]), *flat(sequences["s"])]} == {memoryview}


def test_elements_of_datasets_hold_no_views() -> None:
    def parsed(batch: Any) -> Any:
        return parse_example(batch, {"x": FixedLenFeature([], memoryview)})

    examples = Dataset.from_tensor_slices([encode_example({"x": b"abc"})]).batch(1)
    with pytest.raises(TypeError, match="item 0 is memoryview"):
        list(examples.map(parsed))
    assert [x.tolist() for x in examples.map(lambda batch: len(parsed(batch)["x"][0]))] == [3]
    with pytest.raises(InvalidArgumentError, match="holds string, not int64"):
        parse_example([encode_example({"x": b"abc"})], {"x": FixedLenFeature([], np.int64)})
