"""Arrays as bytes: what TensorFlow 2.21 writes and reads, and bytes that are damaged."""

from __future__ import annotations

import math
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

import workbench as wb
from workbench.errors import InvalidArgumentError
from workbench.io.wire import delimited

FROM_TENSORFLOW = {
    "08011206120012020803": np.zeros((0, 3), np.float32),
    "081312041202080122020000": np.zeros(1, np.float16),
    "0806120412020801220100": np.zeros(1, np.int8),
    "081112041202080122020000": np.zeros(1, np.uint16),
    "0816120412020801220400000000": np.zeros(1, np.uint32),
    "08171204120208012208" + "00" * 8: np.zeros(1, np.uint64),
    "08121204120208012210" + "00" * 16: np.zeros(1, np.complex128),
}


@pytest.mark.parametrize(("text", "array"), list(FROM_TENSORFLOW.items()))
def test_bytes_are_those_of_tensorflow(text: str, array: np.ndarray) -> None:
    assert wb.io.serialize_tensor(array).hex() == text
    read = wb.io.parse_tensor(bytes.fromhex(text), array.dtype)
    assert read.dtype == array.dtype
    np.testing.assert_array_equal(read, array)


def test_texts_are_written_as_tensorflow_does_and_read_in_both_of_its_ways() -> None:
    assert wb.io.serialize_tensor("hi").hex() == "0807120042026869"
    assert wb.io.parse_tensor(bytes.fromhex("0807120042026869"), "string") == b"hi"
    assert wb.io.parse_tensor(bytes.fromhex("080712002203026869"), "string") == b"hi"
    texts = [b"a", b"bcd", b"x" * 200]
    assert wb.io.parse_tensor(wb.io.serialize_tensor(texts), "string").tolist() == texts


def test_lists_of_numbers_are_read_as_make_tensor_proto_writes_them() -> None:
    sevens = bytes.fromhex("0803120412020803") + b"\x38\x07"  # int_val, the last one repeated
    assert wb.io.parse_tensor(sevens, np.int32).tolist() == [7, 7, 7]
    floats = bytes.fromhex("0801120412020802") + b"\x2a\x08" + np.array([1.5, 2], "<f4").tobytes()
    assert wb.io.parse_tensor(floats, np.float32).tolist() == [1.5, 2]
    halves = bytes.fromhex("0813120412020801") + b"\x6a\x02\x80\x78"
    assert wb.io.parse_tensor(halves, np.float16).tolist() == [1]


@given(
    arrays.arrays(
        st.sampled_from([np.int8, np.uint16, np.int64, np.float32, np.bool_, np.complex64, ml_dtypes.bfloat16]),
        arrays.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4),
        elements=st.just(1),
    )
)  # fmt: skip
def test_arrays_come_back(array: Any) -> None:
    read = wb.io.parse_tensor(wb.io.serialize_tensor(array), array.dtype)
    assert (read.dtype, read.shape) == (array.dtype, array.shape)
    np.testing.assert_array_equal(read, array)


def test_numbers_of_python_have_the_dtypes_of_the_reference() -> None:
    assert wb.io.parse_tensor(wb.io.serialize_tensor([1, 2]), np.int32).tolist() == [1, 2]
    assert wb.io.parse_tensor(wb.io.serialize_tensor(1.5), np.float32) == 1.5
    assert wb.io.parse_tensor(wb.io.serialize_tensor(1 << 40), np.int64) == 1 << 40
    with pytest.raises(TypeError, match="no encoding"):
        wb.io.serialize_tensor(np.datetime64("2020-01-01"))
    with pytest.raises(TypeError, match="holds int"):
        wb.io.serialize_tensor(np.array([1], object))


@pytest.mark.parametrize(
    ("data", "dtype", "told"),
    [
        (wb.io.serialize_tensor(np.float32(1)), np.float64, "it holds float32, not float64"),
        (b"garbage", np.float32, "not a tensor of float32"),
        (b"", np.float32, "it holds number 0"),
        (bytes.fromhex("080112002203616263"), np.float32, "takes 4 bytes, it has 3"),
        (bytes.fromhex("08011204120208052204") + b"abcd", np.float32, "takes 20 bytes, it has 4"),
        (b"\x08\x01\x12\x08\x12\x06\x08\x80\x80\x80\x80\x7f", np.float32, "claims 34,091,302,912 elements"),
        (b"\x08\x01\x12\x0d\x12\x0b\x08" + b"\xff" * 9 + b"\x01", np.float32, "a dimension has size -1"),
    ],
)
def test_bytes_that_are_no_such_tensor_are_refused(data: bytes, dtype: Any, told: str) -> None:
    with pytest.raises(InvalidArgumentError, match=told):
        wb.io.parse_tensor(data, dtype)


@given(position=st.integers(0, 40), value=st.integers(0, 255), cut=st.integers(0, 60), text=st.booleans())
def test_damage_gives_an_error_or_an_array_of_the_dtype(
    position: int, value: int, cut: int, text: bool
) -> None:
    data = bytearray(
        wb.io.serialize_tensor([b"ab", b"c"] if text else np.arange(6, dtype=np.float32).reshape(2, 3))
    )
    data[position % len(data)] = value
    try:
        read = wb.io.parse_tensor(bytes(data[: cut or None]), "string" if text else np.float32)
    except InvalidArgumentError:
        return
    if not isinstance(read, bytes):
        assert read.dtype == (object if text else np.float32)
        assert read.size == math.prod(read.shape) <= 1 << 27


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (delimited(2, delimited(2, delimited(1, b"3"))), "size that is not a number"),
        (b"\x08\x07" + b"\x40\x05", "stored as a number"),
    ],
)
def test_fields_of_another_wire_type_are_damage(data: bytes, told: str) -> None:
    with pytest.raises(InvalidArgumentError, match=told):
        wb.io.parse_tensor(data, "string")
