"""Two hosts for the tests of this folder."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator

import pytest

from tests.network.two_hosts import TwoHosts


@pytest.fixture
def hosts() -> Iterator[TwoHosts]:
    hosts = TwoHosts()
    try:
        try:
            hosts.make()
        except FileNotFoundError as error:
            pytest.skip(f"two hosts need `{error.filename}`, which is not installed (iproute2, util-linux)")
        except subprocess.CalledProcessError as error:
            pytest.skip(f"this user may not make network namespaces: {error.stderr.strip()}")
        yield hosts
    finally:
        hosts.remove()
        assert not hosts.left()
