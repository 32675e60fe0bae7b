"""Finds out where Python is in a worker that cannot report it because C code holds the GIL.

At a signal, `faulthandler` in the worker writes the stacks of all threads to an unnamed file, which needs no lock. The
driver sends the signal and reads the file through /proc, so this works only for processes of this machine and user.
"""

from __future__ import annotations

import faulthandler
import itertools
import os
import re
import signal
import time
from pathlib import Path
from typing import Final, NamedTuple

from workbench.backends.users_line import PACKAGE
from workbench.runtime.user_code.notebook_cells import file_name

_FILE: Final = "workbench-stacks"
_SIGNAL: Final = getattr(signal, "SIGRTMAX", 0) - 5  # a signal that nothing else uses
_PATIENCE_SECONDS: Final = 0.5
_MOST_CALLS: Final = 5
_CALL = re.compile(r'  File "(.*)", line (\d+|\?\?\?) in (.*)')
_RUNS_A_STEP: Final = os.path.join(PACKAGE, "runtime/replica/executor.py"), "_call"
_own = -1


class Call(NamedTuple):
    """A call of the user's code that has not returned.

    Attributes:
      function: Its name.
      place: Its current line, such as "train.py:12".
    """

    function: str
    place: str


def offer() -> None:
    """Lets other processes of this user request the stacks of this one; call it once per process."""
    global _own
    if _own < 0 and hasattr(os, "memfd_create"):
        _own = os.memfd_create(_FILE, os.MFD_CLOEXEC)
        faulthandler.register(_SIGNAL, file=_own, all_threads=True)


def user_calls(pid: int) -> list[Call]:
    """The active calls of user code of the replica in process `pid`, innermost first.

    It ignores replicas that wait in a collective. [] if the process does not answer, or several replicas are in the
    user's code, as the stacks do not show which of them holds the lock.
    """
    file = _file_of(pid)
    if file is None:
        return []  # the signal would end the process
    try:
        before = len(file.read_bytes())
        os.kill(pid, _SIGNAL)
        text, ends = "", time.monotonic() + _PATIENCE_SECONDS
        while not text.endswith("\n") or not _calls_by_replica(text):
            if time.monotonic() > ends:
                break
            time.sleep(0.01)  # nothing reports when another process's signal handler has finished
            text = file.read_bytes()[before:].decode(errors="replace")
    except OSError:
        return []
    found = _calls_by_replica(text)
    return list(found.pop()) if len(found) == 1 else []


def _file_of(pid: int) -> Path | None:
    try:
        for entry in Path(f"/proc/{pid}/fd").iterdir():
            if os.readlink(entry).startswith(f"/memfd:{_FILE}"):
                return entry
    except OSError:
        pass
    return None


def _calls_by_replica(text: str) -> set[tuple[Call, ...]]:
    """The user's calls on each thread that is inside a step, from the output of `faulthandler`."""
    found = set()
    for thread in re.split(r"\n\s*\n", text):
        calls = _CALL.findall(thread)
        if not any((path, name) == _RUNS_A_STEP for path, _, name in calls):
            continue
        user = itertools.takewhile(lambda call: not call[0].startswith(PACKAGE), calls)
        found.add(tuple(Call(name, f"{file_name(path)}:{line}") for path, line, name in user)[:_MOST_CALLS])
    return found - {()}
