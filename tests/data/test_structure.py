"""What values become when they enter a dataset."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest

from workbench.data import Dataset, TensorSpec
from workbench.data.spec import relax
from workbench.data.structure import LEAF, convert, flatten, flatten_result
from workbench.errors import InvalidArgumentError


class Point(NamedTuple):
    x: object
    y: object


@pytest.mark.parametrize(
    ("value", "dtype"),
    [
        (True, "bool"),
        (3, "int32"),
        (1 << 40, "int64"),
        (2.5, "float32"),
        (1j, "complex128"),
        (np.uint8(3), "uint8"),
    ],
)
def test_python_numbers_get_the_dtypes_of_the_reference(value: object, dtype: str) -> None:
    assert convert(value).dtype == np.dtype(dtype)


@pytest.mark.parametrize("kind", [">i4", ">i8", ">f4", "<i4", "<f8"])
def test_arrays_get_the_byte_order_of_this_machine(kind: str) -> None:
    array = np.array([1, 2, 1], kind)
    datasets = [
        Dataset.from_tensor_slices(array),
        Dataset.from_tensor_slices((array, array)).map(lambda x, _: x),
        Dataset.range(3).map(lambda x: array[x]),
        Dataset.from_tensors(array),
    ]
    for dataset in datasets:
        assert dataset.element_spec.dtype.isnative
        assert all(element.dtype.isnative for element in dataset)
    if np.dtype(kind).kind == "i":
        assert [int(x) for x in datasets[0].unique()] == [1, 2]


@pytest.mark.parametrize(
    ("items", "dtype", "expected"),
    [
        ([1, 2], "int32", [1, 2]),
        ([1.5, 2], "float32", [1.5, 2.0]),
        ([np.bool_(True), np.bool_(False)], "bool", [True, False]),
        ([2**53 + 1, 0], "int64", [2**53 + 1, 0]),
        (["a", b"b"], "string", [b"a", b"b"]),
    ],
)
def test_a_generator_may_yield_arrays_of_objects(items: Any, dtype: str, expected: Any) -> None:
    elements = Dataset.from_generator(lambda: iter([np.array(items, object)]), dtype)
    assert [element.tolist() for element in elements] == [expected]
    with pytest.raises(InvalidArgumentError, match=r"does not fit|may hold only text"):
        list(Dataset.from_generator(lambda: iter([np.array([1.5, None], object)]), "int32"))


def test_text_and_bytes_become_bytes() -> None:
    assert convert("ä") == "ä".encode()
    assert convert(b"a\0") == b"a\0"
    assert convert(np.array(["a", "bc"])).tolist() == [b"a", b"bc"]
    assert convert(np.str_("x")) == b"x"


@pytest.mark.parametrize(
    "text", [np.array("a"), np.array(b"a"), np.array("a", object), np.array(b"a", object)]
)
def test_text_in_an_array_without_dimensions_becomes_bytes(text: Any) -> None:
    signature = TensorSpec((), "string")
    for dataset in (
        Dataset.from_tensors(text),
        Dataset.range(1).map(lambda x: text),
        Dataset.from_generator(lambda: iter([text]), output_signature=signature),
    ):
        assert repr(list(dataset)) == "[b'a']"  # an array would equal it, too
        assert repr([batch.tolist() for batch in dataset.batch(1)]) == "[[b'a']]"


def test_lists_are_one_array_and_keep_the_dtype_of_their_arrays() -> None:
    assert convert([1, 2]).dtype == np.int32
    assert convert([1.0, 2.0]).dtype == np.float32
    assert convert([np.float64(1.0), np.float64(2.0)]).dtype == np.float64
    assert convert([np.int64(1)]).dtype == np.int64
    assert convert([1 << 40]).dtype == np.int64
    assert convert(["a", b"b"]).tolist() == [b"a", b"b"]


def test_a_list_of_arrays_of_one_text_each_is_an_array_of_texts() -> None:
    (texts,), _ = flatten([np.array("a"), np.array(b"b\xff")])
    assert texts.tolist() == [b"a", b"b\xff"]
    (mixed,), _ = flatten(["\u00e9", b"\xff"])
    assert mixed.tolist() == ["\u00e9".encode(), b"\xff"]


def test_a_ragged_list_is_refused_with_advice() -> None:
    with pytest.raises(InvalidArgumentError, match="tuple"):
        convert([[1, 2], [3]])


@pytest.mark.parametrize("value", [None, object(), {1, 2}])
def test_what_is_no_array_is_refused_by_name(value: object) -> None:
    with pytest.raises(TypeError, match=type(value).__name__):
        convert(value)


def test_object_arrays_hold_text_only() -> None:
    with pytest.raises(TypeError, match="item 1 is int"):
        convert(np.array(["a", 2], object))


def test_flatten_and_pack_keep_nested_structures() -> None:
    value = {"b": (1, Point(2, 3)), "a": 4.0}
    leaves, structure = flatten(value)
    packed = structure.pack(leaves)
    assert list(packed) == ["b", "a"]
    assert isinstance(packed["b"][1], Point)
    assert packed["b"][1].y == 3


def test_a_list_returned_by_a_function_is_a_tuple_only_at_the_top() -> None:
    leaves, structure = flatten_result([1, 2])
    assert structure.pack(leaves) == (1, 2)
    leaves, structure = flatten_result({"a": [1, 2]})
    assert structure.pack(leaves)["a"].tolist() == [1, 2]


def test_a_single_array_is_its_own_leaf() -> None:
    array = np.zeros(3)
    leaves, structure = flatten(array)
    assert leaves[0] is array
    assert structure is LEAF


def test_specs_relax_to_unknown_dimensions_and_ranks() -> None:
    two, three = TensorSpec((2, 4), np.int32), TensorSpec((3, 4), np.int32)
    assert relax((two,), (three,)) == (TensorSpec((None, 4), np.int32),)
    assert two.relaxed(TensorSpec((2,), np.int32)).shape is None
    with pytest.raises(TypeError, match="dtypes"):
        relax(two, TensorSpec((2, 4), np.int64))
    with pytest.raises(TypeError, match="structures"):
        relax(two, (two,))


def test_a_spec_tells_whether_a_value_fits() -> None:
    spec = TensorSpec((None, 2), np.float32)
    assert spec.accepts(np.zeros((5, 2), np.float32))
    assert not spec.accepts(np.zeros((5, 3), np.float32))
    assert not spec.accepts(np.zeros((5, 2)))
    assert TensorSpec(None, "string").accepts(b"x")
    assert str(TensorSpec((None,), "string")) == "TensorSpec(shape=(None,), dtype=string)"


def test_torch_like_arrays_come_in_through_their_array_view() -> None:
    class Foreign:
        def __array__(self, dtype: object = None, copy: object = None) -> np.ndarray:
            return np.arange(3)

    assert [int(x) for x in Dataset.from_tensor_slices(Foreign())] == [0, 1, 2]


def test_elements_keep_the_order_of_their_keys_whatever_was_seen_before() -> None:
    first = Dataset.from_tensors({"b": 1, "a": 2}).map(lambda x: ({"y": x["b"], "x": x["a"]},))
    second = Dataset.from_tensors({"a": 2, "b": 1}).map(lambda x: ({"x": x["a"], "y": x["b"]},))

    assert [list(next(iter(dataset))[0]) for dataset in (first, second)] == [["y", "x"], ["x", "y"]]
    assert [list(dataset.upstream().first()) for dataset in (first, second)] == [["b", "a"], ["a", "b"]]
    assert next(iter(second.concatenate(first)))[0]["x"] == 2
