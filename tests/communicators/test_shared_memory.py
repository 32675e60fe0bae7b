"""Processes of one host, with one or several replicas each."""

from __future__ import annotations

import pytest

from tests.contracts.communicator import AcrossProcesses
from tests.contracts.processes import Layout


class TestTwoProcesses(AcrossProcesses):
    layout = Layout((("a", 1), ("a", 1)))


class TestThreeProcesses(AcrossProcesses):
    layout = Layout((("a", 1), ("a", 1), ("a", 1)))


@pytest.mark.thorough
class TestTwoProcessesOfTwoThreads(AcrossProcesses):
    layout = Layout((("a", 2), ("a", 2)))
