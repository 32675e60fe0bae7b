"""DeviceSpec by the rules of the reference; tests/reference runs its recorded cases as well."""

from __future__ import annotations

import copy
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.device_spec import DeviceSpec

FULL = "/job:worker/replica:0/task:1/device:CPU:0"


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("", ""),
        (FULL, FULL),
        ("/device:CPU:0/task:1/job:worker/replica:0", FULL),
        ("/job:worker/task:1/device:cpu:0", "/job:worker/task:1/device:CPU:0"),
        ("GPU:0", "/device:GPU:0"),
        ("/gpu:3", "/device:GPU:3"),
        ("device:TPU:7", "/device:TPU:7"),
        ("/cpu", "/device:CPU:*"),
        ("/cpu:*", "/device:CPU:*"),
        ("/epu:0", "/device:EPU:0"),
        ("/device:FPGA:2", "/device:FPGA:2"),
        ("/device:tpu:0", "/device:tpu:0"),
        ("//job:a//task:2/", "/job:a/task:2"),
        ("/job:a/job:b", "/job:b"),
        ("/job:", "/job:"),
        ("/replica:-1", "/replica:-1"),
    ],
)
def test_a_text_parses_to_its_canonical_form(text: str, canonical: str) -> None:
    assert DeviceSpec.from_string(text).to_string() == canonical


@pytest.mark.parametrize(
    "text",
    [
        "/gizmo:0",
        "xyz",
        "/job",
        "/device",
        "/device:GPU",
        "/job:a:b",
        "/task:x",
        "/task:",
        "/replica:1.5",
        "/cpu:x",
        ":0",
    ],
)
def test_a_text_that_cannot_be_read_is_an_error_that_shows_it(text: str) -> None:
    with pytest.raises(ValueError, match=f"(?s)in the device {text!r}"):
        DeviceSpec.from_string(text)


@pytest.mark.parametrize("text", ["/cpu:0/gpu:0", "/device:GPU:0/device:GPU:0", "/GPU:0/device:CPU:1"])
def test_a_second_device_type_is_an_error(text: str) -> None:
    with pytest.raises(ValueError, match="has two types"):
        DeviceSpec.from_string(text)


def test_the_constructor_converts_its_fields() -> None:
    spec = DeviceSpec(job=0, task="4", device_type="gpu")  # type: ignore[arg-type]

    assert (spec.job, spec.task, spec.device_type, spec.device_index) == ("0", 4, "GPU", None)


def test_the_constructor_refuses_numbers_that_are_none() -> None:
    with pytest.raises(ValueError, match="task must be an integer, got 'x'"):
        DeviceSpec(task="x")  # type: ignore[arg-type]


def test_an_index_without_a_type_is_not_printed() -> None:
    assert DeviceSpec(job="ps", device_index=2).to_string() == "/job:ps"


def test_fields_cannot_be_assigned() -> None:
    with pytest.raises(AttributeError):
        DeviceSpec().job = "x"  # type: ignore[misc]
    with pytest.raises(AttributeError):
        DeviceSpec().rack = 1  # type: ignore[attr-defined]


def test_parsing_from_a_spec_leaves_it_alone() -> None:
    spec = DeviceSpec.from_string("/CPU:0")

    assert spec.parse_from_string("/GPU:0") == DeviceSpec.from_string("/GPU:0")
    assert spec.to_string() == "/device:CPU:0"


def test_merging_lets_the_given_fields_win() -> None:
    merged = DeviceSpec.from_string("/job:foo/task:2/GPU:3").make_merged_spec(
        DeviceSpec.from_string("/job:bar")
    )

    assert merged.to_string() == "/job:bar/task:2/device:GPU:3"


def test_merging_any_index_keeps_the_index() -> None:
    merged = DeviceSpec.from_string("GPU:3").make_merged_spec(DeviceSpec.from_string("CPU:*"))

    assert merged.to_string() == "/device:CPU:3"


def test_merging_a_text_is_an_error_that_shows_the_way() -> None:
    with pytest.raises(TypeError, match="from_string"):
        DeviceSpec().make_merged_spec("CPU:0")  # type: ignore[arg-type]


def test_replacing_sets_and_clears_fields() -> None:
    spec = DeviceSpec.from_string("/job:ps/task:1/CPU:0")

    assert spec.replace(device_type="GPU", job=None).to_string() == "/task:1/device:GPU:0"
    with pytest.raises(TypeError):
        spec.replace(device="GPU")


def test_equality_goes_by_canonical_text_and_class() -> None:
    spec = DeviceSpec.from_string("/cpu:0/job:ps")

    assert spec == DeviceSpec.from_string("/job:ps/device:CPU:0")
    assert hash(spec) == hash(DeviceSpec.from_string("/job:ps/device:CPU:0"))
    assert spec != DeviceSpec.from_string("/job:ps")
    assert spec != "/job:ps/device:CPU:0"


def test_a_repr_rebuilds_the_spec() -> None:
    spec = DeviceSpec(job="ps", device_type="GPU")

    assert repr(spec) == "DeviceSpec(job='ps', device_type='GPU')"
    assert str(spec) == "/job:ps/device:GPU:*"


NUMBERS = st.none() | st.integers(0, 99)
NAMES = st.none() | st.text("abcXYZ019_-. ", max_size=8)
TYPES = st.sampled_from(["CPU", "gpu", "TPU", "FPGA"])
SPECS = st.builds(
    DeviceSpec, job=NAMES, replica=NUMBERS, task=NUMBERS, device_type=TYPES, device_index=NUMBERS
)


@given(SPECS)
def test_the_canonical_text_parses_back_to_an_equal_spec(spec: DeviceSpec) -> None:
    assert DeviceSpec.from_string(spec.to_string()) == spec


@given(SPECS)
def test_copies_are_equal(spec: DeviceSpec) -> None:
    assert pickle.loads(pickle.dumps(spec)) == spec == copy.deepcopy(spec)


@given(SPECS, SPECS, SPECS)
def test_merging_is_associative(a: DeviceSpec, b: DeviceSpec, c: DeviceSpec) -> None:
    assert a.make_merged_spec(b).make_merged_spec(c) == a.make_merged_spec(b.make_merged_spec(c))
