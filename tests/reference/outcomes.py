"""Cases that are neither right nor wrong, and the access to the public API that finds what is missing."""

from __future__ import annotations

import functools
import importlib
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any


class Missing(Exception):
    """A public name that the case needs does not exist yet."""

    def __init__(self, name: str) -> None:
        super().__init__(f"not built yet: {name}")
        self.name = name


class NotExpressible(Exception):
    """The case describes something that a program with one controller cannot say; the text is the reason."""


class Mismatch(AssertionError):
    """What was observed differs from what is expected."""


def api(*spellings: str) -> Any:
    """The public object under the first spelling that exists, such as "data.Dataset" for `wb.data.Dataset`.

    Raises:
      Missing: if none exists; it names the first spelling.
    """
    for spelling in spellings:
        try:
            return functools.reduce(_attribute, spelling.split("."), importlib.import_module("workbench"))
        except _NoSuchName:
            continue
    raise Missing(f"wb.{spellings[0]}")


def exists(*spellings: str) -> bool:
    """Whether the public API has one of these names."""
    try:
        api(*spellings)
    except Missing:
        return False
    return True


def method(owner: Any, name: str, *, label: str) -> Any:
    """The attribute `name` of `owner`.

    Raises:
      Missing: if there is none; `label` says whose it would be, such as `"wb.data.Dataset"`.
    """
    try:
        return _attribute(owner, name)
    except _NoSuchName:
        raise Missing(f"{label}.{name}") from None


def unpublished(module: str, name: str) -> Any:
    """An object that users reach only through others, by the module that it is in.

    Raises:
      Missing: if it is not there.
    """
    try:
        return _attribute(importlib.import_module(f"workbench.{module}"), name)
    except (ModuleNotFoundError, _NoSuchName):
        raise Missing(f"wb.{module}.{name}") from None


def answer(ask: Callable[[], Any]) -> Any:
    """What `ask` returns, or the exception that it raises.

    Raises:
      Missing: if a public name that it needs does not exist.
      NotExpressible: if one controller cannot say it.
    """
    try:
        return ask()
    except (Missing, NotExpressible):
        raise
    except Exception as error:
        missing = missing_behind(error)
        if missing is not None:
            raise missing from error
        return error


def missing_behind(error: BaseException) -> Missing | None:
    """The `Missing` that `error` amounts to, if the case asked a workbench object for what it does not have.

    An `AttributeError` raised inside the library is a defect of the library and stays what it is.
    """
    if isinstance(error, Missing):
        return error
    if not isinstance(error, AttributeError) or error.obj is None or error.name is None:
        return None
    owner = error.obj if isinstance(error.obj, type | types.ModuleType) else type(error.obj)
    module = owner.__name__ if isinstance(owner, types.ModuleType) else owner.__module__
    if module.split(".")[0] != "workbench" or error.name.startswith("_") or _raised_in_library(error):
        return None
    if isinstance(owner, types.ModuleType):
        return Missing(f"wb{module.removeprefix('workbench')}.{error.name}")
    return Missing(f"{owner.__qualname__}.{error.name}")


class _NoSuchName(Exception):
    """One step of a dotted name failed."""


def _attribute(owner: Any, name: str) -> Any:
    try:
        return getattr(owner, name)
    except AttributeError as error:
        if name not in str(error):
            raise
        raise _NoSuchName from None
    except ModuleNotFoundError as error:
        if error.name is None or error.name.split(".")[0] != "workbench":
            raise
        raise _NoSuchName from None


def _raised_in_library(error: BaseException) -> bool:
    traceback = error.__traceback__
    while traceback is not None and traceback.tb_next is not None:
        traceback = traceback.tb_next
    if traceback is None:
        return False
    code = traceback.tb_frame.f_code
    package = Path(str(importlib.import_module("workbench").__file__)).parent
    # The library reports a name that does not exist by raising in `__getattr__`.
    return code.co_name != "__getattr__" and package in Path(code.co_filename).parents
