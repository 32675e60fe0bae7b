"""Who is let in: nobody without the token, and nobody in the clear from other machines."""

from __future__ import annotations

import json
import os
import pickle
import socket
import stat
from pathlib import Path

import pytest

import workbench as wb
from tests.data.service.servers import service, worker_of
from tests.identity import Identity
from workbench.errors import FailedPreconditionError, InvalidArgumentError, UnsafeBind

service_names = wb.data.service


class Bomb:
    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[object, ...]:
        return os.mkdir, (str(self.path),)


def _address(target: str) -> tuple[str, int]:
    host, _, port = target.rpartition("@")[2].rpartition(":")
    return host, int(port)


@pytest.mark.parametrize(
    "hello",
    [b"", b"\0" * 4096, b'{"token": "x"}\n', b'{"token": null}\n', b"[]\n", b"GET / HTTP/1.1\r\n\r\n"],
)
def test_strangers_are_refused_before_anything_is_unpickled(hello: bytes, tmp_path: Path) -> None:
    bomb = pickle.dumps(Bomb(tmp_path / "executed"))
    with service(1) as target:
        places = [_address(target), _address("x@" + service_names.status(target).workers[0].address)]
        for place in places:
            with socket.create_connection(place, 10) as stranger:
                stranger.settimeout(10)
                try:
                    stranger.sendall(hello + bomb)
                    stranger.shutdown(socket.SHUT_WR)
                    answer = stranger.recv(1024)
                except OSError:  # it was refused before it had sent everything
                    answer = b""
                assert answer == b"" or json.loads(answer)["verdict"] != "ok"

        assert sorted(
            map(int, wb.data.Dataset.range(3).apply(service_names.distribute("parallel_epochs", target)))
        ) == [0, 1, 2]
    assert not (tmp_path / "executed").exists()


def test_a_wrong_token_is_an_error_that_says_what_to_use_and_shows_no_token() -> None:
    with service(1) as target:
        wrong = "grpc://secret@" + target.rpartition("@")[2]

        with pytest.raises(
            FailedPreconditionError, match=r"refused this client: wrong token.*dispatcher\.target"
        ) as failed:
            wb.data.Dataset.range(3).apply(service_names.distribute("parallel_epochs", wrong))
        assert "secret" not in str(failed.value)
        with pytest.raises(FailedPreconditionError, match="wrong token"):
            worker_of(wrong)


def test_nobody_listens_off_loopback_without_tls() -> None:
    with pytest.raises(UnsafeBind, match=r"0\.0\.0\.0 without TLS"):
        service_names.DispatchServer(service_names.DispatcherConfig(host="0.0.0.0"))
    with pytest.raises(UnsafeBind, match=r"0\.0\.0\.0 without TLS"):
        worker_of("grpc://t@127.0.0.1:1", host="0.0.0.0")


def _certificate(folder: Path) -> service_names.Tls:
    own = Identity.in_folder(folder)
    return service_names.Tls(str(own.certificate), str(own.certificate), str(own.key))


def test_with_tls_everything_is_encrypted_and_checked(tmp_path: Path) -> None:
    tls = _certificate(tmp_path)
    (tmp_path / "other").mkdir()
    other = _certificate(tmp_path / "other")
    config = service_names.DispatcherConfig(tls=tls)
    with service_names.DispatchServer(config) as dispatcher, worker_of(dispatcher.target, tls=tls):
        dataset = wb.data.Dataset.range(9)
        read = dataset.apply(service_names.distribute("distributed_epoch", dispatcher.target, tls=tls))

        assert sorted(map(int, read)) == list(range(9))
        with pytest.raises(FailedPreconditionError, match=r"certificate of .* is not valid"):
            dataset.apply(service_names.distribute("distributed_epoch", dispatcher.target, tls=other))


def test_a_certificate_that_is_missing_is_named() -> None:
    with pytest.raises(InvalidArgumentError, match=r"cannot load certificate 'none\.pem'"):
        service_names.DispatchServer(
            service_names.DispatcherConfig(tls=service_names.Tls("", "none.pem", "none.pem"))
        )


def test_what_a_dispatcher_keeps_is_for_its_user_alone(tmp_path: Path) -> None:
    folder = tmp_path / "work"
    config = service_names.DispatcherConfig(work_dir=folder, fault_tolerant_mode=True)
    with service_names.DispatchServer(config) as dispatcher:
        target = dispatcher.target
        with pytest.raises(FailedPreconditionError, match="another dispatcher that runs uses the journal"):
            service_names.DispatchServer(config)

    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert stat.S_IMODE((folder / "token").stat().st_mode) == 0o600
    assert stat.S_IMODE((folder / "journal").stat().st_mode) == 0o600
    with service_names.DispatchServer(config) as dispatcher:  # and clients can continue
        assert dispatcher.target.partition("@")[0] == target.partition("@")[0]
