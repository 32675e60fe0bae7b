"""`map_batches`: a function of whole arrays, called once for many elements."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from workbench.data import Dataset
from workbench.errors import InvalidArgumentError


@pytest.mark.parametrize("calls", [None, 2])
def test_elements_are_those_of_map(calls: int | None) -> None:
    sizes = []

    def double(x: Any) -> Any:
        sizes.append(len(x))
        return x * 2 + 1

    dataset = Dataset.range(10).map_batches(double, 4, num_parallel_calls=calls)
    sizes.clear()  # from calls with made-up values
    assert [int(x) for x in dataset] == [int(x) for x in Dataset.range(10).map(lambda x: x * 2 + 1)]
    assert sorted(sizes) == [2, 4, 4]


def test_several_components_go_in_and_out() -> None:
    dataset = Dataset.from_tensor_slices((np.arange(6), np.ones((6, 2)))).map_batches(
        lambda number, row: {"sum": number + row.sum(1), "row": row}, 4, name="both"
    )
    assert [float(each["sum"]) for each in dataset] == [2.0, 3.0, 4.0, 5.0, 6.0, 7.0]


def test_a_function_that_gives_no_rows_is_refused() -> None:
    with pytest.raises(
        InvalidArgumentError, match="cuts along the first dimension, but elements are TensorSpec"
    ):
        Dataset.range(6).map_batches(lambda x: x.sum(), 4)
