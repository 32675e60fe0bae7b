"""Clusters for checkpoints: replicas in processes, so that values are elsewhere than the notebook."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import workbench as wb


@pytest.fixture(scope="module")
def three() -> Iterator[wb.Cluster]:
    """Three replicas in processes of their own."""
    with wb.connect(replicas=3, replace=True) as cluster:
        yield cluster
