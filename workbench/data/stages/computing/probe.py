"""Finds out what a user's function returns, without reading data.

The function is called with made-up values that fit the input's spec: ones and twos; for an unknown dimension, two and
three rows; for an unknown rank, a vector and a matrix; texts of one and of two bytes, which parsers of examples accept
as examples with the requested features. If the result then seems to have known sizes, and the function is not slow, it
is also called with values that have little in common, and with values that notice decisions, so that it takes its other
branches, too (`watched.py`). A dimension of the result that differs between any two calls is unknown. If code and
values cannot affect sizes, two calls are enough (`sized.py`).
"""

from __future__ import annotations

import contextlib
import inspect
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Final, TypeVar

import numpy as np

from workbench import tree
from workbench.backends.users_line import shared, warn
from workbench.data.spec import DatasetSpec, ElementsSpec, any_rank, any_size, relax, spec_of
from workbench.data.stage import Pipeline
from workbench.data.stages.computing import made_up
from workbench.data.stages.computing.alike import shared_sizes
from workbench.data.stages.computing.loops import has_while
from workbench.data.stages.computing.sized import depends_on_sizes, sized
from workbench.data.stages.computing.trials import tried
from workbench.data.stages.computing.watched import ways
from workbench.data.structure import flatten_element
from workbench.data.tables import Failed
from workbench.debugging import observing
from workbench.debugging.observing import Place
from workbench.errors import DataWarning, OutOfRangeError

_Result = TypeVar("_Result")


class UnfitResult(TypeError):
    """A function's result is of a kind that elements cannot hold."""


_FEWEST_EXAMPLES: Final = 100
_SECONDS: Final = 3.0
_TELLING_SECONDS: Final = 3.0
_FIRST_TIMES: Final = 10
"""The first calls tell much, and may take longer than the others."""
_TRIAL_SECONDS: Final = 2.0
"""A function that takes this long for two elements is not called with twenty more."""


def call(fn: Callable[..., Any], element: Any) -> Any:
    """Calls `fn` as map does: a plain tuple becomes several arguments, anything else is one.

    Raises:
      NotFinite: if `enable_check_numerics` is in effect, and it computes a value that is not finite.
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
    """Rejects a function that cannot accept the elements.

    Args:
      fn: The function.
      element_spec: The nested spec of the elements.
      stage: Name of the stage, for errors.

    Raises:
      TypeError: if the number of arguments does not fit.
    """
    try:
        signature = inspect.signature(fn)
    except (TypeError, ValueError):  # built-in functions need not show their signature
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


def result_spec(fn: Callable[..., Any], upstream: Pipeline, spec: Callable[[Any], Any] | None = None) -> Any:
    """The spec of `fn`'s result for elements of `upstream`.

    Args:
      fn: The function.
      upstream: The pipeline whose elements it gets.
      spec: Returns the spec of a result; by default, its spec as an element.

    Raises:
      UnfitResult: if the result is of a kind that elements cannot hold.
      Exception: whatever `fn` raises for the made-up values.
    """
    spec_of_result = spec or _spec
    begun = time.monotonic()
    first = result_example(fn, upstream)
    if depends_on_sizes(fn, upstream.element_spec):
        with contextlib.suppress(Exception):
            known, other = spec_of_result(first), spec_of_result(_quietly(fn, _sized(upstream)))
            if known == other:
                return known
    results = first, result_example(fn, upstream, made_up.TWOS)
    try:
        ones, twos = map(spec_of_result, results)
    except TypeError as error:
        raise UnfitResult(str(error)) from None
    known = relax(ones, twos)
    if not _has_sizes(known) or time.monotonic() - begun > _TRIAL_SECONDS:
        return known
    return _covering_others(lambda made: spec_of_result(_quietly(fn, made)), upstream, ones, known)


def _sized(upstream: Pipeline) -> Any:
    return sized(made_up.element(upstream, made_up.APART[0]))


def _covering_others(spec: Callable[[Any], Any], upstream: Pipeline, ones: Any, known: Any) -> Any:
    """`known`, without the sizes that results lack for other values or on other paths through the function.

    Args:
      spec: Returns the spec of the function's result for an element.
      upstream: The pipeline that provides its elements.
      ones: The spec of its result for an element of ones.
      known: The spec of results, as far as ones and twos show.
    """
    found = {made_up.ONES: ones}
    for filling in made_up.APART:
        with contextlib.suppress(Exception):  # it may raise for these
            found[filling] = tried(partial(spec, made_up.element(upstream, filling)))
            known = relax(known, found[filling])
    for filling in (made_up.ONES, made_up.APART[0]):
        if filling in found:
            known = _on_every_way(spec, made_up.element(upstream, filling), found[filling], known)
    return known


def _on_every_way(spec: Callable[[Any], Any], element: Any, first: Any, known: Any) -> Any:
    """`known`, without the sizes that results lack on other paths through the function.

    Args:
      spec: Returns the spec of the function's result for an element.
      element: A made-up element.
      first: The spec of the result for it.
      known: The spec of results, as far as other values show.
    """
    found, escaped = ways(lambda answers: spec(made_up.watched(element, answers)))
    if not found or found[0] != first:  # the function treats watched values differently
        return known
    for other in found:
        with contextlib.suppress(TypeError):
            known = relax(known, other)
    return any_size(known) if escaped else known


def _has_sizes(spec: Any) -> bool:
    """Whether a result's spec has any size that other elements may not have."""
    return any(
        (isinstance(part, ElementsSpec) and _has_sizes(part.element_spec)) or any(map(_is_size, _shape(part)))
        for part in tree.flatten(spec)[0]
    )


