"""Call sites in the user's code: short texts such as "train.py:41" or "In[5]:3" for errors and telemetry."""

from __future__ import annotations

from types import CodeType, FrameType

from workbench.backends.users_line import users_frame
from workbench.runtime.user_code.notebook_cells import file_name

_LIMIT = 4096  # number of cached call sites; each notebook cell makes new code objects
# By id, because equal code objects may come from different files or different runs of a cell. The entry keeps the
# object alive, so its id stays unique.
_sites: dict[tuple[int, int], tuple[str, CodeType]] = {}


def call_site(frame: FrameType) -> str:
    """File and line of `frame`; cached for each place in the code."""
    code = frame.f_code
    key = id(code), frame.f_lasti
    known = _sites.get(key)
    if known is None:
        if len(_sites) >= _LIMIT:
            _sites.clear()
        known = _sites[key] = f"{file_name(code.co_filename)}:{frame.f_lineno}", code
    return known[0]


def users_call_site() -> str:
    """The call site of the innermost frame outside this package, "" if there is none."""
    frame = users_frame()
    return "" if frame is None else call_site(frame)
