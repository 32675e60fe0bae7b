"""How a replica's exception travels, and which of its lines are the user's."""

from __future__ import annotations

import json
import linecache
import site
import threading
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from tblib import pickling_support

import workbench
from workbench.errors import InvalidArgumentError
from workbench.runtime.comm.failure_report import is_users, rebuild, report


class Picky(Exception):
    """Cannot be made again from its arguments."""

    def __init__(self, what: SimpleNamespace) -> None:
        super().__init__(what.name)


def raised() -> InvalidArgumentError:
    try:
        raise InvalidArgumentError("told") from Picky(SimpleNamespace(name="x"))
    except InvalidArgumentError as error:
        return error


@pytest.mark.parametrize("with_cause", [False, True])
def test_an_error_arrives_also_where_its_cause_cannot(with_cause: bool) -> None:
    error = raised()
    if with_cause:  # as Dask arranges for all exceptions that it knows
        pickling_support.install(error)

    arrived = rebuild(report(1, error))

    assert type(arrived) is InvalidArgumentError
    assert str(arrived) == "told"
    assert isinstance(error.__cause__, Picky)  # still there for its owner


def test_the_frames_of_a_replica_travel_as_text_which_has_the_lines_that_ran() -> None:
    error = raised()
    pickling_support.install(error)  # the frames return as if each function began at the line where it was

    arrived = rebuild(report(1, error))

    assert arrived.__traceback__ is None
    assert error.__traceback__ is not None
    (note,) = arrived.__notes__
    first, place, source = note.splitlines()[:3]
    assert first == "raised on replica 1:"
    assert place.startswith('  File "')
    assert place.endswith(", in raised")
    assert source == '    raise InvalidArgumentError("told") from Picky(SimpleNamespace(name="x"))'


def test_an_error_of_ours_says_on_which_replica_and_at_which_step_it_was_raised() -> None:
    (note,) = rebuild(report(1, raised()), step=7).__notes__

    assert note.startswith("raised on replica 1, step 7:\n")


def test_replicas_that_fail_at_once_find_the_same_file_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    error, others = raised(), list[threading.Thread]()

    class Lines(dict[str, Any]):
        """A `linecache` that another replica changes while one reads through it."""

        def __getitem__(self, name: str) -> Any:
            if not others:
                others.append(threading.Thread(target=report, args=(2, error)))
                others[0].start()
                others[0].join(0.3)
            return super().__getitem__(name)

    monkeypatch.setattr(linecache, "cache", Lines({"deleted.py": (1, 0.0, ["pass\n"], "deleted.py")}))

    failure = report(1, error)
    others[0].join(60)

    assert not others[0].is_alive()
    assert "in raised" in failure.traceback
    assert "deleted.py" not in linecache.cache


@pytest.mark.parametrize(
    "file_name",
    [
        workbench.__file__,
        json.__file__,
        np.__file__,
        "<frozen importlib._bootstrap>",
        "/usr/lib/python3/dist-packages/six.py",
        f"{site.getusersitepackages()}/torch/nn/modules/module.py",
        "/opt/pinned/site-packages/optree/ops.py",
    ],
)
def test_installed_packages_are_not_the_users(file_name: str) -> None:
    assert not is_users(file_name)


@pytest.mark.parametrize(
    "file_name", ["/home/ada/train.py", "/tmp/ipykernel_1/2.py", "<ipython-input-1-a>", "<string>"]
)
def test_scripts_and_cells_are_the_users(file_name: str) -> None:
    assert is_users(file_name)
