"""Where the user called: by file and line, also of code that stands in two files."""

from __future__ import annotations

import sys
from types import FrameType

from workbench.runtime.user_code.call_sites import call_site

SOURCE = "def where(frame, site):\n    return site(frame(0))\n"


def _where(file: str) -> str:
    names: dict[str, object] = {}
    exec(compile(SOURCE, file, "exec"), names)
    where = names["where"]
    assert callable(where)
    text = where(sys._getframe, call_site)
    assert isinstance(text, str)
    return text


def test_a_site_is_file_and_line() -> None:
    frame: FrameType = sys._getframe()
    assert call_site(frame) == f"test_call_sites.py:{frame.f_lineno}"


def test_equal_code_in_two_files_has_two_sites() -> None:
    assert [_where("/a/one.py"), _where("/a/two.py"), _where("<cell>")] == [
        "one.py:2",
        "two.py:2",
        "<cell>:2",
    ]
