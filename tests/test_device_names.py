"""Device names resolved against a cluster, and the device scope."""

from __future__ import annotations

import contextvars
import pickle

import pytest

from workbench.device_names import Device, checked_list, current_device, device, place, resolve
from workbench.device_spec import DeviceSpec
from workbench.errors import InvalidArgumentError


def laid_out(hosts: int, per_host: int, kind: str = "CPU") -> list[Device]:
    return [
        Device(kind, index, host="abc"[task], worker=f"tcp://127.0.0.1:{9000 + task}", task=task)
        for task in range(hosts)
        for index in range(per_host)
    ]


def test_a_device_has_a_full_and_a_short_name() -> None:
    cpu = laid_out(2, 2)[3]

    assert (cpu.string, cpu.short) == ("/job:worker/replica:0/task:1/device:CPU:1", "CPU:1")
    assert cpu.spec.to_string() == str(cpu) == cpu.string
    assert pickle.loads(pickle.dumps(cpu)) == cpu


def test_scopes_merge_field_by_field() -> None:
    with device("/job:foo"):
        with device("/job:bar/task:0/device:gpu:2") as inner:
            assert inner.to_string() == current_device().to_string() == "/job:bar/task:0/device:GPU:2"
        with device(DeviceSpec(device_type="GPU", device_index=1)):
            assert current_device().to_string() == "/job:foo/device:GPU:1"
    assert current_device() == DeviceSpec()


def test_an_index_without_a_type_does_not_count_in_a_scope() -> None:
    with device(DeviceSpec(job="foo", device_index=2)):
        assert current_device().to_string() == "/job:foo"
        with device("CPU"):
            assert current_device().to_string() == "/job:foo/device:CPU:*"
    with device("/device:GPU:1"), device(DeviceSpec(task=0, device_index=0)):
        assert current_device().to_string() == "/task:0/device:GPU:1"


def test_a_scope_of_none_forgets_the_outer_ones() -> None:
    with device("/job:foo"), device(None):
        assert current_device() == DeviceSpec()


def test_a_scope_takes_a_concrete_device() -> None:
    with device(laid_out(2, 1)[1]):
        assert current_device().to_string() == "/job:worker/replica:0/task:1/device:CPU:0"


def test_one_scope_may_be_entered_many_times_also_inside_itself() -> None:
    scope = device("CPU:1")

    for around in ("/job:foo", "/job:bar"):
        with device(around), scope as outer, scope as inner:
            assert outer.to_string() == inner.to_string() == f"{around}/device:CPU:1"
        assert current_device() == DeviceSpec()


def test_a_scope_ends_with_an_exception() -> None:
    with pytest.raises(KeyError), device("CPU:1"):
        raise KeyError
    assert current_device() == DeviceSpec()


@pytest.mark.parametrize("wrong", ["gizmo", "/gizmo:0", lambda op: "CPU:0", 3])
def test_a_scope_of_something_else_is_an_error(wrong: object) -> None:
    with pytest.raises(ValueError), device(wrong):  # type: ignore[arg-type]
        pytest.fail("the block must not run")


def test_scopes_of_other_contexts_do_not_mix() -> None:
    with device("CPU:1"):
        assert contextvars.Context().run(current_device) == DeviceSpec()


@pytest.mark.parametrize(
    ("wish", "chosen"),
    [
        ("", "CPU:0"),
        ("CPU:3", "CPU:3"),
        ("/job:localhost/replica:0/task:0/device:CPU:1", "CPU:1"),
        ("CPU", "CPU:0"),
        ("CPU:9", "CPU:0"),
        ("GPU:1", "CPU:0"),
    ],
)
def test_placing_falls_back_to_the_first_device(wish: str, chosen: str) -> None:
    assert place(DeviceSpec.from_string(wish), laid_out(1, 8)).short == chosen


@pytest.mark.parametrize("wish", ["/job:ps", "/task:5", "/replica:1"])
def test_placing_on_an_unknown_host_is_an_error(wish: str) -> None:
    with pytest.raises(InvalidArgumentError, match="CPU:0 to CPU:3 on a"):
        place(DeviceSpec.from_string(wish), laid_out(1, 4))


def test_resolving_keeps_the_order_asked_for() -> None:
    found = resolve(["CPU:2", DeviceSpec(device_type="CPU", device_index=0), "/cpu:1"], laid_out(1, 4))

    assert [item.short for item in found] == ["CPU:2", "CPU:0", "CPU:1"]


def test_a_name_without_a_host_means_the_first_and_one_with_it_that_one() -> None:
    available = laid_out(2, 2)

    assert resolve(["CPU:1", "/task:1/CPU:1"], available) == (available[1], available[3])
    assert resolve(available[2:], available) == tuple(available[2:])


def test_a_device_that_does_not_exist_is_an_error_that_says_how_to_get_it() -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        resolve(["CPU:0", "CPU:1", "CPU:2"], laid_out(1, 2))

    assert str(caught.value) == (
        "devices[2] is 'CPU:2', which this cluster does not have: 3 devices were asked for, and there are "
        "CPU:0 to CPU:1 on a; wb.connect(replicas=3) gives more CPU devices"
    )


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("/CPU:-1", "indices count from 0, and -1 is below"),
        ("/job:x/CPU:0", "its devices are of /job:worker, not of /job:x; leave the job out"),
        ("/job:x/replica:3/task:9/CPU:0", "its devices are of /job:worker, not of /job:x; leave the job out"),
        ("/replica:1/CPU:0", "/replica:1 is part of a device's full name that is always /replica:0 here"),
        (
            "/task:2/CPU:0",
            r"/task:2 would be host 2, and they count from 0 to 1; wb.connect\(hosts=…\) gives",
        ),
    ],
)
def test_a_device_that_no_more_replicas_would_make_is_told_what_is_wrong_with_it(
    name: str, text: str
) -> None:
    with pytest.raises(InvalidArgumentError, match=f"{text}.*; there are CPU:0 to CPU:1 on a") as caught:
        resolve(["CPU:0", name], laid_out(2, 2))

    assert "replicas=" not in str(caught.value)


def test_a_missing_gpu_points_to_the_doctor() -> None:
    with pytest.raises(InvalidArgumentError, match="workbench doctor"):
        resolve(["GPU:0"], laid_out(1, 2))


def test_a_device_named_twice_is_an_error_that_shows_both_places() -> None:
    with pytest.raises(InvalidArgumentError, match=r"devices\[0\] and devices\[2\] are both /job:worker"):
        resolve(["CPU:0", "CPU:1", "/device:cpu:0"], laid_out(1, 2))


def test_no_devices_at_all_is_an_error() -> None:
    with pytest.raises(InvalidArgumentError, match="leave it out to use all"):
        resolve([], laid_out(1, 2))


def test_a_single_text_instead_of_a_list_is_an_error_that_shows_the_list() -> None:
    with pytest.raises(TypeError, match=r"write \['CPU:0'\]"):
        resolve("CPU:0", laid_out(1, 2))


def test_the_listing_stays_short_with_many_hosts() -> None:
    many = [Device("CPU", 0, host=f"n{task}", worker="", task=task) for task in range(40)]

    with pytest.raises(InvalidArgumentError, match="and 32 more"):
        resolve(["CPU:7"], many)


def test_a_number_is_no_list_of_devices() -> None:
    with pytest.raises(TypeError, match=r"got 2; write \['CPU:0', 'CPU:1'\]"):
        checked_list(2)
