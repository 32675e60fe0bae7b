"""Several hosts, with one or several processes and replicas each."""

from __future__ import annotations

import pytest

from tests.contracts.communicator import AcrossProcesses
from tests.contracts.processes import Layout


class TestTwoHosts(AcrossProcesses):
    layout = Layout((("a", 1), ("b", 1)))


@pytest.mark.thorough
class TestThreeHosts(AcrossProcesses):
    layout = Layout((("a", 1), ("b", 1), ("c", 1)))


@pytest.mark.thorough
class TestTwoHostsOfTwoProcesses(AcrossProcesses):
    layout = Layout((("a", 1), ("a", 1), ("b", 1), ("b", 1)))


class TestHostsOfProcessesAndThreads(AcrossProcesses):
    layout = Layout((("a", 2), ("a", 1), ("b", 2)))