def _is_size(size: int | None) -> bool:
    return size is not None


def _shape(part: Any) -> tuple[int | None, ...]:
    if isinstance(part, DatasetSpec):
        return part.dataset_shape
    return () if isinstance(part, ElementsSpec) else part.shape or ()


def result_example(
    fn: Callable[..., Any], upstream: Pipeline, filling: made_up.Filling = made_up.ONES
) -> Any:
    """What `fn` returns for one made-up element of `upstream`.

    Raises:
      Unending: if it has a `while` and takes millions of lines.
      Exception: what it raises.
    """
    called = partial(_quietly, fn, made_up.element(upstream, filling))
    return tried(called, _FIRST_TIMES) if has_while(fn) else called()


def _quietly(fn: Callable[..., Any], element: Any) -> Any:
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):  # these values are made up
        return _applied(fn, element)


def refuse_unknown(upstream: Pipeline) -> None:
    """Rejects elements whose spec cannot be found: nothing made from them could ever be known.

    Raises:
      OutOfRangeError: if the spec of `upstream`'s elements cannot be found.
    """
    try:
        _ = upstream.element_spec
    except OutOfRangeError:
        raise
    except Exception:
        return  # its elements may still show it


def first_result(what: str, learn: Callable[[Any], _Result], upstream: Pipeline) -> _Result:
    """What `learn` returns for the first element of `upstream` for which it returns something.

    It continues while elements fail, for at least 100 of them and 3 seconds. It waits for a missing element as the
    iteration would, and warns after 3 seconds, because the element may or may not come.

    Args:
      what: What to find out, for errors.
      learn: A function of an element; if it raises, this is the element's error, and the next one is tried.
      upstream: The pipeline whose elements are tried.

    Raises:
      OutOfRangeError: if there was no result; the first error is its cause.
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
    """Warns if the first element takes long. Yields a function to call when the element has come."""
    told = (
        f"{what} is learnt from the first element of {upstream!r}, as the function refuses made-up values, and none "
        f"has come for {_TELLING_SECONDS:g} s; the search continues until an element arrives or the data ends"
    )
    timer = threading.Timer(_TELLING_SECONDS, shared(warn), (told, DataWarning))
    timer.daemon = True
    timer.start()
    try:
        yield timer.cancel
    finally:
        timer.cancel()


def learnt_spec(spec_of: Callable[[Any], Any], element: Any, upstream: Pipeline) -> Any:
    """The nested spec of results, learnt from one element of `upstream`.

    Results for other elements may have other sizes, even if those of `upstream` are known; and another rank, if the
    rank of its elements is unknown. So sizes are known only if the function also accepts other contents.

    Args:
      spec_of: Returns the nested spec of the function's result for an element.
      element: The element.
      upstream: The pipeline that the element comes from.
    """
    spec = spec_of(element)
    try:
        specs = upstream.element_spec
    except Exception:  # its elements have still shown it
        return any_size(spec)
    with contextlib.suppress(Exception):
        return shared_sizes(spec_of, element, specs)
    return any_size(spec) if all(map(_has_rank, tree.flatten(specs)[0])) else any_rank(spec)


def _has_rank(spec: Any) -> bool:
    if isinstance(spec, ElementsSpec):
        return all(map(_has_rank, tree.flatten(spec.element_spec)[0]))
    return spec.shape is not None


def _spec(result: Any) -> Any:
    leaves, structure = flatten_element(result)
    return structure.pack([spec_of(leaf) for leaf in leaves])
