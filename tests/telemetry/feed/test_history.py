"""Rows in memory: texts by number, and the newest rows whatever comes first."""

from __future__ import annotations

import random

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tests.telemetry.simulation import Replicas, steps
from workbench.telemetry.feed import history
from workbench.telemetry.feed.history import COLLECTIVE, Newest, Texts, to_columns, to_rows, together
from workbench.telemetry.recording import batches
from workbench.telemetry.recording.batches import Text


def rows_at(times: list[int]) -> np.ndarray:
    rows = np.zeros(len(times), COLLECTIVE)
    rows["ready_ns"] = rows["step"] = times
    return rows


@given(
    st.lists(st.integers(0, 10_000), unique=True, max_size=200),
    st.integers(1, 50),
    st.randoms(use_true_random=False),
)
def test_the_newest_rows_stay_in_whatever_order_and_portions_they_come(
    times: list[int], limit: int, rng: random.Random
) -> None:
    kept = Newest(COLLECTIVE, "ready_ns", limit)
    rest = list(times)
    while rest:
        portion = rng.randrange(1, 70)
        kept.add(rows_at(rest[:portion]))
        rest = rest[portion:]
    assert kept.rows()["ready_ns"].tolist() == sorted(times)[-limit:]
    assert kept.rows()["step"].tolist() == kept.rows()["ready_ns"].tolist()


def test_adding_nothing_changes_nothing() -> None:
    kept = Newest(COLLECTIVE, "ready_ns", 3)
    kept.add(rows_at([]))
    assert len(kept.rows()) == 0


def test_rows_put_together_are_those_of_the_parts() -> None:
    parts = [rows_at([1, 2]), rows_at([]), rows_at([3])]
    assert together(parts)["step"].tolist() == [1, 2, 3]


def test_batches_survive_being_turned_into_rows() -> None:
    replicas, texts = Replicas(["a", "b"]), Texts()
    replicas.record(*steps(3, [0, 10]))
    for data in replicas.drain():
        _, columns = batches.decode(data)
        again = to_columns(to_rows(columns, texts), texts)
        assert batches.to_table(again).equals(batches.to_table(columns))


@given(st.lists(st.sampled_from(["", "a", "b", "train.py:84", "é"]), max_size=20))
def test_texts_come_back_sorted_and_unchanged(words: list[str]) -> None:
    texts = Texts()
    values = tuple(dict.fromkeys(words))
    column = Text(np.array([values.index(word) for word in words], np.int32), values)
    numbers = np.zeros(len(words), np.int32)
    numbers[:] = texts.encode(column)
    decoded = texts.decode(numbers)
    assert decoded.tolist() == words
    assert list(decoded.values) == sorted(set(words))


def test_the_table_of_texts_is_bounded() -> None:
    texts = Texts()
    for number in range(history._MAX_TEXTS + 10):
        texts.number(f"cell:{number}")
    assert texts.number("one more") == 0
    assert texts[0] == ""
    assert texts[texts.number("cell:5")] == "cell:5"
