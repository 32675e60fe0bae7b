"""`workbench join --pods`: which task a pod is, and that it waits for the others; without a cluster of Kubernetes."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from workbench.cli import join, main
from workbench.distribute.cluster_resolver import kubernetes
from workbench.runtime.deploy.tasks import Task
from workbench.runtime.joining.roster import Roster
from workbench.runtime.joining.secret import FILE_VARIABLE, VARIABLE


class _Pods:
    """The API's answers; at first, the second worker is still starting."""

    asked = 0

    def list_pod_for_all_namespaces(self, label_selector: str) -> Any:
        found = {"job-name=train": ["192.0.2.7", "192.0.2.8"], "app=ps": ["127.0.0.1"]}[label_selector]
        self.asked += 1
        phases = ["Running", "Pending" if self.asked == 1 else "Running"]
        pods = [
            SimpleNamespace(
                metadata=SimpleNamespace(name=f"pod-{number}"),
                status=SimpleNamespace(phase=phase, pod_ip=address),
            )
            for number, (address, phase) in enumerate(zip(found, phases, strict=False))
        ]
        return SimpleNamespace(items=pods)


@pytest.fixture
def joined(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[Roster]:
    """What `join` was called with."""
    rosters: list[Roster] = []
    for name in ("TF_CONFIG", "SLURM_STEP_NODELIST", VARIABLE):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv(FILE_VARIABLE, str(tmp_path / "secret"))
    monkeypatch.setattr(join, "join", lambda roster, **_: rosters.append(roster))
    monkeypatch.setattr(join, "_RETRY_SECONDS", 0.0)
    return rosters


def test_a_pod_is_the_task_whose_address_it_has_and_waits_for_the_others(
    joined: list[Roster], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pods = _Pods()
    monkeypatch.setattr(kubernetes, "_client", lambda: pods)
    assert main(["join", "--pods", "worker=job-name=train", "--pods", "ps=app=ps"]) == 0
    (roster,) = joined
    assert (roster.task, roster.chief, roster.leads) == (Task("ps", 0), Task("worker", 0), False)
    assert roster.address == "192.0.2.7:8470"
    assert roster.tasks == (Task("worker", 0), Task("worker", 1), Task("ps", 0))
    assert "waits for the pods: pod 'pod-1' (selector 'job-name=train') is Pending" in capsys.readouterr().out


def test_pods_that_do_not_come_end_the_wait(
    joined: list[Roster], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def nobody(label_selector: str) -> Any:
        return SimpleNamespace(items=[])

    monkeypatch.setattr(kubernetes, "_client", lambda: SimpleNamespace(list_pod_for_all_namespaces=nobody))
    monkeypatch.setattr(join, "_RETRY_SECONDS", 0.4)
    assert main(["join", "--pods", "worker=job-name=train", "--timeout", "1"]) == 1
    assert joined == []
    assert "the address does not tell which task this is" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--pods", "worker"], "write pods like worker=job-name=train"),
        (["--jobs", "worker=0"], "write jobs like worker=2,ps=1"),
        (["--jobs", "Worker=1"], "write jobs like worker=2,ps=1"),
        (["--jobs", "worker=1,worker=2"], "job worker occurs twice in worker=1,worker=2"),
    ],
)
def test_options_that_cannot_be_read_show_how_they_are_written(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        main(["join", *arguments])
    assert message in capsys.readouterr().err
