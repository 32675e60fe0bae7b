"""What replicas print arrives in the notebook, line by line, with the replica's number."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterator

import pytest

from tests.runtime.conftest import LAYOUTS, Run, runner
from workbench import runtime
from workbench.runtime.replica.env import ReplicaEnv


@pytest.fixture(scope="module", params=[name for name in LAYOUTS if name != "threads"])
def any_cluster(request: pytest.FixtureRequest) -> Iterator[runtime.Cluster]:
    """In threads of this process, replicas print to what sys.stdout was on connecting: see the last test."""
    with runtime.connect(**LAYOUTS[request.param]) as cluster:
        yield cluster


def test_lines_carry_the_replica(run_any: Run, capsys: pytest.CaptureFixture[str]) -> None:
    def program(env: ReplicaEnv) -> None:
        print("hello from", env.rank)
        print("to stderr", env.rank, file=sys.stderr)

    run_any(program)
    out, err = capsys.readouterr()
    assert sorted(out.splitlines()) == ["[replica 0] hello from 0", "[replica 1] hello from 1"]
    assert sorted(err.splitlines()) == ["[replica 0] to stderr 0", "[replica 1] to stderr 1"]


def test_parts_of_a_line_become_one_and_an_unfinished_one_ends_with_the_step(
    run_any: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    def program(env: ReplicaEnv) -> None:
        if env.rank == 0:
            print("a", end="")
            print("b", end="")
            print("c\nd", end="")

    run_any(program)
    assert capsys.readouterr().out.splitlines() == ["[replica 0] abc", "[replica 0] d"]


def test_output_of_a_failing_step_is_shown(run_any: Run, capsys: pytest.CaptureFixture[str]) -> None:
    def program(env: ReplicaEnv) -> None:
        print("last words", end="")
        raise ValueError("x")

    with pytest.raises(ValueError, match="x"):
        run_any(program)
    run_any(lambda env: None)
    assert "[replica 0] last words" in capsys.readouterr().out


def test_the_drivers_own_output_stays_as_it_was(run_any: Run, capsys: pytest.CaptureFixture[str]) -> None:
    run_any(lambda env: None)
    print("mine")
    assert capsys.readouterr().out == "mine\n"


def test_an_endless_line_is_cut(run_any: Run, capsys: pytest.CaptureFixture[str]) -> None:
    run_any(lambda env: print("x" * 100_000))
    assert len(capsys.readouterr().out) < 30_000


def test_replicas_in_this_process_are_told_from_the_driver(capsys: pytest.CaptureFixture[str]) -> None:
    with runtime.connect(**LAYOUTS["threads"], replace=True) as cluster:
        run = runner(cluster.group(cluster.devices, label="Test"))
        run(lambda env: print("theirs", env.rank))
        print("mine")
    assert sorted(capsys.readouterr().out.splitlines()) == [
        "[replica 0] theirs 0",
        "[replica 1] theirs 1",
        "mine",
    ]
    assert type(sys.stdout).__name__ != "ReplicaOutput"


def test_what_the_notebooks_output_cannot_take_is_escaped_and_fails_no_step(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    raw = io.BytesIO()
    with runtime.connect(replicas=1) as cluster:
        run = runner(cluster.group(cluster.devices, label="Test"))
        with monkeypatch.context() as patched:
            patched.setattr(sys, "stdout", io.TextIOWrapper(raw, encoding="ascii", write_through=True))
            assert run(lambda env: print("caf\xe9 \u2713") or 5).values() == [5]
            assert run(lambda env: 6).values() == [6]
            assert raw.getvalue().splitlines() == [rb"[replica 0] caf\xe9 \u2713"]


def test_an_output_that_was_closed_fails_no_step(monkeypatch: pytest.MonkeyPatch) -> None:
    closed = io.StringIO()
    closed.close()
    with runtime.connect(replicas=1, replace=True) as cluster:
        run = runner(cluster.group(cluster.devices, label="Test"))
        with monkeypatch.context() as patched:
            patched.setattr(sys, "stdout", closed)
            assert run(lambda env: print("to nobody") or 5).values() == [5]
            assert run(lambda env: 6).values() == [6]
