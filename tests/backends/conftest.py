"""Libraries that users bring; tests of one that is missing are skipped."""

from __future__ import annotations

from typing import Any

import pytest


@pytest.fixture(scope="module")
def torch() -> Any:
    return pytest.importorskip("torch", reason="PyTorch is not installed: pip install torch")


@pytest.fixture(scope="module")
def jax() -> Any:
    return pytest.importorskip("jax", reason="JAX is not installed: pip install -e '.[jax]'")
