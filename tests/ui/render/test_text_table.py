"""Text tables fit into 88 columns and stay aligned."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from workbench.ui.render.text_table import WIDTH, aligned, figure


def test_names_are_aligned_left_and_figures_right() -> None:
    assert aligned(["name", "mean"], [["a", "1.00"], ["long name", "12.0"]], left=["name"]) == [
        "name       mean",
        "a          1.00",
        "long name  12.0",
    ]


def test_expendable_columns_go_in_their_order_until_the_table_fits() -> None:
    rows = [["x" * 20, "y" * 20, "z" * 20]]

    assert aligned(["a", "b", "c"], rows, expendable=["c", "b"], width=64)[0].split() == ["a", "b", "c"]
    assert aligned(["a", "b", "c"], rows, expendable=["c", "b"], width=63)[0].split() == ["a", "b"]
    assert aligned(["a", "b", "c"], rows, expendable=["c", "b"], width=20)[0].split() == ["a"]


@given(st.lists(st.lists(st.text("ab ", max_size=60), min_size=3, max_size=3), max_size=4))
def test_no_line_is_wider_than_88_columns(rows: list[list[str]]) -> None:
    assert all(len(line) <= WIDTH for line in aligned(["a", "b", "c"], rows, left=["a"]))
    assert all(len(line) <= WIDTH for line in aligned(["a", "b", "c"], rows, left=["c"], wrapped="c"))


def test_a_long_blank_cell_is_a_blank_line() -> None:
    rows = [["1 s", " " * 100], ["2 s", "b"]]
    table = aligned(["after", "message"], rows, left=["message"], wrapped="message", width=31)
    assert table == ["after  message", "  1 s", "  2 s  b"]


def test_cells_of_a_wrapped_column_go_on_below_it() -> None:
    rows = [["1 s", "short"], ["2 s", "one two three four five six seven"], ["3 s", "x" * 60]]

    assert aligned(["after", "message"], rows, left=["message"], wrapped="message", width=31) == [
        "after  message",
        "  1 s  short",
        "  2 s  one two three four five",
        "       six seven",
        "  3 s  " + "x" * 24,
        "       " + "x" * 24,
        "       " + "x" * 12,
    ]


def test_of_a_very_long_cell_the_end_is_left_out() -> None:
    lines = aligned(["a", "message"], [["1", "word " * 1000]], left=["message"], wrapped="message")

    assert len(lines) == 9
    assert lines[-1].endswith("word …")


def test_figures_have_three_digits_and_an_exponent_where_needed() -> None:
    values = (0.0, 0.5, -12.345, 99999.0, 1e6, 1e-4, -2.5e-12, float("nan"))

    assert [figure(value) for value in values] == [
        "0",
        "0.500",
        "-12.3",
        "99,999",
        "1.00e+06",
        "1.00e-04",
        "-2.50e-12",
        "nan",
    ]
