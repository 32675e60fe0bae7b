"""What a user's function returns, found out without reading data.

The function is called twice with made-up values that fit the input's spec: ones and twos, and where a
dimension is unknown, two and three rows; where the rank is, a vector and a matrix; texts of one byte and of two, which
the parsers of examples take for examples that have what is wanted. A dimension of the result that
differs between the two calls is unknown.
"""

from __future__ import annotations

import contextlib
import inspect
import math
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any, Final, TypeVar

import numpy as np

from workbench import tree
from workbench.backends.numpy import STRING
from workbench.backends.users_line import shared, warn
from workbench.data.sources.memory import Whole
from workbench.data.spec import DatasetSpec, ElementsSpec, TensorSpec, any_rank, any_size, relax, spec_of
from workbench.data.stage import Pipeline
from workbench.data.stages.ordering.select import Repeat
from workbench.data.structure import flatten_element
from workbench.data.tables import Failed
from workbench.debugging import observing
from workbench.debugging.observing import Place
from workbench.errors import DataWarning, OutOfRangeError
from workbench.io.made_up import MadeUpText

_Result = TypeVar("_Result")


class UnfitResult(TypeError):
    """What a function returns is of a kind that no element holds."""


_FEWEST_EXAMPLES: Final = 100
_SECONDS: Final = 3.0
_TELLING_SECONDS: Final = 3.0


def call(fn: Callable[..., Any], element: Any) -> Any:
    """Calls `fn` as map does: a plain tuple becomes several arguments, anything else is one.

    Raises:
      NotFinite: if `enable_check_numerics` is in effect, and what it computes is not finite.
    """
    observation = observing.current()
    if observation is None:
        return _applied(fn, element)
    what = f"what {getattr(fn, '__name__', 'the function')} returned"
    args = element if type(element) is tuple else (element,)
    return observation.call(fn, args, {}, Place("in a dataset", what))


def _applied(fn: Callable[..., Any], element: Any) -> Any:
    return fn(*element) if type(element) is tuple else fn(element)


def check_arguments(fn: Callable[..., Any], element_spec: Any, stage: str) -> None:
    """Refuses a function that cannot take the elements.

    Args:
      fn: The function.
      element_spec: The nested spec of the elements.
      stage: Name of the stage, for errors.

    Raises:
      TypeError: if the number of arguments does not fit.
    """
    try:
        signature = inspect.signature(fn)
    except (TypeError, ValueError):  # built-in functions need not tell
        return
    arguments = element_spec if type(element_spec) is tuple else (element_spec,)
    try:
        signature.bind(*arguments)
    except TypeError as error:
        name = getattr(fn, "__name__", repr(fn))
        raise TypeError(
            f"{stage}: {name}{signature} cannot take an element of {len(arguments)} component(s) "
            f"{element_spec}: {error}; "
            "a tuple element is unpacked over the arguments, a dict is one argument"
        ) from None


def result_spec(fn: Callable[..., Any], upstream: Pipeline) -> Any:
    """The spec of `fn`'s result for elements of `upstream`.

    Raises:
      UnfitResult: if it is of a kind that no element holds.
      Exception: whatever `fn` raises for the made-up values.
    """
    first, second = result_examples(fn, upstream)
    try:
        specs = _spec(first), _spec(second)
    except TypeError as error:
        raise UnfitResult(str(error)) from None
    return relax(*specs)


def result_examples(fn: Callable[..., Any], upstream: Pipeline) -> tuple[Any, Any]:
    """What `fn` returns for two made-up elements of `upstream`."""
    return result_example(fn, upstream, 1), result_example(fn, upstream, 2)


def result_example(fn: Callable[..., Any], upstream: Pipeline, value: int = 1) -> Any:
    """What `fn` returns for one made-up element of `upstream`, full of `value`."""
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):  # nobody asked about these values
        return _applied(fn, made_up(upstream, value))


def made_up(upstream: Pipeline, value: int) -> Any:
    """An element that fits the spec of those of `upstream`, full of `value`.

    Raises:
      TypeError: if a component is no array.
    """
    return tree.map(lambda part: _made_up(part, value, upstream), upstream.element_spec)


def made_up_bytes(element_spec: Any) -> int:
    """How much memory the arrays of a made-up element take."""
    total = 0
    for spec in tree.flatten(element_spec)[0]:
        if isinstance(spec, DatasetSpec):
            total += made_up_bytes(spec.element_spec)
        elif isinstance(spec, TensorSpec):
            total += spec.dtype.itemsize * math.prod(_made_up_shape(spec, 2))
    return total


