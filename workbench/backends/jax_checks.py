"""JAX's own look at what its operations give."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import jax


@contextlib.contextmanager
def checked_operations() -> Iterator[None]:
    """Operations that run meanwhile on this thread raise a FloatingPointError where they give NaN or infinity."""
    with jax.debug_nans(True), jax.debug_infs(True):
        yield
