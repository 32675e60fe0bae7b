"""Examples as bytes: what TensorFlow 2.21 writes, what comes back, and bytes that are damaged."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import workbench as wb
from workbench.errors import InvalidArgumentError
from workbench.io.wire import delimited, unpacked_varints, varint

# tf.train.Example with a: [1, -2], f: [1.5], n: a feature without a kind
FROM_TENSORFLOW = bytes.fromhex(
    "0a2c0a0d0a0166120812060a040000c03f0a050a016e12000a140a0161120f1a0d0a0b01feffffffffffffffff01"
)
FEATURES = st.dictionaries(
    st.text(max_size=5),
    st.one_of(
        st.lists(st.integers(-(2**63), 2**63 - 1)).map(lambda v: {"int64": v}),
        st.lists(st.floats(width=32, allow_nan=False)).map(lambda v: {"float": v}),
        st.lists(st.binary(max_size=9)).map(lambda v: {"bytes": v}),
    ),
    max_size=4,
)


def test_an_example_of_tensorflow_is_read() -> None:
    read = wb.io.decode_example(FROM_TENSORFLOW)
    assert {name: values.tolist() for name, values in read.items()} == {"f": [1.5], "a": [1, -2]}
    assert (read["f"].dtype, read["a"].dtype) == (np.float32, np.int64)


@given(FEATURES)
def test_features_come_back(features: dict[str, Any]) -> None:
    read = wb.io.decode_example(wb.io.encode_example(features))
    plain = {name: next(iter(feature.values())) for name, feature in features.items()}
    assert {name: values.tolist() for name, values in read.items()} == plain


def test_kinds_follow_from_values() -> None:
    image = np.arange(6, dtype=np.uint8).reshape(2, 3)
    given = {"image": image, "x": 1.5, "name": "é", "raw": b"a\0", "many": [b"a\0", "b"], "flag": True}
    read = wb.io.decode_example(wb.io.encode_example(given))
    assert read["image"].tolist() == [0, 1, 2, 3, 4, 5]
    assert read["x"].tolist() == [1.5]
    assert read["name"].tolist() == ["é".encode()]
    assert (read["raw"].tolist(), read["many"].tolist()) == ([b"a\0"], [b"a\0", b"b"])
    assert read["flag"].tolist() == [1]


@pytest.mark.parametrize(
    ("values", "told"),
    [
        ([], "name its kind"),
        ({"int32": [1]}, "kind 'int32' is none of"),
        (1j, "neither numbers nor text"),
        ({"bytes": [3]}, "3 is not text"),
    ],
)
def test_values_without_a_kind_are_refused(values: Any, told: str) -> None:
    with pytest.raises(TypeError, match=f"feature 'x'.*{told}"):
        wb.io.encode_example({"x": values})


def test_sequences_come_back() -> None:
    data = wb.io.encode_sequence_example({"id": 7}, {"words": [["a", "b"], ["c"]], "empty": [], "x": [[0.5]]})
    context, lists = wb.io.decode_sequence_example(data)
    assert context["id"].tolist() == [7]
    assert [step.tolist() for step in lists["words"]] == [[b"a", b"b"], [b"c"]]
    assert lists["empty"] == []
    assert lists["x"][0].tolist() == [0.5]


def test_numbers_that_are_not_packed_are_read() -> None:
    feature = b"\x1a\x04\x08\x05\x08\x07"
    entry = b"\x0a\x01a\x12" + bytes([len(feature)]) + feature
    data = b"\x0a" + bytes([len(entry) + 2]) + b"\x0a" + bytes([len(entry)]) + entry
    assert wb.io.decode_example(data)["a"].tolist() == [5, 7]


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        (delimited(2, delimited(3, b"\x08\x05") + delimited(3, b"\x0a\x02\x07\x08")), [5, 7, 8]),
        (delimited(2, delimited(3, b"\x08\x05")) + delimited(2, delimited(3, b"\x08\x07")), [5, 7]),
        (delimited(2, delimited(1, b"\x0a\x01x") + delimited(3, b"\x08\x07")), [7]),
        (delimited(2, delimited(3, b"\x08\x05") + delimited(1, b"\x0a\x01x")), [b"x"]),
        (delimited(2, delimited(3, b"")), []),
    ],
    ids=["two lists", "two values", "text before", "text behind", "empty"],
)
def test_parts_of_a_feature_are_joined_as_protocol_buffers_join_them(
    entry: bytes, expected: list[Any]
) -> None:
    data = delimited(1, delimited(1, delimited(1, b"a") + entry))
    assert wb.io.decode_example(data)["a"].tolist() == expected
    dtype = np.int64 if not expected or expected[-1] != b"x" else "string"
    parsed = wb.io.parse_example([data] * 9, {"a": wb.io.VarLenFeature(dtype)})["a"]
    assert isinstance(parsed, wb.io.PaddedValues)
    assert parsed.values.tolist() == [expected] * 9


_GROUP = (
    # Field number 9: a whole number, and a group of number 10 with a text.
    b"\x4b\x50\x07\x53\x0a\x01z\x54\x4c"
)


def test_groups_are_passed_over_at_every_depth() -> None:
    feature = _GROUP + delimited(3, delimited(1, b"\x05\x06") + _GROUP)
    data = _GROUP + delimited(1, delimited(1, delimited(1, b"a") + _GROUP + delimited(2, feature)) + _GROUP)
    assert {name: values.tolist() for name, values in wb.io.decode_example(data).items()} == {"a": [5, 6]}
    parsed = wb.io.parse_example([data] * 3, {"a": wb.io.FixedLenFeature([2], "int64")})["a"]
    assert np.asarray(parsed).tolist() == [[5, 6]] * 3


@pytest.mark.parametrize(
    ("tail", "told"),
    [
        (b"\x4b", "group 9 has no end"),
        (b"\x4b\x54", "group 10 ends, and has not begun"),
        (b"\x4c", "group 9 ends, and has not begun"),
        (b"\x00\x05", "no field has number 0"),
        (b"\x02\x00", "no field has number 0"),
        (b"\x4e", "wire type 6 is unknown"),
    ],
)
def test_what_is_no_field_is_damage(tail: bytes, told: str) -> None:
    data = wb.io.encode_example({"a": [1]}) + tail
    for parse in (
        wb.io.decode_example,
        lambda x: wb.io.parse_example([x], {"a": wb.io.VarLenFeature("int64")}),
    ):
        with pytest.raises(InvalidArgumentError, match=told):
            parse(data)


@given(st.lists(st.integers(-(2**63), 2**63 - 1)))
def test_packed_numbers_of_any_size_are_read(numbers: list[int]) -> None:
    assert unpacked_varints(b"".join(map(varint, numbers))).tolist() == numbers


@given(FEATURES, st.data())
def test_damaged_examples_are_refused_or_decoded(features: dict[str, Any], data: st.DataObject) -> None:
    encoded = bytearray(wb.io.encode_example(features))
    for _ in range(data.draw(st.integers(1, 3))):
        encoded[data.draw(st.integers(0, len(encoded) - 1))] = data.draw(st.integers(0, 255))
    cut = bytes(encoded[: data.draw(st.integers(0, len(encoded)))])
    for decode in (wb.io.decode_example, wb.io.decode_sequence_example):
        try:
            decode(cut)
        except InvalidArgumentError as error:
            assert "are not an example" in str(error)  # noqa: PT017 - either outcome is right
