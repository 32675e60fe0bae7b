"""DumpOptions: what a dump holds, and for which operations."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from workbench import by_value
from workbench.arguments import whole_number
from workbench.backends.numpy import as_dtype
from workbench.errors import CaptureError

MODES: Final = (
    "NO_TENSOR",
    "CURT_HEALTH",
    "CONCISE_HEALTH",
    "FULL_HEALTH",
    "SHAPE",
    "FULL_NUMERICS",
    "FULL_TENSOR",
)
"""How much of each array is dumped."""


@dataclass(frozen=True, slots=True)
class DumpOptions:
    """What a dump holds; sent to the replicas.

    Attributes:
      root: The folder.
      mode: One of `MODES`.
      buffer: How many of the newest operations each process keeps until it flushes them; 0 writes each immediately.
      op_regex: Only operations whose name matches from its beginning; None for all.
      dtypes: Only arrays of these dtypes: names, or a function from dtype to bool; None for all.
    """

    root: str
    mode: str
    buffer: int
    op_regex: str | None
    dtypes: tuple[str, ...] | Callable[[np.dtype[Any]], bool] | None

    def wants(self, op: str, dtype: np.dtype[Any]) -> bool:
        """Whether results of an operation with this dtype are dumped."""
        if self.op_regex is not None and not re.match(self.op_regex, op):
            return False
        if self.dtypes is None:
            return True
        return dtype.name in self.dtypes if isinstance(self.dtypes, tuple) else bool(self.dtypes(dtype))


def dump_options(
    root: str,
    *,
    mode: str,
    buffer: int,
    op_regex: str | None,
    dtypes: Sequence[Any] | Callable[[np.dtype[Any]], bool] | None,
) -> DumpOptions:
    """The options, checked.

    Args:
      root: The folder.
      mode: How much of each array, in any letter case.
      buffer: See `DumpOptions`; any number below 1 writes immediately.
      op_regex: See `DumpOptions`.
      dtypes: See `DumpOptions`; dtypes or their names.

    Raises:
      ValueError: for an unknown mode, a text that is not a regular expression, or dtypes that are not a list.
      TypeError: for invalid dtypes, or a size that is not a number.
      CaptureError: for a function of dtypes that cannot be sent.
    """
    if not isinstance(mode, str) or mode.upper() not in MODES:
        raise ValueError(f"tensor_debug_mode must be one of {', '.join(MODES)}, got {mode!r}")
    if op_regex is not None:
        if not isinstance(op_regex, str):
            raise TypeError(f"op_regex must be a text, got {op_regex!r:.60}")
        try:
            re.compile(op_regex)
        except re.error as error:
            raise ValueError(f"op_regex {op_regex!r} is not a regular expression: {error}") from error
    names: Any = dtypes
    if dtypes is not None and not callable(dtypes):
        if not isinstance(dtypes, Iterable) or isinstance(dtypes, (str, Mapping)):
            hint = f"; write [{dtypes!r}]" if isinstance(dtypes, str) else ""
            raise ValueError(
                f"tensor_dtypes must be a list of dtypes or a function, got {dtypes!r:.60}{hint}"
            )
        names = tuple(_name_of(dtype) for dtype in dtypes)
    if callable(names):
        try:
            by_value.dumps(names)
        except Exception as error:
            raise CaptureError(
                f"the function tensor_dtypes cannot travel to workers: {error}; let it use only "
                f"the dtype, numbers, texts and functions"
            ) from error
    kept = max(0, whole_number(buffer, "circular_buffer_size"))
    return DumpOptions(root, mode.upper(), kept, op_regex, names)


def _name_of(dtype: Any) -> str:
    """The dtype name that arrays report. NumPy holds texts as objects, which dumps have no dtype for."""
    return as_dtype(dtype).name
