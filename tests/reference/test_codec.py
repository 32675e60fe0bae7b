"""The interpreter itself: what it decodes, what it accepts, and what it refuses to accept."""

from __future__ import annotations

import json
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import workbench as wb
from tests.reference.compare import Comparison
from tests.reference.errors import accepts, in_time
from tests.reference.interpreter.array_functions import const, reduce_sum
from tests.reference.interpreter.clusters import Clusters, make_strategy
from tests.reference.interpreter.codec import array, decode, default_array, dtype_name
from tests.reference.interpreter.files import masked_crc, record_file, records_in
from tests.reference.interpreter.namespaces import strategy_names
from tests.reference.interpreter.programs import run_program
from tests.reference.observation import Observed
from tests.reference.outcomes import Mismatch, Missing, api, missing_behind

FLOATS = {"t": "float32", "s": [2], "v": [1.0, 2.0]}


def matches(expected: Any, actual: Any, comparison: Comparison | None = None) -> bool:
    try:
        (comparison or Comparison()).match(expected, actual)
    except Mismatch:
        return False
    return True


def test_a_float64_is_met_by_numpys_scalar_and_not_by_a_number_of_python() -> None:
    expected = {"t": "float64", "s": [], "v": 1.5}

    assert matches(expected, np.float64(1.5))
    assert not matches(expected, 1.5)


def test_arrays_decode_to_their_dtype_and_shape() -> None:
    decoded = array({"t": "int16", "s": [1, 2], "v": [[3, 4]]})

    assert decoded.dtype == np.int16
    assert decoded.tolist() == [[3, 4]]


def test_large_integers_decode_exactly() -> None:
    assert array({"t": "int64", "s": [], "v": 2**63 - 1}) == 2**63 - 1
    assert array({"t": "uint64", "s": [], "v": 2**64 - 1}) == 2**64 - 1


def test_non_finite_and_complex_numbers_decode() -> None:
    assert np.isnan(array({"t": "float32", "s": [1], "v": ["nan"]})).all()
    assert array({"t": "complex64", "s": [1], "v": [[1, "-inf"]]})[0].imag == -np.inf
    assert array({"t": "bfloat16", "s": [], "v": 1.5}).dtype == ml_dtypes.bfloat16


def test_strings_decode_to_bytes_objects() -> None:
    decoded = array({"t": "string", "s": [2], "v": ["é", {"b64": "AP8="}]})

    assert decoded.tolist() == ["é".encode(), b"\x00\xff"]
    assert dtype_name(decoded.dtype) == "string"


def test_an_empty_array_keeps_its_shape() -> None:
    assert array({"t": "string", "s": [0], "v": []}).shape == (0,)
    assert array({"t": "float32", "s": [0, 3], "v": []}).shape == (0, 3)


def test_structures_decode_with_their_kinds() -> None:
    assert decode({"tuple": [{"py": 1}, {"list": [{"pystr": "a"}]}]}) == (1, ["a"])
    assert decode({"dict": {"a": {"py": None}}}) == {"a": None}


def test_python_numbers_become_32_bits_wide_and_arrays_keep_their_dtype() -> None:
    assert const(1).dtype == np.int32
    assert const([1.0]).dtype == np.float32
    assert const(True).dtype == np.bool_
    assert const(1, "float64").dtype == np.float64
    assert default_array(np.arange(3)).dtype == np.int64
    assert default_array([np.float64(1)]).dtype == np.float64
    assert default_array("a").item() == b"a"
    assert reduce_sum(np.array([1, 2], np.int32)).dtype == np.int32


