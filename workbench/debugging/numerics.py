"""check_numerics: raises an error for NaN and infinity that says which replica made them, where and at which step."""

from __future__ import annotations

import contextlib
import math
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

import numpy as np

from workbench import tree
from workbench.backends import cupy as gpu
from workbench.backends import cupy_contents
from workbench.backends.from_gpu import fetched
from workbench.backends.numpy import can_be_infinite, view
from workbench.debugging.first_operation import NotebookErrors, stopping
from workbench.debugging.gpu_lines import watched_lines
from workbench.debugging.operands import dtype_of, given, named, not_finite
from workbench.errors import InvalidArgumentError, NotFinite

_T = TypeVar("_T")


class _Followed:
    """Whether the notebook's process has enabled checks for functions that run on its behalf."""

    __slots__ = ("enabled",)

    def __init__(self) -> None:
        self.enabled = False


class _Thread(threading.local):
    """State of the calling thread.

    Attributes:
      place: Where it computes, such as "on replica 1 at step 17"; "" without checks.
      followed: The setting that it follows, shared with the threads that it starts.
    """

    def __init__(self) -> None:
        self.place = ""
        self.followed = _Followed()


thread = _Thread()
_notebook = NotebookErrors()
_enabled = False
_follows = False  # whether any thread has ever followed one; most processes stop here


def check_numerics(tensor: _T, message: str, name: str | None = None) -> _T:
    """Returns `tensor` if all of its elements are finite (as tf.debugging.check_numerics).

    Args:
      tensor: An array, or a number, of a floating dtype, of any shape.
      message: The beginning of the error's message.
      name: Taken for compatibility, without effect.

    Raises:
      NotFinite: for NaN and infinity, with how many there are.
      InvalidArgumentError: for other dtypes.
      TypeError: if `message` is not text.

    >>> wb.debugging.check_numerics(np.array([1.0, 2.0]), "loss")
    array([1., 2.])
    >>> wb.debugging.check_numerics(np.array([1.0, np.nan]), "loss")
    Traceback (most recent call last):
        ...
    workbench.errors.NotFinite: loss: 1 NaN and 0 infinite of 2 elements of float64[2], the first at [1]
    """
    del name
    require_text(message, "check_numerics")
    tensor = given(tensor)  # checks the returned value: as a float32, 1e300 is infinite
    if is_finite_scalar(tensor):
        return tensor
    if gpu.is_gpu_array(tensor) and _is_floating(dtype_of(tensor)) and all(cupy_contents.finite([tensor])):
        return tensor
    if not _is_floating(dtype := dtype_of(tensor)):
        raise InvalidArgumentError(f"{message}: check_numerics checks floating dtypes, got {named(dtype)}")
    array = view(fetched(tensor))
    if found := not_finite(array):
        raise NotFinite(f"{message}: {found}")
    return tensor


def require_text(message: Any, which: str) -> None:
    """Rejects a missing message, whose place another argument took."""
    if not isinstance(message, str | bytes):
        raise TypeError(f"{which} takes a text as its second argument, the message, got {message!r:.60}")


def is_finite_scalar(x: Any) -> bool:
    """Whether this is a finite NumPy float; takes a fraction of a microsecond."""
    return isinstance(x, np.floating) and math.isfinite(x)


