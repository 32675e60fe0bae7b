"""Elements from a Python generator."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import GeneratorType
from typing import Any, ClassVar, Final

import numpy as np

from workbench import tree
from workbench.backends.conversion import converted
from workbench.backends.numpy import STRING
from workbench.data.passes import Pass
from workbench.data.spec import UNKNOWN_CARDINALITY, Spec, TensorSpec, is_shape
from workbench.data.stage import Source
from workbench.data.structure import Array, Structure, convert, flatten
from workbench.data.tables import Failed, Run, single
from workbench.errors import FailedPreconditionError, InvalidArgumentError

_EXACT_FLOATS: Final = 2.0**53
"""float64 represents every integer below this."""


@dataclass(frozen=True, eq=False)
class Generated(Source):
    """The values of `generator(*args)`, which is called for each pass, checked against a signature."""

    name: ClassVar[str] = "generator"
    generator: Callable[..., Any]
    signature: Any
    args: tuple[Any, ...] = ()

    def open(self, current: Pass) -> Iterator[Run]:
        """Starts one pass."""
        specs, spec = tree.flatten_records(self.signature)
        structure: Structure = flatten(tree.unflatten(spec, [np.int8(0)] * len(specs)))[1]
        for index, value in enumerate(self._values()):
            try:
                leaves, found = flatten(_as_arrays(value, self.signature), _component)
                if found != structure:
                    raise InvalidArgumentError(
                        f"from_generator: element {index} is {value!r:.60}, with {len(leaves)} component(s), the "
                        f"signature {self.signature} has {len(specs)}; make the generator yield that structure"
                    )
                row = [_fitted(leaf, want, index) for leaf, want in zip(leaves, specs, strict=True)]
                made = single(row, structure, np.array([index]) if current.provenance else None)
            except Exception as error:  # the generator can continue
                made = Failed(error)
            yield made

    def _values(self) -> Iterator[Any]:
        """The values that the function yields.

        Raises:
          FailedPreconditionError: if it returns the same generator again, which has nothing left.
          TypeError: if its result is not iterable.
        """
        made = self.generator(*self.args)
        if isinstance(made, GeneratorType) and inspect.getgeneratorstate(made) == inspect.GEN_CLOSED:
            raise FailedPreconditionError(
                "from_generator: the function returned a generator that has ended, perhaps in an earlier iteration of "
                "the dataset; make a new one in each call"
            )
        try:
            elements = iter(made)
        except TypeError as error:
            raise TypeError(
                f"from_generator: the function returned {type(made).__name__} {made!r:.60}; let it yield elements, or "
                "return something to iterate over"
            ) from error
        count = 0
        try:
            for value in elements:
                yield value
                count += 1
        except Exception as error:
            note = f"in the generator of a dataset, at element {count}"
            # Each iteration may raise the same exception object.
            if note not in getattr(error, "__notes__", ()):
                error.add_note(note)
            raise

    def element_spec(self) -> Any:
        """The nested spec of an element."""
        return self.signature

    def cardinality(self) -> int:
        """Number of elements, `INFINITE_CARDINALITY` or `UNKNOWN_CARDINALITY`."""
        return UNKNOWN_CARDINALITY


def checked_signature(signature: Any) -> Any:
    """A nested spec, as the user gave it.

    Raises:
      TypeError: if something in it is not a spec, or there is none.
    """
    specs = tree.flatten_records(signature, is_leaf=lambda node: isinstance(node, list))[0]
    if not specs or not all(isinstance(spec, Spec) for spec in specs):
        raise TypeError(
            f"from_generator: output_signature is {signature!r:.80}; nest TensorSpecs in tuples and dicts"
        )
    return signature


def signature_of(output_types: Any, output_shapes: Any) -> Any:
    """Nested `TensorSpec`s from nested dtypes and, if given, shapes.

    Raises:
      TypeError: without types.
    """
    if output_types is None:
        raise TypeError("from_generator needs output_signature (nested TensorSpecs), or output_types")
    types, structure = tree.flatten_records(output_types, is_leaf=lambda node: isinstance(node, list))
    if any(isinstance(kind, list) for kind in types):
        raise TypeError(
            f"from_generator: output_types is {output_types!r}; nest dtypes in tuples and dicts: a list stands for "
            "one array"
        )
    shapes: list[Any] = [None] * len(types)
    if output_shapes is not None:
        shapes = tree.flatten_records(output_shapes, is_leaf=lambda node: node is None or is_shape(node))[0]
    return tree.unflatten(
        structure, [TensorSpec(shape, dtype) for shape, dtype in zip(shapes, types, strict=True)]
    )


def _as_arrays(value: Any, wanted: Any) -> Any:
    """The value, with lists in place of tuples where the signature has an array."""
    match value:
        case tuple() if isinstance(wanted, TensorSpec):
            return list(value)
        case tuple() if type(value) is tuple and type(wanted) is tuple and len(value) == len(wanted):
            return tuple(map(_as_arrays, value, wanted))
        case dict() if isinstance(wanted, dict) and value.keys() == wanted.keys():
            return {name: _as_arrays(part, wanted[name]) for name, part in value.items()}
    return value


def _component(value: Any) -> Any:
    """A component; Python numbers stay unchanged until the signature determines their dtype."""
    if isinstance(value, np.ndarray) and value.dtype == STRING and value.size:
        value = value.tolist()  # of objects, which may be numbers
    return value if _holds_numbers(value) else convert(value)


def _holds_numbers(value: Any) -> bool:
    while isinstance(value, list | tuple | range) and value:
        value = value[0]
    return isinstance(value, int | float | complex) and not isinstance(value, np.generic)


def _numbers(value: Any, want: TensorSpec, index: int) -> Any:
    """Python numbers with all their digits; `convert` would round them to float32."""
    if want.dtype == STRING:
        return convert(value)
    try:
        given = np.asarray(value)
        if given.dtype.kind == "O" or (want.dtype.kind in "iu" and not _keeps_digits(given)):
            # NumPy turns integers beyond 64 bits into objects. It turns integers into floats beside a float, or in a
            # list that needs both int64 and uint64.
            items = np.asarray(value, object)
            parts = items.reshape(-1).tolist()
            if want.dtype.kind in "iu" and all(map(_is_whole, parts)):
                given = np.array([int(part.real) for part in parts], want.dtype).reshape(items.shape)
            elif given.dtype.kind == "O" and all(isinstance(part, int | float | complex) for part in parts):
                has_complex = any(isinstance(part, complex) for part in parts)
                given = np.asarray(value, np.complex128 if has_complex else np.float64)
    except OverflowError:
        raise _unfit(value, want, index) from None
    except ValueError:  # rows differ in length
        return convert(value)
    return given[()] if given.dtype.kind in "biufc" else convert(value)


def _keeps_digits(given: Array) -> bool:
    """Whether integers kept all digits, in case NumPy turned some into floats."""
    return given.dtype.kind not in "fc" or bool((np.abs(given.real) < _EXACT_FLOATS).all())


def _is_whole(number: Any) -> bool:
    if isinstance(number, complex):
        return not number.imag and number.real.is_integer()
    return isinstance(number, int) or (isinstance(number, float) and number.is_integer())


def _fitted(value: Any, want: Any, index: int) -> Any:
    if not isinstance(want, TensorSpec):
        if not isinstance(want, Spec) or not want.is_compatible_with(value):
            raise InvalidArgumentError(
                f"from_generator: element {index} has {value!r:.60}, the signature {want}"
            )
        return value
    if _holds_numbers(value):
        value = _numbers(value, want, index)
    if not isinstance(value, np.ndarray | np.generic | bytes):
        raise InvalidArgumentError(f"from_generator: element {index} has {value!r:.60}, the signature {want}")
    if want.dtype == STRING and isinstance(value, np.ndarray) and not value.size:
        value = value.astype(object)  # an empty list, which shows no dtype
    if want.dtype == STRING and isinstance(value, np.ndarray | np.generic) and value.dtype != STRING:
        raise _unfit(value, want, index)
    if want.dtype != STRING:
        fitted = converted(np.bytes_(value) if isinstance(value, bytes) else value, want.dtype)
        if fitted is None:
            raise _unfit(value, want, index)
        value = fitted
    if not want.accepts(value):
        raise InvalidArgumentError(
            f"from_generator: element {index} has shape {np.shape(value)}, the signature says {want}; "
            "give the varying dimensions as None in output_signature"
        )
    return value


def _unfit(value: Any, want: TensorSpec, index: int) -> InvalidArgumentError:
    return InvalidArgumentError(
        f"from_generator: element {index} is {value!r:.60}, which does not fit into {want.dtype_name}, the dtype of "
        "the signature; convert it"
    )
