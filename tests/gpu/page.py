"""What the guide says of real GPUs, made of the results files in the repository; nothing there is written by hand.

    python -m tests.gpu.page     # after `python -m tests.gpu`, with the results file committed

Each check has the newest run in which it was not skipped. What neither the newest run of all checks nor a later one has
is checked no more.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.benchmarks.readme import replaced

RESULTS = Path(__file__).parents[1] / "benchmarks" / "results"
PAGE = Path(__file__).parents[2] / "notebooks" / "guide" / "how-to" / "gpus.md"
_STATES = {"ok": "yes", "FAILED": "**no**", "noted": ""}


def runs(folder: Path = RESULTS) -> list[dict[str, Any]]:
    """The results of all runs, oldest first."""
    return [json.loads(path.read_text(encoding="utf-8")) for path in sorted(folder.glob("gpu-*.json"))]


def section(parts: Sequence[Mapping[str, Any]]) -> str:
    """What stands between the markers."""
    newest: dict[str, tuple[int, dict[str, Any]]] = {}
    current = _current_names(parts)
    for number, run in enumerate(parts, 1):
        for row in run["rows"]:
            if row["name"] in current and (row["state"] != "skipped" or row["name"] not in newest):
                newest[row["name"]] = (number, row)
    used = sorted({number for number, _ in newest.values()})
    lines = ["| run | check | found | bar | met |", "|---|---|---|---|---|"]
    lines += [
        f"| {used.index(number) + 1} | {row['name']} | {_cell(row['found'])} | {_cell(row['bar'])} "
        f"| {_STATES.get(row['state'], row['state'])} |"
        for number, row in newest.values()
    ]
    return "\n".join(_described(used, parts)) + "\n\n" + "\n".join(lines) + "\n"


def _current_names(parts: Sequence[Mapping[str, Any]]) -> set[str]:
    """Names in the newest run of all checks, which has more than half as many rows as the largest one, and later."""
    sizes = [len(run["rows"]) for run in parts]
    newest = max((number for number, size in enumerate(sizes) if 2 * size > max(sizes)), default=0)
    return {row["name"] for run in parts[newest:] for row in run["rows"]}


def _described(used: Sequence[int], parts: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    for at, number in enumerate(used, 1):
        run = parts[number - 1]
        found = run["hardware"]
        gpus = f"{len(found['gpus'])} × {found['gpus'][0]} of {found['memory_bytes'] >> 30} GiB"
        versions = f"CUDA {_version(found['driver'])}, CuPy {found['cupy']}, NCCL {_nccl(found['nccl'])}"
        yield f"{at}. {run['date'][:10]}: {gpus}, {versions}, NumPy {found['numpy']}, Python {found['python']}"


def _version(number: int) -> str:
    return f"{number // 1000}.{number % 1000 // 10}"


def _nccl(number: Any) -> str:
    return (
        f"{number // 10000}.{number % 10000 // 100}.{number % 100}"
        if isinstance(number, int)
        else str(number)
    )


def _cell(text: str) -> str:
    return " ".join(text.replace("|", "\\|").split())


def main() -> int:
    """Writes the section into its page."""
    argparse.ArgumentParser(
        prog="python -m tests.gpu.page", description="Writes the newest results of real GPUs into the guide."
    ).parse_args()
    PAGE.write_text(replaced(PAGE.read_text(encoding="utf-8"), section(runs())), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
