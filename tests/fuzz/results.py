"""How many cases each reader was given, in `results.json`, and the table of `README.md` that says so.

python -m tests.fuzz.results writes the table.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict, dataclass
from pathlib import Path

FILE = Path(__file__).with_name("results.json")
README = Path(__file__).with_name("README.md")
_BEGIN, _END = "<!-- results -->", "<!-- end of results -->"


@dataclass(frozen=True, slots=True)
class Result:
    """What came of the cases of one reader.

    Attributes:
      seed: The seed of the cases.
      cases: How many ran, from the first one on.
      refused: How many inputs raised the error of a damaged input.
      findings: How many raised something else, gave wrong data, hung, crashed or took too much memory.
      date: When the last of them ran.
    """

    seed: int
    cases: int
    refused: int
    findings: int
    date: str


def load(path: Path) -> dict[str, Result]:
    """The results in a file, by reader; none if there is no file."""
    if not path.exists():
        return {}
    return {name: Result(**fields) for name, fields in json.loads(path.read_text()).items()}


def save(path: Path, results: dict[str, Result]) -> None:
    """Writes results into a file that is whole at any time."""
    half = path.with_suffix(".half")
    half.write_text(json.dumps({name: asdict(result) for name, result in results.items()}, indent=1) + "\n")
    half.replace(path)


def table(results: dict[str, Result]) -> str:
    """Results in Markdown."""
    rows = [
        f"| {name} | {each.cases:,} | {each.refused:,} | {each.findings} | {each.seed} | {each.date} |"
        for name, each in results.items()
    ]
    total = sum(each.cases for each in results.values())
    head = ["| reader | cases | refused | findings | seed | date |", "|---|---|---|---|---|---|"]
    return "\n".join([*head, *rows, f"| all | {total:,} | | | | |"])


def with_table(text: str, results: dict[str, Result]) -> str:
    """A text with the table of results in its place."""
    before, _, rest = text.partition(_BEGIN)
    return f"{before}{_BEGIN}\n{table(results)}\n{_END}{rest.partition(_END)[2]}"


if __name__ == "__main__":
    argparse.ArgumentParser(
        prog="python -m tests.fuzz.results",
        description="Writes the table of results.json into README.md, beside it.",
    ).parse_args()
    README.write_text(with_table(README.read_text(), load(FILE)))
