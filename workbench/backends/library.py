"""Array libraries by name, for a strategy's replicas to compute with."""

from __future__ import annotations

import importlib
from types import ModuleType
from typing import Any, Final, Literal, get_args

import numpy as np

from workbench.backends.numpy import check_jax_width
from workbench.errors import InvalidArgumentError

Library = Literal["numpy", "cupy", "jax"]
_MODULES: Final = {"cupy": "workbench.backends.cupy", "jax": "workbench.backends.jax.mesh"}


def checked_library(name: Any) -> Library:
    """`name`, if it is an array library that replicas can compute with.

    Raises:
      InvalidArgumentError: if it is not.
    """
    if name not in get_args(Library):
        raise InvalidArgumentError(f"backend must be one of {', '.join(get_args(Library))}, got {name!r}")
    found: Library = name
    return found


def namespace_named(library: Library) -> Any:
    """The module with the library's array functions.

    Raises:
      BackendUnavailable: if it is not installed.
    """
    return np if library == "numpy" else _module(library).namespace()


def owned(library: Library, value: Any) -> Any:
    """A copy of `value` as an array of the library, on the current device."""
    if library == "numpy":
        return np.array(value)
    namespace = namespace_named(library)
    if library == "jax":
        check_jax_width(np.asarray(value))
    return namespace.array(value)


def _module(library: Literal["cupy", "jax"]) -> ModuleType:
    return importlib.import_module(_MODULES[library])