@pytest.mark.parametrize(
    ("expected", "actual"),
    [
        (FLOATS, np.array([1.0, 2.000001], np.float32)),
        ({"t": "string", "s": [], "v": "a"}, b"a"),
        ({"t": "float32", "s": [1], "v": ["nan"]}, np.array([np.nan], np.float32)),
        ({"t": "float16", "s": [], "v": 1.0}, np.float16(1.005)),
        ({"py": 3}, 3),
        ({"py": True}, np.True_),
        ({"py": "a"}, b"a"),
        ({"tuple": [{"py": 1}]}, (1,)),
        ({"dtype": "float32"}, np.dtype(np.float32)),
        (None, None),
        ([1, [2]], (1, [2])),
        ({"worker": {"1": "b:2"}}, {"worker": {1: "b:2"}}),
        ([{"error": {"kind": "ValueError"}}], [ValueError()]),
    ],
)
def test_equal_values_match(expected: Any, actual: Any) -> None:
    assert matches(expected, actual)


@pytest.mark.parametrize(
    ("expected", "actual"),
    [
        (FLOATS, np.array([1.0, 2.001], np.float32)),
        (FLOATS, np.array([1.0, 2.0])),
        (FLOATS, np.array([[1.0, 2.0]], np.float32)),
        ({"t": "float32", "s": [], "v": 1.0}, 1.0),
        ({"t": "float64", "s": [], "v": 1.0}, np.float64(1 + 1e-8)),
        ({"t": "float32", "s": [], "v": 0.0}, np.float32(1e-6)),
        ({"t": "int32", "s": [], "v": 1}, np.int64(1)),
        ({"py": 1}, True),
        ({"py": 1}, np.array(1)),
        ({"py": 1}, 1.0),
        ({"tuple": [{"py": 1}]}, [1]),
        ({"list": []}, ()),
        (None, 0),
        (True, 1),
        ([1], [1, 2]),
        ({"worker": []}, {"worker": [], "ps": []}),
        ([{"error": {"kind": "ValueError"}}], [TypeError()]),
        ([{"error": {"kind": "ValueError"}}], [None]),
    ],
)
def test_different_values_do_not_match(expected: Any, actual: Any) -> None:
    assert not matches(expected, actual)


def test_only_a_mean_of_integers_may_have_another_floating_dtype() -> None:
    expected = {"t": "float64", "s": [], "v": 1.5}

    assert not matches(expected, np.float32(1.5))
    assert matches(expected, np.float32(1.5), Comparison(any_float=True))
    assert not matches(expected, np.int32(1), Comparison(any_float=True))


def test_a_plain_value_is_met_by_equal_components() -> None:
    one, two = np.float32(1), np.float32(2)
    per_replica = api("distribute.PerReplica")
    expected = {"t": "float32", "s": [], "v": 1.0}

    assert matches(expected, per_replica((one, one)))
    assert not matches(expected, per_replica((one, two)))
    assert matches({"py": 7}, per_replica((7, 7)))
    assert matches({"dict": {"a": {"py": 7}}}, {"a": per_replica((7, 7))})
    assert not matches({"py": 7}, per_replica((7, 8)))


def test_per_replica_values_are_compared_component_by_component() -> None:
    per_replica = api("distribute.PerReplica")
    expected = {"per_replica": [{"py": 1}, {"py": 2}]}

    assert matches(expected, per_replica((1, 2)))
    assert not matches(expected, per_replica((2, 1)))
    assert not matches(expected, per_replica((1, 2, 3)))
    assert not matches(expected, 1)
    nested = {"per_replica": [{"list": [{"py": 1}]}, {"list": [{"py": 2}]}]}
    assert matches(nested, [per_replica((1, 2))])


def test_sparse_rows_are_compared_dense() -> None:
    def rows(values: list[float], indices: list[int]) -> dict[str, Any]:
        parts = {
            "values": {"t": "float32", "s": [len(values), 1], "v": [[value] for value in values]},
            "indices": {"t": "int64", "s": [len(indices)], "v": indices},
            "dense_shape": {"t": "int64", "s": [2], "v": [3, 1]},
        }
        return {"indexed_slices": parts}

    assert matches(rows([1, 2], [0, 0]), decode(rows([3], [0])))
    assert matches(rows([1, 2], [0, 2]), np.array([[1], [0], [2]], np.float32))
    assert not matches(rows([1, 2], [0, 2]), decode(rows([1, 2], [0, 1])))


