"""Sizes of results that all elements share, learnt from one of them and from made-up ones like it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import workbench as wb
from workbench.data import Dataset, TensorSpec

_PIXELS = [np.arange(784, dtype=np.int64).astype(np.uint8).tobytes(), bytes(784)]
_TEXTS = Dataset.from_tensor_slices(_PIXELS)
_WITH_HEADERS = Dataset.from_tensor_slices([bytes(16) + pixels for pixels in _PIXELS])
_ROWS = [np.zeros(784), np.zeros(784)]
_OF_ANY_LENGTH = Dataset.from_generator(lambda: iter(_ROWS), output_signature=TensorSpec((None,), np.float64))
_OF_ANY_RANK = Dataset.from_generator(lambda: iter(_ROWS), output_types="float64")
_TABLES = Dataset.from_generator(
    lambda: iter([np.zeros((4, 3))]), output_signature=TensorSpec((None, None), np.float64)
)
_BY_TEXT = {pixels: np.zeros(3) for pixels in _PIXELS}


def _image(text: bytes) -> Any:
    return np.frombuffer(text, np.uint8).reshape(28, 28)


@pytest.mark.parametrize(
    ("dataset", "fn", "shape"),
    [
        (_TEXTS, _image, (28, 28)),
        (_TEXTS, lambda text: _image(text).astype(np.float32) / 255, (28, 28)),
        (_TEXTS, lambda text: np.frombuffer(text, np.float32).reshape(14, 14), (14, 14)),
        (_TEXTS, lambda text: np.frombuffer(text, np.uint8).reshape(-1, 28), (None, 28)),
        (_WITH_HEADERS, lambda text: np.frombuffer(text, np.uint8, offset=16).reshape(28, 28), (28, 28)),
        (_WITH_HEADERS, lambda text: np.frombuffer(text, np.uint8, offset=16).reshape(-1, 28), (None, 28)),
        (_WITH_HEADERS, lambda text: np.frombuffer(text, np.float32, offset=16).reshape(14, -1), (14, None)),
        (_OF_ANY_LENGTH, lambda row: row.reshape(28, 28), (28, 28)),
        (_OF_ANY_LENGTH, lambda row: row.reshape(28, -1), (28, None)),
        (_OF_ANY_RANK, lambda row: row.reshape(28, 28), (28, 28)),
        (_TABLES, lambda table: table.reshape(table.shape[0], 3), (None, 3)),
        (_TEXTS, lambda text: _BY_TEXT[text], (None,)),  # it accepts no other content
    ],
)
def test_a_size_is_known_where_other_contents_have_it_and_other_sizes_are_refused(
    dataset: Dataset, fn: Any, shape: Any
) -> None:
    mapped = dataset.map(fn)
    assert mapped.element_spec.shape == shape
    assert mapped.batch(2, drop_remainder=True).element_spec.shape == (2, *shape)
    assert dataset.flat_map(lambda x: Dataset.from_tensors(fn(x))).element_spec.shape == shape
    beside = Dataset.zip((dataset, Dataset.range(2))).map(lambda x, number: (fn(x), number))
    assert beside.element_spec[0].shape == shape


@pytest.mark.parametrize(
    "fn",
    [
        lambda text: np.array(text.split(b","), np.float32),
        lambda text: np.array([float(word) for word in text.decode().split(",")], np.float32),
        lambda text: np.array([float(word) for word in text.replace(b",", b" ").split()], np.float32),
    ],
)
def test_texts_of_several_words_have_no_known_number_of_them(fn: Any) -> None:
    texts = Dataset.from_tensor_slices([b"1,2", b"3,4,5"])
    assert texts.map(fn).element_spec == TensorSpec((None,), np.float32)


_FEATURES = {
    "pixels": wb.io.FixedLenFeature((), "string"),
    "caption": wb.io.FixedLenFeature((), "string"),
    "label": wb.io.FixedLenFeature((), "int64"),
    "words": wb.io.VarLenFeature("string"),
    "boxes": wb.io.FixedLenSequenceFeature((4,), "float32", allow_missing=True),
}


def test_a_function_that_parses_and_reshapes_tells_the_sizes_that_no_example_can_change() -> None:
    record = {"caption": b"cat", "label": 1, "words": [b"a", b"bc"], "boxes": [0.0, 1.0, 2.0, 3.0]}
    records = Dataset.from_tensor_slices(
        [wb.io.encode_example({"pixels": pixels, **record}) for pixels in _PIXELS]
    )

    def parsed(text: bytes) -> Any:
        found = wb.io.parse_single_example(text, _FEATURES)
        image, caption = _image(found["pixels"]), np.frombuffer(found["caption"], np.uint8)
        return image, found["label"], caption, found["words"], found["boxes"]

    assert records.map(parsed).element_spec == (
        TensorSpec((28, 28), np.uint8),
        TensorSpec((), np.int64),
        TensorSpec((None,), np.uint8),
        TensorSpec((None,), "string"),
        TensorSpec((None, 4), np.float32),
    )
    assert [image.shape for image, *_ in records.map(parsed)] == [(28, 28)] * 2
