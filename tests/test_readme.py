"""What README.md and the guide say of the state of the project, held to what there is."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

import workbench
from tests.reference.outcomes import exists
from tests.reference.standing import standings

PACKAGE = Path(workbench.__file__).parent
ROOT = Path(__file__).parents[1]
GUIDE = ROOT / "notebooks" / "guide"
STATUS = GUIDE / "reference" / "status.md"
BEYOND_VECTORS = {"checkpoints": ("Checkpoint", "train.Checkpoint", "distribute.Checkpoint", "saved_model")}
"""What no vector asks for: in words, and the public names of which one exists once it is built."""


def not_built() -> list[str]:
    """What the table of features has to call not built, in its words."""
    areas = [standing.later for _, standing in sorted(standings().items()) if standing.missing]
    # An area may need another one first.
    return [*dict.fromkeys(areas), *(words for words, names in BEYOND_VECTORS.items() if not exists(*names))]


def documents() -> list[Path]:
    """The texts that people read first."""
    return [ROOT / "README.md", ROOT / "ARCHITECTURE.md", *sorted(GUIDE.rglob("*.md"))]


def test_what_is_not_built_is_said_line_by_line() -> None:
    row = re.search(r"^\| not built yet \| (.*) \|$", STATUS.read_text(encoding="utf-8"), re.MULTILINE)

    if not not_built():
        assert row is None, "everything is built: leave the row out"
        return
    assert row is not None
    assert row.group(1) == ", ".join(not_built()), "write the row anew: the right side has what is not built"


def test_each_missing_area_has_its_words() -> None:
    assert [name for name, area in standings().items() if bool(area.missing) != bool(area.later)] == []


@pytest.mark.parametrize("words", BEYOND_VECTORS)
def test_nothing_advises_what_is_not_built(words: str) -> None:
    if exists(*BEYOND_VECTORS[words]):
        return
    # A name such as `experimental_symbolic_checkpoint` gives no advice.
    word = re.compile(rf"\b{words.removesuffix('s')}", re.IGNORECASE)
    advice = [
        f"{path.name}: {line}"
        for path in documents()
        for line in path.read_text(encoding="utf-8").splitlines()
        if word.search(line) and not line.startswith("| not built yet |")
    ]
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and word.search(node.value):
                advice += [f"{path.relative_to(PACKAGE)}:{node.lineno}"]

    assert advice == []


def test_the_readme_has_what_never_ran() -> None:
    readme, status = (path.read_text(encoding="utf-8") for path in (ROOT / "README.md", STATUS))
    never = re.findall(r"\| ([^|(]+?)(?: \([^|]*)? \|[^|]*\*\*(?:never|nothing) ", status)

    assert {"several hosts", "cluster resolvers", "NVIDIA GPUs", "TPUs"} <= set(never)
    said = re.findall(r"^\| ([^|]+) \|.*\*\*(?:never|not) ", readme, re.MULTILINE)
    assert {"several hosts", "NVIDIA GPUs", "TPUs"} <= set(said)
    for place in ("Slurm", "Kubernetes", "Google Compute Engine", "TPU"):
        assert re.search(rf"\*\*[^*]*{place}[^*]*\*\*", readme), f"nothing says that {place} was never used"
