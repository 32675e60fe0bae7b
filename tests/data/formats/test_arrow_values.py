"""Values of Arrow arrays are those of `to_numpy`, without pandas."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pytest

from workbench.data.formats.arrow_values import values_of

_NUMBERS = [3, 0, 1, 7, 5, 2, 9, 4, 6, 8, 1]
_TYPES = [
    *(pa.int8(), pa.uint16(), pa.int32(), pa.uint64(), pa.float16(), pa.float32(), pa.float64()),
    *(pa.timestamp("us"), pa.timestamp("s", "Europe/Berlin"), pa.duration("ns"), pa.date32(), pa.date64()),
]


def _of(kind: pa.DataType, numbers: list[Any]) -> pa.Array:
    if pa.types.is_floating(kind):
        return pa.array([None if number is None else np.float64(number) for number in numbers]).cast(kind)
    if not pa.types.is_temporal(kind):
        return pa.array(numbers, kind)
    each = 86_400_000 if kind == pa.date64() else 1  # whole days
    whole = [None if number is None else number * each for number in numbers]
    return pa.array(whole, pa.int64() if kind.bit_width == 64 else pa.int32()).cast(kind)


_CASES = {
    **{str(kind): _of(kind, _NUMBERS) for kind in _TYPES},
    **{f"{kind} with nulls": _of(kind, [None, *_NUMBERS, None]) for kind in _TYPES if "int" not in str(kind)},
    "bool": pa.array([number % 2 == 0 for number in _NUMBERS]),
    "string": pa.array([str(number) * number for number in _NUMBERS]),
    "binary": pa.array([b"\0\xff" * number for number in _NUMBERS]),
    "of a fixed size": pa.array([b"%03d" % number for number in _NUMBERS], pa.binary(3)),
    "time of a day": pa.array(_NUMBERS, pa.time64("us")),
}


@pytest.mark.parametrize("has_pandas", [True, False])
@pytest.mark.parametrize("array", _CASES.values(), ids=_CASES)
@pytest.mark.parametrize("part", [slice(None), slice(1, None), slice(3, 9), slice(2, 2)], ids=str)
def test_values_are_those_of_to_numpy(
    array: pa.Array, part: slice, has_pandas: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    array = array[part]
    text = pa.types.is_string(array.type) or "binary" in str(array.type)
    wanted = (array.cast(pa.large_binary()) if text else array).to_numpy(zero_copy_only=False)
    if not has_pandas:
        monkeypatch.delitem(sys.modules, "pandas", raising=False)

    found = values_of(array)

    assert found.dtype == wanted.dtype
    np.testing.assert_array_equal(found, wanted)


_READ = """
import sys
from workbench.data import ArrowDataset, CsvDataset
rows = list(ArrowDataset(sys.argv[1])), list(CsvDataset(sys.argv[2]))
assert [[len(row) for row in each] for each in rows] == [[3] * 2] * 2, rows
assert "pandas" not in sys.modules
"""


def test_reading_arrow_and_csv_files_loads_no_pandas(tmp_path: Path) -> None:
    table = pa.table({"x": [1, 2], "y": [0.5, None], "name": ["a", "b"]})
    pyarrow.feather.write_feather(table, tmp_path / "a.arrow")
    (tmp_path / "a.csv").write_text("x,y,name\n1,0.5,a\n2,0.25,b\n")

    subprocess.run(
        [sys.executable, "-c", _READ, tmp_path / "a.arrow", tmp_path / "a.csv"], check=True, timeout=60
    )
