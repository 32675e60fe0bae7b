"""Sizes of results that only the sizes of elements decide, found by two calls."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from workbench.data import Dataset, TensorSpec
from workbench.data.stages.computing.sized import depends_on_sizes

_MEAN = np.array([0.485, 0.456, 0.406], np.float32)
_TABLE = np.arange(12.0)
_SHAPE = (-1, 12, 2)
_IMAGES = Dataset.from_tensor_slices((np.zeros((2, 8, 6, 3), np.uint8), np.arange(2)))


def _normalized(image: Any) -> Any:
    return (image.astype(np.float32) / 255 - _MEAN) / 0.2


def _added(image: Any) -> Any:
    image = image.astype(np.int64)
    image += 1
    image[0] = 0
    return image


_BY_SIZES: list[tuple[Callable[..., Any], Any]] = [
    (lambda image, label: (_normalized(image), label), ((8, 6, 3), ())),
    (lambda image, label: image[2:-2, ::-1, 0], (4, 6)),
    (lambda image, label: image[image.shape[0] // 4 :, None], (6, 1, 6, 3)),
    (lambda image, label: np.transpose(image, (2, 0, 1)).reshape(3, -1), (3, 48)),
    (lambda image, label: image.reshape(_SHAPE), (6, 12, 2)),
    (lambda image, label: np.pad(image, ((1, 1), (0, 0), (0, 0))).mean(axis=0), (6, 3)),
    (lambda image, label: np.stack([np.flip(image, 1), np.roll(image, 1, axis=0)]), (2, 8, 6, 3)),
    (lambda image, label: np.where(image > 3, image, 0).sum((0, 1)).dot(_MEAN), ()),
    (lambda image, label: (np.exp(image.T / 2).clip(0, 1), label + 1, label * 0.5), ((3, 6, 8), (), ())),
    (lambda image, label: {"image": _added(image), "label": np.expand_dims(label, 0)}, ((8, 6, 3), (1,))),
]


def _shapes(spec: Any) -> Any:
    if isinstance(spec, dict):
        return tuple(map(_shapes, spec.values()))
    return tuple(map(_shapes, spec)) if isinstance(spec, tuple) else spec.shape


def _calls(function: Callable[..., Any], work: Callable[[], Any]) -> int:
    """How often `work` calls a function."""
    calls = 0

    def count(frame: Any, event: str, _: Any) -> None:
        nonlocal calls
        calls += event == "call" and frame.f_code is function.__code__

    sys.setprofile(count)
    try:
        work()
    finally:
        sys.setprofile(None)
    return calls


@pytest.mark.parametrize(("fn", "shapes"), _BY_SIZES)
def test_a_function_that_only_computes_is_called_twice_for_its_sizes(
    fn: Callable[..., Any], shapes: Any
) -> None:
    mapped = _IMAGES.map(fn)
    assert _calls(fn, lambda: mapped.element_spec) <= 2
    assert _shapes(mapped.element_spec) == shapes
    first = next(iter(mapped))
    parts = tuple(first.values()) if isinstance(first, dict) else first
    assert (tuple(map(np.shape, parts)) if isinstance(parts, tuple) else np.shape(parts)) == shapes


@pytest.mark.parametrize(
    ("fn", "shape"),
    [
        (lambda image, label: image[image > 0], (None,)),
        (lambda image, label: _TABLE[image[0, 0, 0] :], (None,)),
        (lambda image, label: _TABLE[label < _TABLE], (None,)),
        (lambda image, label: _TABLE[:label], (None,)),
        (lambda image, label: np.where(image), (None,)),
        (lambda image, label: image[: np.max(image)], (None, 6, 3)),
        (lambda image, label: image[:, np.add(label, 1) :], (8, None, 3)),
        (lambda image, label: np.repeat(_MEAN, label), (None,)),
        (lambda image, label: _MEAN.repeat(abs(label)), (None,)),
        (lambda image, label: np.unique(image), (None,)),
        (lambda image, label: image.nonzero()[0], (None,)),
        (lambda image, label: np.zeros(abs(label)), (None,)),
        (lambda image, label: np.expand_dims(image, abs(label) % 2).mean(0), (None, 6, 3)),
        (lambda image, label: image.sum(label % 2), (None, 3)),
        (lambda image, label: np.roll(image[: len(_TABLE[: label + 1])], 1), (None, 6, 3)),
    ],
)
def test_values_that_become_sizes_are_noticed(fn: Callable[..., Any], shape: Any) -> None:
    spec = _IMAGES.map(fn).element_spec
    assert (spec[0] if isinstance(spec, tuple) else spec).shape == shape


@pytest.mark.parametrize(
    "fn",
    [
        lambda x: x if x.mean() > 3 else x[:1],
        lambda x: np.array(x.tolist()),
        lambda x: np.random.default_rng(0).permutation(x),
        lambda x: x[_TABLE > 3],
        lambda x: print(x),
        lambda x: np.frombuffer(x, np.uint8),
        np.sort,
        len,
    ],
)
def test_other_code_is_tried_as_before(fn: Callable[..., Any]) -> None:
    assert not depends_on_sizes(fn, TensorSpec((3,), np.float32))


@pytest.mark.parametrize(
    "spec", [TensorSpec((None,), np.float32), TensorSpec(None, np.float32), TensorSpec((), "string")]
)
def test_unknown_sizes_and_texts_are_tried_as_before(spec: TensorSpec) -> None:
    assert depends_on_sizes(lambda x: x + x, TensorSpec((), np.float32))
    assert not depends_on_sizes(lambda x: x + x, spec)