def refuse_unknown(upstream: Pipeline) -> None:
    """Refuses elements that nobody knows: nothing that is made of them would be known, however long one looked.

    Raises:
      OutOfRangeError: if it cannot be found out what elements of `upstream` look like.
    """
    try:
        _ = upstream.element_spec
    except OutOfRangeError:
        raise
    except Exception:
        return  # its elements may tell nevertheless


def first_result(what: str, learn: Callable[[Any], _Result], upstream: Pipeline) -> _Result:
    """What `learn` returns for the first element of `upstream` for which it returns something.

    It goes on as long as elements fail, but not for ever: at least 100 of them, and for 3 seconds. For an element that
    does not come it waits as the iteration would, and warns after 3 seconds: nobody can tell whether it comes yet.

    Args:
      what: What is to be found out, for errors.
      learn: Gets an element; what it raises is the element's error, and the next one is tried.
      upstream: The pipeline whose elements are tried.

    Raises:
      OutOfRangeError: if none was found; the first error is its cause.
    """
    failure: Exception | None = None
    none = "no element"
    deadline = time.monotonic() + _SECONDS
    with _told_if_slow(what, upstream) as came:
        for tried, element in enumerate(upstream.attempted(), 1):
            came()
            if isinstance(element, Failed):
                failure = failure or element.error
            else:
                try:
                    return learn(element)
                except Exception as error:
                    failure = failure or error
            if tried >= _FEWEST_EXAMPLES and time.monotonic() >= deadline:
                none = f"none of the first {tried:,} elements"
                break
    why = f"{upstream!r} has no element"
    if failure is not None:
        why = f"{none} could be made, the first because of {type(failure).__name__}: {failure}"
    raise OutOfRangeError(
        f"{what} cannot be found out: {why}; and the function refuses made-up values"
    ) from failure


@contextlib.contextmanager
def _told_if_slow(what: str, upstream: Pipeline) -> Iterator[Callable[[], None]]:
    """Warns if the first element does not come for some time; what it gives is called when it has come."""
    told = (
        f"{what} is learnt from the first element of {upstream!r}, as the function refuses made-up values, and none "
        f"has come for {_TELLING_SECONDS:g} s; the search goes on until one comes or the data ends"
    )
    timer = threading.Timer(_TELLING_SECONDS, shared(warn), (told, DataWarning))
    timer.daemon = True
    timer.start()
    try:
        yield timer.cancel
    finally:
        timer.cancel()


def learnt_spec(spec: Any, upstream: Pipeline) -> Any:
    """The nested spec of results, of which `spec` is that for one element of `upstream`.

    Those for other elements may have other sizes, whatever `upstream` tells of its own; and another rank, where the
    rank of its elements is unknown.
    """
    try:
        specs = tree.flatten(upstream.element_spec)[0]
    except Exception:  # its elements told nevertheless
        return any_size(spec)
    return any_size(spec) if all(map(_has_rank, specs)) else any_rank(spec)


def _has_rank(spec: Any) -> bool:
    if isinstance(spec, ElementsSpec):
        return all(map(_has_rank, tree.flatten(spec.element_spec)[0]))
    return spec.shape is not None


def _spec(result: Any) -> Any:
    leaves, structure = flatten_element(result)
    return structure.pack([spec_of(leaf) for leaf in leaves])


def _made_up(spec: Any, value: int, upstream: Pipeline) -> Any:
    if isinstance(spec, DatasetSpec):
        element = tree.map(lambda inner: _made_up(inner, value, upstream), spec.element_spec)
        return upstream.with_source(Whole.of(element), (Repeat(value),))
    if not isinstance(spec, TensorSpec):
        raise TypeError(f"nothing can be made up for {spec}")
    shape = _made_up_shape(spec, value)
    if spec.dtype == STRING:
        text = MadeUpText(str(value).encode() * value)  # of another length for another value
        if not shape:
            return text
        array = np.empty(shape, STRING)
        array[...] = text
        return array
    return np.full(shape, value % 2 if spec.dtype == np.bool_ else value, spec.dtype)[()]


def _made_up_shape(spec: TensorSpec, value: int) -> tuple[int, ...]:
    shape = (None,) * value if spec.shape is None else spec.shape
    return tuple(value + 1 if size is None else size for size in shape)
