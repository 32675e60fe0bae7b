"""Text, TFRecord and Parquet files, beside plain Python loops and pyarrow's own scan; examples parsed in batches."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pyarrow.dataset

from tests.benchmarks import input_cases as cases
from tests.benchmarks.measure import Script
from workbench.data import Dataset, ParquetDataset, TextLineDataset, TFRecordDataset
from workbench.io import FixedLenFeature, parse_example

_ROWS = 1024
_FEATURES: dict[str, dict[str, Any]] = {
    "floats": {"x": FixedLenFeature((784,), np.float32), "y": FixedLenFeature((), np.int64)},
    "images": {"x": FixedLenFeature((), bytes), "y": FixedLenFeature((), np.int64)},
    "scalars": {
        **{f"i{n}": FixedLenFeature((), np.int64) for n in range(13)},
        **{f"f{n}": FixedLenFeature((), np.float32) for n in range(13)},
    },
}


def _parsed(what: str, kind: str) -> Iterable[Any]:
    """Repeatedly parses batches of in-memory examples."""
    batches = list(TFRecordDataset(cases.file(f"{kind}.examples")).batch(cases.PARSED_BATCH))
    features = _FEATURES[kind]
    if what == cases.PARSED_VIEWS:
        features = {**features, "x": FixedLenFeature((), memoryview)}
    while True:
        for batch in batches:
            yield parse_example(batch, features)


def _scan(columns: list[str] | None) -> Iterable[Any]:
    """Batches of pyarrow's default size, as NumPy arrays, like ours."""
    table = pyarrow.dataset.dataset(cases.file("table.parquet"))
    for batch in table.to_batches(columns=columns):
        rows = [column.to_numpy() for column in batch.columns]
        for start in range(0, batch.num_rows - _ROWS + 1, _ROWS):
            yield [column[start : start + _ROWS] for column in rows]


def _table(columns: list[str] | None) -> Dataset:
    return ParquetDataset(cases.file("table.parquet"), columns=columns).batch(_ROWS, drop_remainder=True)


def main() -> None:
    """Measures all cases."""
    script = Script("input", __doc__)
    text, records = cases.file("lines.txt"), cases.record_files()
    for what, per_item, unit, make in (
        (cases.LINES, _ROWS, "lines/s", lambda: TextLineDataset(text).batch(_ROWS, drop_remainder=True)),
        (cases.LINES_SINGLE, 1, "lines/s", lambda: TextLineDataset(text)),
        (cases.RECORDS, cases.BATCH, "records/s", lambda: TFRecordDataset(records).batch(cases.BATCH)),
        (cases.RECORDS_SINGLE, 1, "records/s", lambda: TFRecordDataset(records)),
    ):
        cases.measure_rate(script, "workbench", what, make, per_item=per_item, unit=unit)
    for what, columns in ((cases.TABLE, None), (cases.TABLE_COLUMNS, ["a", "c"])):
        for who, scan in (("workbench", _table), ("pyarrow scan", _scan)):
            cases.measure_rate(
                script,
                who,
                what,
                lambda scan=scan, columns=columns: scan(columns),  # type: ignore[misc]
                per_item=_ROWS,
                unit="rows/s",
            )
    for what, kind in cases.PARSED.items():
        examples = _parsed(what, kind)
        next(iter(examples))  # reads the file into the page cache
        cases.measure_rate(
            script,
            "workbench",
            what,
            lambda examples=examples: examples,  # type: ignore[misc]
            per_item=cases.PARSED_BATCH,
            unit="examples/s",
        )


if __name__ == "__main__":
    main()
