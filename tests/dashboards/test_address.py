"""A dashboard listens on loopback, or with TLS, or not at all."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import workbench as wb
from workbench.dashboards.address import Address
from workbench.errors import InvalidArgumentError, UnsafeBind, WrongType


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.7", "10.0.0.1", "8.8.8.8", "fe80::1"])
def test_off_loopback_without_tls_is_refused(host: str) -> None:
    with pytest.raises(UnsafeBind, match=r"without TLS.*ssh -L"):
        Address(host).check()


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.2", "::1", "localhost"])
def test_loopback_needs_no_tls(host: str) -> None:
    Address(host).check()
    assert Address(host).tls() is None


@pytest.mark.parametrize("host", ["", "evil.com", "127.0.0.1.evil.com", "localhost.evil.com", "127.0.0.1:80"])
def test_what_is_no_address_is_refused(host: str) -> None:
    with pytest.raises(InvalidArgumentError, match="not an IP address"):
        Address(host).check()


def test_a_port_that_is_none_is_refused() -> None:
    with pytest.raises(InvalidArgumentError, match="70000"):
        Address(port=70000).check()


def test_behind_a_proxy_it_can_be_allowed() -> None:
    Address("0.0.0.0", without_tls=True, origins=("https://lab.example.org",)).check()
    Address("10.0.0.1", without_tls=True).check()
    with pytest.raises(InvalidArgumentError, match="leave one out"):
        Address("10.0.0.1", certificate="x.pem", without_tls=True).check()


def test_every_address_is_none_that_a_browser_can_open() -> None:
    for host in ("0.0.0.0", "::"):
        with pytest.raises(InvalidArgumentError, match="say under which"):
            Address(host, certificate="x.pem").check()
        Address(host, certificate="x.pem", origins=("lab.example.org:8443",)).check()


@pytest.mark.parametrize(
    "origin",
    [
        "*",
        "",
        "lab.example.org/path",
        "ftp://lab",
        "user@lab",
        "Lab.example.org",
        "lab:",
        "lab:x",
        "a b",
    ],
)
def test_what_is_no_origin_is_refused(origin: str) -> None:
    with pytest.raises(InvalidArgumentError, match="not an origin of a page"):
        Address(origins=(origin,)).check()


def test_a_key_alone_is_no_tls() -> None:
    with pytest.raises(InvalidArgumentError, match=r"key\.pem was given without"):
        Address(key="key.pem").check()


def test_the_notebook_cannot_listen_to_everybody_either(run_file: Path) -> None:
    with pytest.raises(UnsafeBind):
        wb.dashboard(run_file, host="0.0.0.0")


def test_a_certificate_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    missing = tmp_path / "none.pem"
    with pytest.raises(InvalidArgumentError, match=r"none\.pem"):
        Address("0.0.0.0", certificate=str(missing)).tls()


def test_pages_come_from_this_very_port_and_name() -> None:
    assert Address().allowed_origins(5006) == {
        "http://127.0.0.1:5006",
        "http://localhost:5006",
        "http://[::1]:5006",
    }
    behind = Address("0.0.0.0", certificate="x.pem", origins=("lab.example.org", "[fe80::1]:8443"))
    assert behind.allowed_origins(443) == {"https://lab.example.org", "https://[fe80::1]:8443"}
    proxied = Address(origins=("https://lab.example.org", "lab.example.org:8080"))
    assert proxied.allowed_origins(80) >= {"https://lab.example.org", "http://lab.example.org:8080"}
    assert "http://lab.example.org" not in proxied.allowed_origins(80)


def test_browsers_leave_out_the_port_that_is_meant_anyway() -> None:
    assert Address("10.0.0.1", certificate="x.pem").allowed_origins(443) == {"https://10.0.0.1"}
    assert "http://localhost" in Address().allowed_origins(80)
    named = Address(certificate="x.pem", origins=("lab.example.org:443", "http://lab.example.org:80"))
    assert named.allowed_origins(8443) >= {"https://lab.example.org", "http://lab.example.org"}


def test_addresses_are_printed_as_browsers_read_them() -> None:
    assert Address("::1").url(80) == "http://[::1]:80/"
    assert Address("10.0.0.1", certificate="x.pem").url(443) == "https://10.0.0.1:443/"
    assert Address("0.0.0.0", certificate="x.pem", origins=("lab:1", "x")).url(443) == "https://lab:1/"
    assert Address("::", without_tls=True, origins=("https://lab",)).url(80) == "https://lab/"


@pytest.mark.parametrize("name", ["host", "port", "certificate", "key", "origins"])
def test_what_is_no_part_of_an_address_is_named(name: str) -> None:
    wrong: dict[str, Any] = {name: np.ones(2)}
    with pytest.raises(WrongType, match="an origin" if name == "origins" else name):
        Address(**wrong).check()
