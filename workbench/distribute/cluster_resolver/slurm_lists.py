"""Parses Slurm's notation of hosts and numbers of tasks: "n[1-3,7]", "3(x2),1"."""

from __future__ import annotations

import re
from typing import Final

from workbench.errors import InvalidArgumentError

_HOSTS = re.compile(r"(?P<before>[^\[\],\s]*)(?:\[(?P<numbers>[\d,-]+)\](?P<after>[^\[\],\s]*))?")
_NUMBERS = re.compile(r"(\d+)(?:-(\d+))?")
_TASKS = re.compile(r"(\d+)(?:\(x(\d+)\))?")
MOST_TASKS: Final = 1_000_000
"""Limit of tasks and hosts: a range such as 0-999999999 is a mistake, so no such list is built."""


def expand_hostlist(hostlist: str) -> list[str]:
    """The hosts of "n[1-2],m5", in order: n1, n2, m5. Keeps leading zeros; the list may end with a comma.

    Raises:
      InvalidArgumentError: if the text is malformed, or names more than a million hosts.
    """
    hosts: list[str] = []
    position = 0
    while position < len(hostlist):
        found = _HOSTS.match(hostlist, position)
        end = found.end() if found else position
        if found is None or end == position or (end < len(hostlist) and hostlist[end] != ","):
            raise InvalidArgumentError(
                f"malformed host list {hostlist!r} at character {end}: expected n[1-3,7]"
            )
        position = end + 1
        if found["numbers"] is None:
            hosts.append(found["before"])
        else:
            hosts += [
                found["before"] + number + found["after"] for number in _numbers(found["numbers"], hostlist)
            ]
        if len(hosts) > MOST_TASKS:
            raise InvalidArgumentError(f"host list {hostlist!r:.80} names more than {MOST_TASKS:,} hosts")
    return hosts


def expand_tasks_per_node(tasks_per_node: str) -> list[int]:
    """The number of tasks of each node of "3(x2),1": 3, 3, 1.

    Raises:
      InvalidArgumentError: if the text is malformed.
    """
    counts: list[int] = []
    for part in tasks_per_node.split(","):
        found = _TASKS.fullmatch(part)
        if found is None or max(int(found[1]), int(found[2] or 1)) > MOST_TASKS:
            raise InvalidArgumentError(f"malformed numbers of tasks {tasks_per_node!r:.80}: expected 3(x2),1")
        counts += [int(found[1])] * int(found[2] or 1)
    return counts


def _numbers(text: str, hostlist: str) -> list[str]:
    numbers: list[str] = []
    for part in text.split(","):
        found = _NUMBERS.fullmatch(part)
        if found is None:
            raise InvalidArgumentError(
                f"malformed host list {hostlist!r}: {part!r} is no number and no range"
            )
        first, last = found[1], found[2] or found[1]
        if int(last) - int(first) >= MOST_TASKS:
            raise InvalidArgumentError(f"host list {hostlist!r:.80} names more than {MOST_TASKS:,} hosts")
        numbers += [str(number).zfill(len(first)) for number in range(int(first), int(last) + 1)]
    return numbers
