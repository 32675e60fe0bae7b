"""What holds for every test: nothing is left behind, property tests are not timed; and a cluster started by hand."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from tests.leaks import Resources, leaked_since
from tests.own_cluster import OwnCluster

settings.register_profile("workbench", deadline=None)  # a busy machine is no failure
settings.load_profile("workbench")


@pytest.fixture(scope="session", autouse=True)
def own_registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Clusters of the tests do not show in the JupyterLab of the user who runs them, nor theirs in the tests."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setenv("WORKBENCH_RUNTIME_DIR", str(tmp_path_factory.mktemp("runtime")))
        yield


@pytest.fixture(scope="module", autouse=True)
def nothing_left_behind() -> Iterator[None]:
    """Fails a test module that leaves threads, processes, shared memory or descriptors behind.

    Clusters live at most as long as a module, so this is also the check that they close completely.
    """
    before = Resources.now()
    yield
    left = leaked_since(before)
    if left:
        pytest.fail("this module left behind:\n  " + "\n  ".join(left), pytrace=False)


@pytest.fixture(scope="session")
def outputs_in_jupyterlab() -> dict[str, dict[str, str]]:
    """Of each notebook that a browser test has run: the text of its cells, by id. `tests/notebooks` reads it there."""
    return {}


@pytest.fixture
def own(tmp_path: Path) -> Iterator[OwnCluster]:
    """A cluster started by hand, without workers so far."""
    cluster = OwnCluster(tmp_path)
    try:
        cluster.wait()
        yield cluster
    finally:
        cluster.close()
