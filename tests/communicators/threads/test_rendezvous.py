"""Replicas in one process."""

from __future__ import annotations

from tests.contracts.communicator import AloneContract, CommunicatorContract
from tests.contracts.processes import Layout


class TestAlone(AloneContract):
    layout = Layout((("a", 1),))


class TestTwoThreads(CommunicatorContract):
    layout = Layout((("a", 2),))


class TestFourThreads(CommunicatorContract):
    layout = Layout((("a", 4),))