def test_an_error_is_accepted_by_any_class_that_it_is() -> None:
    class Special(KeyError):
        pass

    assert accepts({"kind": "LookupError"}, Special("x"))
    assert accepts({"kind": "TypeError", "also_accept": ["KeyError"]}, Special("x"))
    assert not accepts({"kind": "ValueError"}, Special("x"))


def test_a_callers_own_message_must_appear() -> None:
    assert accepts({"kind": "ValueError", "message_contains": "mine"}, ValueError("this is mine"))
    assert not accepts({"kind": "ValueError", "message_contains": "mine"}, ValueError("other"))


def test_what_no_rule_compares_is_an_error() -> None:
    with pytest.raises(ValueError, match="no rule to compare"):
        Comparison().match({"t": "float32"}, 1.0)


def test_programs_give_their_python_numbers_to_the_library_as_they_are(clusters: Clusters) -> None:
    names = strategy_names(make_strategy(clusters, None, 2))
    assert names["Variable"]() is wb.Variable


@pytest.mark.parametrize(
    ("wanted", "phase", "delivered", "accepted"),
    [
        ("iterate", "iterate", [1], True),
        ("iterate", "build", [], True),
        ("iterate", "build", [1], False),
        ("build", "iterate", [], False),
        ("build", "distribute", [], True),
    ],
)
def test_an_error_must_come_in_time(wanted: str, phase: str, delivered: list[int], accepted: bool) -> None:
    assert in_time({"kind": "ValueError", "phase": wanted}, phase, delivered) == accepted


def test_elements_before_an_error_are_compared() -> None:
    expected = {"elements": [{"py": 1}], "error": {"kind": "ValueError", "phase": "iterate"}}
    observed = Observed({"elements": [1]}, phase="iterate", error=ValueError())

    observed.check(expected)
    observed.fields["elements"] = []
    with pytest.raises(Mismatch, match="1 items"):
        observed.check(expected)


def test_an_unexpected_error_is_a_mismatch() -> None:
    with pytest.raises(Mismatch, match="unexpected ZeroDivisionError"):
        Observed(error=ZeroDivisionError()).check({"result": None})
    with pytest.raises(Mismatch, match="expected the error"):
        Observed({"result": 1}).check({"error": {"kind": "ValueError"}})


def test_a_name_that_does_not_exist_is_missing() -> None:
    with pytest.raises(Missing, match=r"wb\.data\.NoSuchDataset"):
        api("data.NoSuchDataset")
    assert api("nonsense", "errors").__name__ == "workbench.errors"


def test_asking_a_workbench_object_for_an_unknown_attribute_is_missing_too() -> None:
    spec = api("DeviceSpec")()
    with pytest.raises(AttributeError) as caught:
        spec.no_such_method()

    missing = missing_behind(caught.value)
    assert missing is not None
    assert missing.name == "DeviceSpec.no_such_method"


def test_other_attribute_errors_are_not() -> None:
    with pytest.raises(AttributeError) as caught:
        [].no_such_method()  # type: ignore[attr-defined]

    assert missing_behind(caught.value) is None


def test_a_program_looks_up_only_what_it_mentions() -> None:
    def absent() -> Any:
        raise Missing("wb.absent")

    names = {"one": lambda: 1, "absent": absent}
    assert run_program(["def f():", "    return one", "result = f()"], names) == 1
    with pytest.raises(Missing):
        run_program("result = [absent for _ in ()]", names)


def test_record_files_are_framed_as_documented() -> None:
    assert masked_crc(b"hello") == 421273531
    assert records_in(record_file([b"a", b""])) == [b"a", b""]


def test_the_cases_have_ids_of_their_own(request: pytest.FixtureRequest) -> None:
    folder = request.path.parent / "vectors"
    ids = [
        case["id"] for path in sorted(folder.glob("*.json")) for case in json.loads(path.read_text())["cases"]
    ]

    assert len(ids) == len(set(ids)) == 1574