def enable_check_numerics(stack_height_limit: int = 30, path_length_limit: int = 50) -> None:
    """Raises where a NaN or an infinity appears (as tf.debugging.enable_check_numerics). Idempotent.

    From now on these raise `NotFinite`:

    * The first operation of NumPy that makes one, in replica functions from the next `strategy.run` on, in functions
      that a `ClusterCoordinator` schedules, in functions of datasets, also of distributed ones, and in the calling
      thread. The error names operation, line, and replica and step, or worker and function. The processor detects such
      operations, so this takes no time. Your own `np.errstate` and `np.seterr` still apply.
    * The first operation of JAX that makes one, likewise, except in the calling thread.
    * The first line of a replica function after which a variable holds a CuPy array with one, likewise. The GPU checks
      these arrays when it gets to them, and the line does not wait: the error may come some lines later. On Python
      3.11, not under a debugger.
    * Arrays that replicas pass to `all_reduce` or assign to variables, results of replica functions, scheduled
      functions and functions of datasets, and elements of datasets, also those that CuPy computed: workbench reads each
      array once.
    * The result of an update that is sent to a parameter server from now on: the variable, or the rows that change, and
      the optimizer's state for them. The server makes the update on a copy first, and rejects it.

    If NumPy uses several threads, as for a large matrix product, the error appears where its result is used. If a
    dataset calls a function in another process, the error appears in the function's result. Functions of a
    `TPUStrategy` are compiled again, with a check of each operation: the error names the first operation that made a
    value that is not finite from finite ones, and variables keep the values that they had.

    Args:
      stack_height_limit: Accepted for compatibility, without effect.
      path_length_limit: Accepted for compatibility, without effect.

    >>> wb.debugging.enable_check_numerics()
    >>> strategy.run(lambda: np.array([1.0, np.inf]))
    Traceback (most recent call last):
        ...
    workbench.errors.NotFinite: what the replica function returned is not finite on replica ...
    >>> wb.debugging.disable_check_numerics()
    """
    global _enabled
    _enabled = True
    _notebook.enable()


def disable_check_numerics() -> None:
    """Undoes `enable_check_numerics`, however often it was called; call it in the same thread."""
    global _enabled
    _enabled = False
    _notebook.disable()


def is_enabled() -> bool:
    """Whether steps and functions of datasets check what they compute."""
    return _enabled or (_follows and thread.followed.enabled)


def sender() -> str:
    """Where the calling thread computes, for checks in another process; "" if there are none."""
    return thread.place or ("in the notebook" if _enabled else "")


def follow(enabled: bool) -> None:
    """Sets whether functions of datasets are checked on this thread and those that it starts, as in the notebook."""
    global _follows
    if enabled:
        _follows = True
    if _follows:
        thread.followed.enabled = enabled


def shared(target: Callable[..., _T]) -> Callable[..., _T]:
    """`target` for another thread, which follows the same setting as this one, also later."""
    followed = thread.followed

    def run(*args: Any) -> _T:
        thread.followed = followed
        return target(*args)

    return run


@contextlib.contextmanager
def checking(place: str) -> Iterator[None]:
    """Checks what this thread computes inside the block; `place` says where, such as "on replica 1 at step 17".

    Raises:
      NotFinite: where an operation of the block makes a NaN or an infinity.
    """
    outer = thread.place
    thread.place = place
    try:
        with stopping(place), watched_lines(place):
            yield
    finally:
        thread.place = outer


def check(value: _T, what: str) -> _T:
    """Returns a nested structure; if this thread is checked, only if its floating arrays are finite.

    Args:
      value: Arrays of any kind; anything but arrays of numbers is ignored.
      what: A description for the error: "assign_sub of variable 'w:0'".

    Raises:
      NotFinite: naming the place, `what`, and how many elements are not finite.
    """
    if thread.place:
        for array in _maybe_not_finite(tree.flatten(value)[0]):
            if found := not_finite(array):
                raise NotFinite(f"{what} is not finite {thread.place}: {found}")
    return value


def _is_floating(dtype: np.dtype[Any]) -> bool:
    return dtype.kind == "f" or dtype.name.startswith(("bfloat", "float"))


def _maybe_not_finite(leaves: Sequence[Any]) -> Iterator[np.ndarray]:
    """The arrays that may have elements that are not finite, on the host, in their order.

    CuPy's arrays are checked on the device, with one wait for all of them, and only bad ones are copied.
    """
    on_gpu = {k for k, leaf in enumerate(leaves) if type(leaf).__module__.partition(".")[0] == "cupy"}
    floats = [k for k in sorted(on_gpu) if hasattr(leaves[k], "dtype") and can_be_infinite(leaves[k].dtype)]
    finite = (
        dict(zip(floats, cupy_contents.finite([leaves[k] for k in floats]), strict=True)) if floats else {}
    )
    for k, leaf in enumerate(leaves):
        if k in on_gpu:
            if not finite.get(k, True):
                yield fetched(leaf)
            continue
        try:
            array = view(leaf)
        except Exception:  # texts, values that are being traced
            continue
        if can_be_infinite(array.dtype):
            yield array
