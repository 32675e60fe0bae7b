"""Where the user called a collective: a short text such as "train.py:41" for errors and telemetry."""

from __future__ import annotations

import os
from types import CodeType, FrameType

_LIMIT = 4096  # sites kept; code objects are new in each notebook cell
# By identity: equal code objects may stand in different files. They are kept for that.
_sites: dict[tuple[int, int], tuple[str, CodeType]] = {}


def call_site(frame: FrameType) -> str:
    """File and line at which `frame` is, made once per place in the code."""
    code = frame.f_code
    key = id(code), frame.f_lasti
    known = _sites.get(key)
    if known is None:
        if len(_sites) >= _LIMIT:
            _sites.clear()
        name = code.co_filename if code.co_filename.startswith("<") else os.path.basename(code.co_filename)
        known = _sites[key] = f"{name}:{frame.f_lineno}", code
    return known[0]
