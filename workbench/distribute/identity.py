"""Ids that identify strategies, variables and datasets in all processes."""

from __future__ import annotations

import itertools
import os
import uuid

_salt = uuid.uuid4().hex[:8]  # process ids are reused, and exist on every host
_numbers = itertools.count()


def new_id() -> str:
    """An id that is unique over all calls in all processes, including forks of this one."""
    return f"{os.getpid():x}-{_salt}-{next(_numbers)}"
