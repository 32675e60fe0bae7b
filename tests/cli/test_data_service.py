"""`workbench data-dispatcher` and `workbench data-worker`."""

from __future__ import annotations

import signal
import stat
from pathlib import Path

import pytest

import workbench as wb
from tests.data.service.servers import PATIENCE_SECONDS, Processes, service
from workbench.cli import main


def test_the_commands_serve_until_ctrl_c(tmp_path: Path) -> None:
    processes = Processes(tmp_path)
    try:
        processes.start_dispatcher()
        processes.start_worker()
        dataset = wb.data.Dataset.range(10).apply(
            wb.data.service.distribute("distributed_epoch", processes.target)
        )

        assert sorted(map(int, dataset)) == list(range(10))
        assert stat.S_IMODE(processes.address_file.stat().st_mode) == 0o600
        assert processes.dispatcher is not None
        for process in (processes.workers[0], processes.dispatcher):
            process.send_signal(signal.SIGINT)
            assert process.wait(PATIENCE_SECONDS) == 130
    finally:
        processes.close()


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (["data-dispatcher", "--host", "0.0.0.0"], "refused to listen on 0.0.0.0 without TLS"),
        (["data-dispatcher", "--certificate", "none.pem"], "cannot load certificate 'none.pem'"),
        (["data-worker", "nonsense"], "'nonsense' is not an address"),
        (["data-worker", "grpc://t@127.0.0.1:1", "--dispatcher-timeout", "1"], "has not answered for"),
    ],
)
def test_what_cannot_work_is_said_and_ends_with_status_1(
    command: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(command) == 1
    assert message in capsys.readouterr().err


def test_a_worker_with_a_wrong_token_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with service(0) as target:
        assert main(["data-worker", "grpc://wrong@" + target.rpartition("@")[2]]) == 1
    assert "wrong token" in capsys.readouterr().err
