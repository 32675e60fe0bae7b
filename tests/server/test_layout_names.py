"""The names of saved layouts travel from a page through the server to the kernels of this user, and no further."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from tests.server.conftest import API, Server
from workbench.errors import InvalidArgumentError
from workbench.runtime.deploy.registry import Registry
from workbench.server.layout_names import keep, kept


@pytest.fixture
def registry(tmp_path: Path) -> Registry:
    return Registry(tmp_path / "clusters")


def test_the_names_that_were_kept_last_are_known(registry: Registry) -> None:
    assert kept(registry) == ()
    for names in (["one"], ["mine", "für später"]):
        keep(names, registry)

        assert kept(registry) == tuple(names)
    assert [path.name for path in registry.folder.iterdir()] == ["layouts.json"]
    assert stat.S_IMODE((registry.folder / "layouts.json").stat().st_mode) == 0o600
    assert registry.entries() == ()


@pytest.mark.parametrize("names", [[3], [""], ["x" * 41], ["a\nb"], ["n"] * 65])
def test_what_is_no_name_is_refused(registry: Registry, names: list[object]) -> None:
    with pytest.raises(InvalidArgumentError, match="at most"):
        keep(names, registry)
    assert kept(registry) == ()


def test_a_file_that_others_could_have_written_is_not_read(registry: Registry, tmp_path: Path) -> None:
    keep(["mine"], registry)
    file = registry.folder / "layouts.json"
    file.chmod(0o644)
    assert kept(registry) == ()

    file.unlink()
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_text('["theirs"]', encoding="ascii")
    elsewhere.chmod(0o600)
    os.symlink(elsewhere, file)
    assert kept(registry) == ()


@pytest.mark.parametrize("text", ["", "{", "3", '{"names": []}', "[" * 9999])
def test_a_damaged_file_holds_no_names(registry: Registry, text: str) -> None:
    keep(["mine"], registry)
    (registry.folder / "layouts.json").write_text(text, encoding="ascii")

    assert kept(registry) == ()


def test_the_server_keeps_what_a_page_tells(server: Server) -> None:
    assert server.request("PUT", f"{API}/layouts", {"names": ["evening"]}).status == 204
    assert server.request("PUT", f"{API}/layouts", {"names": [3]}).status == 400
    assert server.request("PUT", f"{API}/layouts", {"names": "all"}).status == 400

    assert kept(Registry()) == ("evening",)
