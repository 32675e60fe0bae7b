"""Pickling by value: functions and classes of notebooks and scripts, which other processes cannot import."""

from __future__ import annotations

import io
from collections import ChainMap
from collections.abc import Callable
from types import CodeType
from typing import Any, ClassVar

import cloudpickle


def dumps(value: Any, buffer_callback: Callable[[Any], object] | None = None) -> bytes:
    """As `cloudpickle.dumps`, but code keeps the name of its file; `pickle.loads` reads it.

    Errors, call sites and stacks name lines by this file, and `linecache` finds the lines of a notebook's cell by it.
    From 3.1.3 on, cloudpickle leaves it out, so that bytes do not depend on where a function was defined.
    """
    with io.BytesIO() as file:
        _Pickler(file, protocol=5, buffer_callback=buffer_callback).dump(value)
        return file.getvalue()


def _reduced(code: CodeType) -> tuple[Any, ...]:
    make, arguments = cloudpickle.Pickler.dispatch_table[CodeType](code.replace(co_filename=""))
    # Always a new string: otherwise the pickled bytes depend on how many code objects happen to share one.
    return _code, (make, arguments, "".join(list(code.co_filename)))


def _code(make: Callable[..., CodeType], arguments: tuple[Any, ...], filename: str) -> CodeType:
    return make(*arguments).replace(co_filename=filename)


class _Pickler(cloudpickle.Pickler):  # type: ignore[misc]
    dispatch_table: ClassVar = ChainMap({CodeType: _reduced}, cloudpickle.Pickler.dispatch_table)
