"""Formats numbers and texts for all views: 3 significant digits, SI rates, IEC sizes, one unit per column."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from typing import Final

NOTHING: Final = "–"
"""Printed where a number has no meaning."""
SIGNS: Final = {"info": "", "good": "✔", "watching": "…", "warning": "▲", "error": "✖"}
"""The sign for each severity in text, where no icon is drawn."""
MOST_NAMED: Final = 16
"""How many replicas to name in an error or alert, which is longer than a line of a view."""

_DTYPES: Final = {
    "float16": "f16",
    "float32": "f32",
    "float64": "f64",
    "bfloat16": "bf16",
    "complex64": "c64",
    "complex128": "c128",
}

# Characters that control a terminal, change the text's direction or end its line, and lone surrogates, which cannot
# be encoded.
_ACTING: Final = re.compile(
    "[\x00-\x08\x0a-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
)


def significant(value: float | None) -> str:
    """The number with 3 significant digits, never in exponent form; whole from 100 on, with commas from 1,000 on.

    >>> [significant(x) for x in (0.00588, 0.0123, 0.412, 5.4, 38.04, 214.7, 12345.6, None)]
    ['0.00588', '0.0123', '0.412', '5.40', '38.0', '215', '12,346', '–']
    """
    if value is None:
        return NOTHING
    if value == 0:
        return "0"
    if not math.isfinite(value):
        return str(value)
    exponent = int(f"{value:.2e}".partition("e")[2])  # of the rounded number: 9.996 becomes 10.0
    return f"{value:,.{max(0, 2 - exponent)}f}"


def size_text(size_bytes: int) -> str:
    """A size in binary units.

    >>> [size_text(n) for n in (0, 1000, 1024, 1536, 16 << 20, 3 << 30)]
    ['0 B', '1000 B', '1 KiB', '1.50 KiB', '16 MiB', '3 GiB']
    """
    value = float(size_bytes)
    for unit in ("B", "KiB", "MiB", "GiB", "TiB", "PiB"):
        if value < 1024 or unit == "PiB":
            break
        value /= 1024
    return f"{int(value)} {unit}" if value == int(value) else f"{significant(value)} {unit}"


def rate_text(gigabytes_per_second: float | None) -> str:
    """A bandwidth in decimal units.

    >>> [rate_text(x) for x in (375.8, 0.0123, None)]
    ['376 GB/s', '12.3 MB/s', '–']
    """
    if gigabytes_per_second is None:
        return NOTHING
    value, unit = gigabytes_per_second, "GB/s"
    for unit in ("GB/s", "MB/s", "kB/s"):
        if value >= 1 or unit == "kB/s":
            break
        value *= 1000
    return f"{significant(value)} {unit}"


def percent(share: float) -> str:
    """A share from 0 to 1 in whole percent, never a false 0 or 100; the sign stays on the line of the number.

    >>> [percent(x).replace(chr(0x202F), " ") for x in (0.0, 0.004, 0.0151, 0.625, 0.998, 1.0, 12.0)]
    ['0 %', '<1 %', '2 %', '63 %', '>99 %', '100 %', '1,200 %']
    """
    return f"{whole_percent(100 * share)}\N{NARROW NO-BREAK SPACE}%"


def whole_percent(value: float) -> str:
    """The number of a percentage, without the sign.

    >>> [whole_percent(x) for x in (0.0, 0.3, 62.5, 99.8, 100.0, 1200.0, math.nan)]
    ['0', '<1', '63', '>99', '100', '1,200', 'nan']
    """
    if not math.isfinite(value):
        return str(value)
    return "<1" if 0 < value < 1 else ">99" if 99 < value < 100 else f"{math.floor(value + 0.5):,}"


def time_unit(times_us: Iterable[float]) -> tuple[str, float]:
    """The most readable unit for a column of times, and how many µs it has.

    The median determines it, so that one outlier does not turn the rest into 0.00.

    >>> time_unit([3.0, 8.0, 2_000_000.0])
    ('µs', 1.0)
    """
    ordered = sorted(times_us)
    middle = ordered[len(ordered) // 2] if ordered else 0.0
    if middle < 1000:
        return "µs", 1.0
    return ("ms", 1e3) if middle < 1e6 else ("s", 1e6)


def dtype_text(dtype: str) -> str:
    """A short name of an element type: "f32", "i64", "u8", "bool"."""
    if dtype in _DTYPES:
        return _DTYPES[dtype]
    for long, short in (("uint", "u"), ("int", "i")):
        if dtype.startswith(long):
            return short + dtype[len(long) :]
    return dtype


def replicas_text(replicas: Sequence[int], most: int = 3) -> str:
    """Names some replicas by number, the same way in every text.

    Args:
      replicas: At least one replica.
      most: The most to name.

    >>> replicas_text([1]), replicas_text([1, 2]), replicas_text(range(9))
    ('replica 1', 'replicas 1 and 2', 'replicas 0, 1, 2 and 6 more')
    """
    if len(replicas) == 1:
        return f"replica {replicas[0]}"
    numbers = [str(replica) for replica in replicas[:most]]
    if more := len(replicas) - len(numbers):
        numbers.append(f"{more} more")
    return f"replicas {', '.join(numbers[:-1])} and {numbers[-1]}"


def shorten(text: str, width: int) -> str:
    """The text, cut to `width` characters with an ellipsis."""
    return text if len(text) <= width else text[: max(0, width - 1)] + "…"


def printable(text: str) -> str:
    r"""The text in one line, with escapes for characters that would control a terminal instead of being visible.

    >>> printable("all is well\r\x1b[31mlost\n")
    'all is well\\r\\x1b[31mlost\\n'
    """
    return _ACTING.sub(_escape, text)


def printable_lines(text: str) -> str:
    """As `printable`, for a text that may have several lines."""
    return "\n".join(map(printable, text.split("\n")))


def encodable(text: str) -> str:
    r"""The text with escapes for lone surrogates, which no file and no message can hold.

    >>> encodable("\udcff.py")
    '\\udcff.py'
    """
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode()


def _escape(found: re.Match[str]) -> str:
    return found[0].encode("unicode_escape").decode("ascii")
