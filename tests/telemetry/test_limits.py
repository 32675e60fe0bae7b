"""What bandwidths are compared with."""

from __future__ import annotations

from workbench.telemetry.limits import Limit


def test_a_message_is_compared_with_a_copy_of_about_its_size() -> None:
    limit = Limit({1 << 16: 20.0, 1 << 20: 10.0, 1 << 24: 5.0})
    sizes = (4, 1 << 16, 1 << 17, 1 << 19, 1 << 20, 1 << 23, 1 << 30)
    assert [limit.of(size) for size in sizes] == [20, 20, 20, 10, 10, 5, 5]


def test_between_hosts_links_decide_whatever_the_size() -> None:
    limit = Limit({1 << 16: 20.0}, between_hosts=1.5)
    assert {limit.of(4), limit.of(1 << 30)} == {1.5}


def test_what_was_not_measured_has_no_limit() -> None:
    assert Limit().of(1 << 20) is None
