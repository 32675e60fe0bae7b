"""The contract of communicators over arrays of PyTorch and JAX: views of theirs go in, arrays of theirs come out."""

from __future__ import annotations

import importlib.util

import pytest

from tests.contracts.communicator import AcrossProcesses, CommunicatorContract
from tests.contracts.processes import Layout

needs_torch = pytest.mark.skipif(
    importlib.util.find_spec("torch") is None, reason="PyTorch is not installed: pip install torch"
)
needs_jax = pytest.mark.skipif(
    importlib.util.find_spec("jax") is None, reason="JAX is not installed: pip install -e '.[jax]'"
)


class OfLibrary(CommunicatorContract):
    """Libraries start threads of their own whenever they like: that nothing is left is looked at without them."""

    test_nothing_is_left_after_close = None  # type: ignore[assignment]


@needs_torch
class TestTorchInTwoThreads(OfLibrary):
    layout = Layout((("a", 2),), library="torch")


@needs_torch
class TestTorchInTwoProcesses(OfLibrary, AcrossProcesses):
    layout = Layout((("a", 1), ("a", 1)), library="torch")


@needs_jax
class TestJaxInFourThreads(OfLibrary):
    layout = Layout((("a", 4),), library="jax")


@pytest.mark.thorough
@needs_jax
class TestJaxInTwoProcessesOfTwoThreads(OfLibrary, AcrossProcesses):
    layout = Layout((("a", 2), ("a", 2)), library="jax")
