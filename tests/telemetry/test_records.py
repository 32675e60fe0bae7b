"""The record's columns and the bandwidth formulas."""

from __future__ import annotations

import doctest

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.telemetry import records
from workbench.telemetry.formatting import significant
from workbench.telemetry.records import COLUMNS, bandwidth, busbw_factor, message_bytes, schema

OPS = ("all_reduce", "reduce_scatter", "all_gather", "broadcast", "reduce", "send", "recv")
RECORDED = """
    run_id generation step seq group op redop dtype
    count bytes algorithm packs transport replica host device
    t_enter_ns t_start_ns t_end_ns clock_offset_ns clock_err_ns state site purpose
    n inputs
"""
"""The columns of recorded runs; files of earlier versions have them in this order."""


def test_the_fields_of_a_record_are_the_columns_of_a_batch() -> None:
    assert " ".join(COLUMNS).split() == RECORDED.split()
    assert tuple(schema().names) == COLUMNS


def test_enumerations_travel_as_strings() -> None:
    for name in ("op", "redop", "dtype", "algorithm", "transport", "state"):
        assert schema().field(name).type == pa.dictionary(pa.int32(), pa.utf8())


@pytest.mark.parametrize(
    ("op", "factor"),
    [
        ("all_reduce", 2 * 7 / 8),
        ("reduce_scatter", 7 / 8),
        ("all_gather", 7 / 8),
        ("broadcast", 1),
        ("reduce", 1),
        ("send", 1),
        ("recv", 1),
    ],
)
def test_bus_bandwidth_factors_for_eight_ranks(op: str, factor: float) -> None:
    assert busbw_factor(op, 8) == factor


def test_one_gibibyte_over_eight_ranks_in_five_milliseconds() -> None:
    rates = bandwidth("all_reduce", 1 << 30, 5_000_000, 8)
    assert (round(rates.algbw or 0, 1), round(rates.busbw or 0, 1)) == (214.7, 375.8)


@pytest.mark.parametrize("op", OPS)
def test_one_replica_alone_has_no_bandwidth(op: str) -> None:
    rates = bandwidth(op, 1 << 20, 1000, 1)
    assert (rates.algbw, rates.busbw) == (None, None)
    assert significant(rates.busbw) == "–"


@pytest.mark.parametrize(
    ("op", "size", "time_ns"), [("barrier", 0, 10), ("all_reduce", 0, 10), ("reduce", 8, 0)]
)
def test_without_bytes_or_time_there_is_no_bandwidth(op: str, size: int, time_ns: int) -> None:
    assert bandwidth(op, size, time_ns, 4).algbw is None


def test_the_size_of_scattered_and_gathered_arrays_is_that_of_the_whole() -> None:
    assert message_bytes("all_reduce", 100, 4, 8) == 400
    assert message_bytes("broadcast", 100, 4, 8) == 400
    assert message_bytes("reduce_scatter", 100, 4, 8) == 3200
    assert message_bytes("all_gather", 100, 4, 8) == 3200


@given(
    op=st.sampled_from(OPS), n=st.integers(2, 10_000), size=st.integers(1, 1 << 40), ns=st.integers(1, 10**12)
)
def test_bus_bandwidth_lies_between_half_and_twice_the_algorithm_bandwidth(
    op: str, n: int, size: int, ns: int
) -> None:
    rates = bandwidth(op, size, ns, n)
    assert rates.algbw is not None
    assert rates.busbw is not None
    assert rates.algbw / 2 <= rates.busbw * (1 + 1e-12)
    assert rates.busbw < 2 * rates.algbw


def test_the_examples_in_the_text_hold() -> None:
    assert doctest.testmod(records).failed == 0
