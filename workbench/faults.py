"""Named points at which tests make a process fail: `fault("all_reduce.after_send", replica=1)`.

This does nothing unless the environment variable WB_FAULTS holds a JSON list of rules when this module is imported or
`arm` is called, such as `[{"point": "all_reduce.after_send", "replica": 1, "nth": 3, "action": "kill"}]`. Actions:
"kill" (SIGKILL to the own process), "stop" (SIGSTOP), "exit:N" (`os._exit(N)`), "raise", "full" (the error of a full
disk), "touch:PATH" (create a file, for tests that wait for one), "block:PATH" (continue once the file exists). Faults
that users inject (`workbench.testing`) use these actions, but no named points.
"""

from __future__ import annotations

import errno
import json
import os
import signal
import time
from typing import Any

_RULES: list[dict[str, Any]] = []
_counts: dict[int, int] = {}


def arm() -> None:
    """Reads the rules from the environment: that of a forked process is known only after this module was imported."""
    _RULES[:] = json.loads(os.environ.get("WB_FAULTS") or "[]")


def fault(point: str, *, replica: int = -1) -> None:
    """A point at which tests may make this process fail; otherwise, it does nothing."""
    if _RULES:
        _apply(point, replica)


def _apply(point: str, replica: int) -> None:
    for index, rule in enumerate(_RULES):
        if rule["point"] != point or rule.get("replica", replica) != replica:
            continue
        _counts[index] = _counts.get(index, 0) + 1
        if _counts[index] == rule.get("nth", 1) and not _fired_before(rule):
            act(rule["action"], point)


def _fired_before(rule: dict[str, Any]) -> bool:
    """For a rule with "once": PATH records that it fired, so it fires in only one process, even after a restart."""
    path = rule.get("once")
    if path is None:
        return False
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    except FileExistsError:
        return True
    return False


def act(action: str, point: str) -> None:
    """Makes this process fail as `action` says, at `point`."""
    kind, _, argument = action.partition(":")
    match kind:
        case "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        case "stop":
            os.kill(os.getpid(), signal.SIGSTOP)
        case "exit":
            os._exit(int(argument))
        case "raise":
            raise RuntimeError(f"injected at {point}")
        case "full":
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        case "touch":
            os.close(os.open(argument, os.O_CREAT | os.O_WRONLY, 0o600))
        case "block":
            while not os.path.exists(argument):
                time.sleep(0.005)
        case _:
            raise ValueError(f"WB_FAULTS: unknown action {action!r}")


arm()
