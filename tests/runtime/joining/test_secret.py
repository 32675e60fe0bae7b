"""The secret of a cluster: where it is kept, and the TLS that all of its tasks make of it."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from workbench.errors import FailedPreconditionError
from workbench.runtime.joining.secret import FILE_VARIABLE, VARIABLE, Secret, secret_file


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv(VARIABLE, raising=False)
    monkeypatch.setenv(FILE_VARIABLE, str(tmp_path / "folder" / "secret"))
    return tmp_path / "folder" / "secret"


def test_a_secret_is_made_once_and_only_its_user_can_read_it(file: Path) -> None:
    assert Secret.existing() is None
    made = Secret.found_or_made()
    assert file.stat().st_mode & 0o777 == 0o600
    assert Secret.found_or_made() == made == Secret.existing()
    assert len(made.text) == 64
    assert [path.name for path in file.parent.iterdir()] == ["secret"]


def test_tasks_that_start_at_the_same_time_make_one_secret(file: Path) -> None:
    found: list[Secret] = []
    threads = [threading.Thread(target=lambda: found.append(Secret.found_or_made())) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert len(found) == 8
    assert len(set(found)) == 1


def test_the_environment_comes_before_the_file(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Secret.found_or_made()
    monkeypatch.setenv(VARIABLE, "x" * 32 + "\n")
    assert Secret.existing() == Secret("x" * 32, VARIABLE)


def test_a_file_that_others_can_read_is_refused(file: Path) -> None:
    Secret.found_or_made()
    file.chmod(0o640)
    with pytest.raises(FailedPreconditionError, match=r"others than you can read .*chmod 600"):
        Secret.existing()


def test_a_short_secret_is_refused_without_showing_it(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "tiger")
    with pytest.raises(FailedPreconditionError, match="has 5 characters") as raised:
        Secret.existing()
    assert "tiger" not in str(raised.value)


def test_a_secret_that_cannot_be_kept_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    monkeypatch.setenv(FILE_VARIABLE, "/proc/nowhere/secret")
    with pytest.raises(FailedPreconditionError, match=r"WORKBENCH_SECRET_FILE to a file that all tasks see"):
        Secret.found_or_made()


def test_all_tasks_make_the_same_certificate_and_no_secret_is_in_it() -> None:
    first, second = Secret("a" * 32, "here"), Secret("a" * 32, "there")
    assert first.security().tls_ca_file == second.security().tls_ca_file
    assert first.fingerprint == second.fingerprint
    assert first.fingerprint != Secret("b" * 32, "here").fingerprint
    assert "a" * 32 not in repr(first)


def test_without_a_variable_it_is_below_the_users_data(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(FILE_VARIABLE, raising=False)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    assert secret_file() == tmp_path / "workbench" / "join-secret"
