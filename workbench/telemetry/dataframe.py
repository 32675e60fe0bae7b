"""Records as a pandas data frame; the only file that imports pandas."""

from __future__ import annotations

from typing import TYPE_CHECKING

from workbench.errors import BackendUnavailable

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa


def to_pandas(table: pa.Table) -> pd.DataFrame:
    """The table as a data frame, text columns as categories.

    Raises:
      BackendUnavailable: if pandas is not installed.
    """
    try:
        import pandas  # noqa: F401 - pyarrow needs it; its own error would not say what to do
    except ImportError as error:
        raise BackendUnavailable(
            "to_pandas() needs pandas, which is not installed: pip install pandas, or use to_arrow()"
        ) from error
    return table.to_pandas()
