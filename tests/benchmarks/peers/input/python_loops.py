"""Text and TFRecord files in plain Python loops: what a reader costs that does nothing else."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator

import google_crc32c

from tests.benchmarks import input_cases as cases
from tests.benchmarks.measure import Script


def records(paths: Iterable[str]) -> Iterator[bytes]:
    """The records of TFRecord files, both checksums of each compared."""
    crc, header = google_crc32c.value, struct.Struct("<QI")
    for path in paths:
        with open(path, "rb", buffering=1 << 20) as file:
            read = file.read
            while head := read(12):
                length, expected = header.unpack(head)
                if _masked(crc(head[:8])) != expected:
                    raise ValueError(f"{path}: damaged length")
                data = read(length)
                if _masked(crc(data)) != int.from_bytes(read(4), "little"):
                    raise ValueError(f"{path}: damaged record")
                yield data


def lines(path: str) -> Iterator[bytes]:
    """The lines of a text, line ends included."""
    with open(path, "rb", buffering=1 << 20) as file:
        yield from file


def _masked(crc: int) -> int:
    return (((crc >> 15) | (crc << 17)) + 0xA282EAD8) & 0xFFFFFFFF


def main() -> None:
    """Measures both."""
    script = Script("input", __doc__)
    paths, text = cases.record_files(), cases.file("lines.txt")
    cases.measure_rate(script, "Python loop", cases.RECORDS_SINGLE, lambda: records(paths), unit="records/s")
    cases.measure_rate(script, "Python loop", cases.LINES_SINGLE, lambda: lines(text), unit="lines/s")


if __name__ == "__main__":
    main()
