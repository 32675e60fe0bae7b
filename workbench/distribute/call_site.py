"""Where the user called a collective: a short text such as "train.py:41" for errors and telemetry."""

from __future__ import annotations

import os
from types import CodeType, FrameType

_LIMIT = 4096  # sites kept; code objects are new in each notebook cell
_sites: dict[tuple[CodeType, int], str] = {}


def call_site(frame: FrameType) -> str:
    """File and line at which `frame` is, made once per place in the code."""
    key = frame.f_code, frame.f_lasti
    site = _sites.get(key)
    if site is None:
        if len(_sites) >= _LIMIT:
            _sites.clear()
        name = frame.f_code.co_filename
        name = name if name.startswith("<") else os.path.basename(name)
        site = _sites[key] = f"{name}:{frame.f_lineno}"
    return site
