"""The section of the guide's comparison with pictures side by side and what each page costs; made of results files."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from tests.benchmarks.pictures import IMAGES, PICTURES, ROOT, TAKEN, Picture
from tests.benchmarks.summary import Figure, Key, figures

PAGE = ROOT / "notebooks" / "guide" / "comparison.md"
OURS = "workbench"


class Tool(NamedTuple):
    """A column of the table of pages.

    Attributes:
      name: Its head.
      who: As the cases call it.
      what: What they call its page.
      replicas: As the cases have it.
    """

    name: str
    who: str
    what: str = "page"
    replicas: int = 2


TOOLS = (
    Tool("workbench, Overview", OURS),
    Tool("Dask, Status", "Dask /status"),
    Tool("TensorBoard, Time Series", "TensorBoard"),
    Tool("Monarch, Overview", "Monarch"),
    Tool("nvdashboard, Machine Resources", "nvdashboard machine resources", "pane", 0),
)
COSTS = {
    "first data": "opened until the first data are painted",
    "sent until then": "sent until then",
    "sent in 10 s more": "sent in the next 10 s",
    "CPU while open": "CPU of the processes that serve it",
}
ARRAYS = {
    "sharding": "who holds which part of 1 GB of JAX",
    "sharding, sent": "sent for that",
    "inspect 1 GB": "figures of 1 GB",
    "its elements": "elements of 1 GB",
}
"""Case -> what it is, of workbench and treescope."""


def section(parts: Sequence[Mapping[str, Any]], taken: Mapping[str, Any] | None = None) -> str:
    """What stands between the markers of the page.

    Args:
      parts: Results as `readme.newest` gives them.
      taken: What is known of the pictures; by default what their command wrote.
    """
    if taken is None:
        taken = json.loads(TAKEN.read_text(encoding="utf-8"))
    found = figures(row for data in parts for row in data["rows"])
    of_views = [data for data in parts if any(row["suite"] == "views" for row in data["rows"])]
    when = of_views[0]["machine"]["date"] if of_views else "not measured"
    return "\n".join(
        (
            *_pictures(taken),
            "",
            f"What a page costs, measured in Chromium without a GPU ({when}):",
            "",
            *_costs(found),
            "",
            "nvdashboard is opened in a JupyterLab that is there already, so its code is not counted. TensorBoard is",
            "sent nothing more because its page asks again only if a person switches that on.",
            "",
            *_arrays(found),
            "",
            *_views(found),
            "",
        )
    )


def _pictures(taken: Mapping[str, Any]) -> Iterator[str]:
    """Two pictures per row, each row with a caption row above it."""
    shown = [picture for picture in PICTURES if picture.name in taken]
    for at in range(0, len(shown), 2):
        pair = shown[at : at + 2]
        captions = [_caption(picture, taken[picture.name]) for picture in pair]
        yield _row(captions if at == 0 else [f"**{caption}**" for caption in captions])
        if at == 0:
            yield _row(["---"] * 2)
        yield _row([f"![{picture.shows}](images/{IMAGES.name}/{picture.name}.webp)" for picture in pair])
        yield _row([_capital(picture.shows) for picture in pair])


def _caption(picture: Picture, known: Mapping[str, str]) -> str:
    name, _, what = picture.title.partition(", ")
    return f"{name} {known['version']}: {what}, {known['date']}"


def _costs(found: Mapping[Key, Figure]) -> Iterator[str]:
    yield _row(["", *(tool.name for tool in TOOLS)])
    yield _row(["---"] * (1 + len(TOOLS)))
    for what, words in COSTS.items():
        keys = [Key("views", tool.replicas, tool.who, f"{tool.what}, {what}") for tool in TOOLS]
        yield _row([words, *(_text(found.get(key)) for key in keys)])


def _arrays(found: Mapping[Key, Figure]) -> Iterator[str]:
    tools = ("workbench", "treescope, JAX", "treescope, NumPy")
    yield _row(["", *tools])
    yield _row(["---"] * (1 + len(tools)))
    for what, words in ARRAYS.items():
        yield _row([words, *(_text(found.get(Key("views", 2, who, what))) for who in tools)])


def _views(found: Mapping[Key, Figure]) -> Iterator[str]:
    code, packed = (_text(found.get(Key("views", 0, OURS, f"views' code{of}"))) for of in ("", ", gzip"))
    yield f"The code of all views has {code}, with gzip {packed}."
    paint, frames, work = (
        _text(found.get(Key("views", 512, OURS, f"overview, {what}")))
        for what in ("first paint", "frames", "main thread per update")
    )
    yield f"The Overview of 512 replicas while ten updates a second come: first paint {paint}, {frames},"
    yield f"main thread per update {work}."


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def _text(figure: Figure | None) -> str:
    return "not measured" if figure is None else figure.text


def _capital(text: str) -> str:
    return text[0].upper() + text[1:]
