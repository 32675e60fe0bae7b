"""Runs NumPy's arithmetic at the user's line, so that NumPy's warnings name the line that called workbench.

NumPy warns about an overflow at the innermost Python frame, which would be one of this package: the warning would name
a file that the user never opened, filters would see our module, and all of the user's lines would share one registry of
shown warnings. So arithmetic is called from a frame with the user's file, line, module and registry. It changes neither
`warnings` nor NumPy's error state: filters, `np.errstate` and `catch_warnings` work as if the user had called NumPy.
"""

from __future__ import annotations

import ast
import builtins
import contextlib
import functools
import os
import sys
import threading
import warnings
from collections.abc import Callable
from types import CodeType, FrameType, FunctionType
from typing import Any, Final, NamedTuple, TypeVar

from numpy.lib import mixins

from workbench import errors

_T = TypeVar("_T")
Apply = Callable[..., Any]
"""`apply(function, *args, **more)` calls `function(*args, **more)`, such as a ufunc with two operands and `out`."""

_LIMIT = 4096  # lines kept; each notebook cell makes new code objects
_STAND_IN = "__workbench_stand_in__"  # the name in a frame's globals
PACKAGE: Final = os.path.dirname(os.path.abspath(errors.__file__)) + os.sep
"""The start of the file names of this package's own code."""
# Includes code in between: NumPy's operators for our classes, `with` on our generators, our cached properties.
_OURS = PACKAGE, mixins.__file__, contextlib.__file__, functools.__file__
# By identity, because equal code objects may come from different files or different runs of a cell. The entry keeps
# the object alive, so its id stays unique.
_applies: dict[tuple[int, int], tuple[Apply, CodeType]] = {}
_here = threading.local()


class Line(NamedTuple):
    """A line of the user's code; sent to the replicas.

    Attributes:
      file: The name of the file in its code object.
      number: From 1.
      function: Its function.
      module: Its module, which warning filters use.
    """

    file: str
    number: int
    function: str
    module: str


def is_users(frame: FrameType) -> bool:
    """Whether a frame is outside this package, and not between the user and the package."""
    return not frame.f_code.co_filename.startswith(_OURS)


def users_frame() -> FrameType | None:
    """The innermost frame outside this package; None on a thread that runs no user code."""
    frame: FrameType | None = sys._getframe(1)
    # Inlined from `is_users`, because every step runs this.
    while frame is not None and frame.f_code.co_filename.startswith(_OURS):
        frame = frame.f_back
    return None if frame is None or frame.f_globals.get("__name__") == "threading" else frame


def stands_in(frame: FrameType) -> bool:
    """Whether a frame only imitates the user's, which is further out in the stack."""
    return _STAND_IN in frame.f_globals


def directly(function: Callable[..., Any], *args: Any, **more: Any) -> Any:
    """Calls `function(*args, **more)`."""
    return function(*args, **more)


def apply_at_users_line() -> Apply:
    """Returns a caller that makes functions appear to be called by the user's current line; cached per line.

    On a thread that runs no user code, this is the line for which the thread works; see `shared`.
    """
    frame = users_frame()
    if frame is None:
        return getattr(_here, "apply", directly)
    key = id(frame.f_code), frame.f_lasti
    known = _applies.get(key)
    if known is None:
        if len(_applies) >= _LIMIT:
            _applies.clear()
        # Keeps only the registry: the user's other globals may be large and must not live as long as this.
        register = frame.f_globals.setdefault("__warningregistry__", {})
        known = _applies[key] = _applying(_line_of(frame), register), frame.f_code
    return known[0]


def warn(message: str, category: type[Warning]) -> None:
    """Warns at the user's current line, however deep in this package the reason was found."""
    apply_at_users_line()(warnings.warn, message, category)


def shared(target: Callable[..., _T]) -> Callable[..., _T]:
    """`target` for another thread, which works for the user's current line."""
    apply = apply_at_users_line()

    def run(*args: Any) -> _T:
        _here.apply = apply
        return target(*args)

    return run


def users_line() -> Line | None:
    """The user's current line."""
    frame = users_frame()
    return None if frame is None else _line_of(frame)


@functools.lru_cache(_LIMIT)
def apply_at(line: Line | None) -> Apply:
    """Returns a caller that makes functions appear to be called by `line`, possibly of another process."""
    return directly if line is None else _applying(line, {})


def _line_of(frame: FrameType) -> Line:
    # The name that `warnings` uses for a module without one.
    module = str(frame.f_globals.get("__name__", "<string>"))
    return Line(frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_name, module)


def _applying(line: Line, register: dict[Any, Any]) -> Apply:
    code = _TEMPLATE.replace(
        co_filename=line.file, co_firstlineno=line.number, co_name=line.function, co_qualname=line.function
    )
    known = {
        "__name__": line.module,
        "__warningregistry__": register,
        "__builtins__": builtins,  # for imports by a warning
        _STAND_IN: True,
    }
    made: Apply = FunctionType(code, known)
    return made


def _template() -> CodeType:
    """A one-line function's code, without columns, so tracebacks do not underline parts of the user's line."""
    tree = ast.parse("lambda function, *args, **more: function(*args, **more)", mode="eval")
    for node in ast.walk(tree):
        if isinstance(node, ast.expr | ast.arg):
            node.col_offset = node.end_col_offset = -1
    code: CodeType = eval(compile(tree, "<template>", "eval")).__code__
    return code


_TEMPLATE = _template()
