"""Reductions prepared once for each call site."""

from __future__ import annotations

import pytest

from workbench.communicators.core import plan


def test_plans_of_ever_new_call_sites_do_not_pile_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plan, "MAX_PLANS", 3)
    plans: dict[str, int] = {}

    assert [plan.remember(plans, f"In[{cell}]:1", cell) for cell in range(5)] == [0, 1, 2, 3, 4]
    assert plans == {"In[3]:1": 3, "In[4]:1": 4}
