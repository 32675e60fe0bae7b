"""Records and figures as pandas data frames."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from workbench.errors import LibraryMissing

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa


def to_pandas(table: pa.Table) -> pd.DataFrame:
    """The table as a data frame, text columns as categories.

    Raises:
      LibraryMissing: if pandas is not installed.
    """
    _pandas(", or use to_arrow()")  # pyarrow needs pandas, and its own error would not name the remedy
    return table.to_pandas()


def frame_of(rows: Iterable[Mapping[str, Any]]) -> pd.DataFrame:
    """A data frame of rows, each of which has its value for each column.

    Raises:
      LibraryMissing: if pandas is not installed.
    """
    return _pandas().DataFrame(list(rows))


def _pandas(or_else: str = "") -> Any:
    try:
        import pandas
    except ImportError as error:
        raise LibraryMissing(
            f"to_pandas() needs pandas, which is not installed: pip install pandas{or_else}"
        ) from error
    return pandas
