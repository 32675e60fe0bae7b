"""`wb.field_terms`: what it takes, and where; that views change is seen in the widgets of a kernel and in a browser."""

from __future__ import annotations

from typing import Any

import pytest

import workbench as wb
from workbench.errors import FailedPreconditionError


def test_outside_of_a_notebook_no_view_says_anything() -> None:
    with pytest.raises(FailedPreconditionError, match=r"call wb\.field_terms in a notebook"):
        wb.field_terms()


@pytest.mark.parametrize("shown", ["plain", 1, None])
def test_it_takes_nothing_but_true_and_false(shown: Any) -> None:
    with pytest.raises(TypeError, match=r"wb\.field_terms takes True or False, got"):
        wb.field_terms(shown)
