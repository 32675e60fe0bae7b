"""Ids that identify strategies, variables and datasets in all processes."""

from __future__ import annotations

import itertools
import os
import uuid

_salt = uuid.uuid4().hex[:8]  # process ids are reused, and exist on every host
_numbers = itertools.count()


def new_id() -> str:
    """An id that no other call gives, in this process or in another one, forked off this one or not."""
    return f"{os.getpid():x}-{_salt}-{next(_numbers)}"
