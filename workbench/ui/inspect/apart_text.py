"""One sentence on copies that differ: which ones, since which step and where; and the evidence."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING

from workbench.telemetry.formatting import replicas_text
from workbench.ui.render.text_table import figure

if TYPE_CHECKING:
    from workbench.ui.inspect.differences import Gap
    from workbench.ui.inspect.since_step import Since


def apart_text(
    contents: Sequence[Hashable], gaps: Sequence[Gap], since: Since, shape: Sequence[int], *, complete: bool
) -> tuple[str, str]:
    """Says that copies differ.

    Args:
      contents: By replica, a value that is equal if copies are equal.
      gaps: How far each is from replica 0's; empty if shapes differ.
      since: When they diverged.
      shape: The shape of the copies.
      complete: Whether all elements were compared.

    Returns:
      The sentence, and the evidence without a full stop.
    """
    content, equal = Counter(contents).most_common(1)[0]
    # If there are two halves, the others are compared with replica 0's half.
    if Counter(contents)[contents[0]] == equal:
        content = contents[0]
    same = [rank for rank, each in enumerate(contents) if each == content]
    others = [rank for rank, each in enumerate(contents) if each != content]
    if equal == 1:
        who = f"{'Both' if len(contents) == 2 else f'All {len(contents)}'} copies differ"
    else:
        verb = "differs" if len(others) == 1 else "differ"
        rest = f"the other {len(same)}" if len(same) > len(others) else replicas_text(same)
        who = f"{replicas_text(others).capitalize()} {verb} from {rest}"
    step = since.exact
    when = f" since step {step}" if step >= 0 else f", {since.text}" if since.text else ""
    places = {gap[2:] for gap in gaps if gap.elements}
    where = _where(*places.pop(), shape) if complete and len(places) == 1 and shape else ""
    worst = max(gaps, key=lambda gap: gap.largest, default=None)
    if worst is None:
        evidence = "their shapes or dtypes differ"
    elif not worst.elements:
        evidence = "they differ in their bits alone, as 0 and -0 do"
    else:
        evidence = f"the largest difference is {figure(worst.largest)}"
        if complete:
            evidence += f", {worst.elements:,} of {math.prod(shape):,} elements differ"
    if 1 < len(same) < len(contents):
        evidence += f"; {replicas_text(same)} are equal"
    return f"{who}{when}{where}", evidence


def _where(first: int, last: int, rows: int, shape: Sequence[int]) -> str:
    if rows == shape[0]:
        return ""
    noun = "element" if len(shape) == 1 else "row"
    if rows == 1:
        return f", in {noun} {first} only"
    if rows == 2:
        return f", in {noun}s {first} and {last} only"
    if rows == last - first + 1:
        return f", in {noun}s {first} to {last} only"
    return f", in {rows:,} of {shape[0]:,} {noun}s"
