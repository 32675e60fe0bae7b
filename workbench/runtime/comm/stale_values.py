"""The error for a value that was lost with its process and that cannot be created again automatically."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from workbench.errors import StaleGeneration


def stale_value(rank: int, where: str) -> StaleGeneration:
    """The error for a step's result that a replica no longer holds.

    Args:
      rank: The replica, -1 if it is not known.
      where: The argument, as `argument_text` names it; "" if the value itself was requested.
    """
    whose = f" of replica {rank}" if rank >= 0 else ""
    return StaleGeneration(
        f"{where or 'the value'}{whose} is gone: a step computed it in a process that was lost since, or for another "
        f"strategy. Run that step again (strategy.run), and give its new result to this one; keep what has to outlive "
        f"a worker in a wb.Variable, or fetch it to the notebook (strategy.gather, strategy.reduce)",
        replica=rank,
    )


def argument_text(spec: Any, refs: Sequence[tuple[int, int, int]], key: tuple[int, int]) -> str:
    """The argument that refers to a value, in the terms of the caller of `strategy.run`: "args[1]['image']".

    Args:
      spec: The structure of `(args, kwargs)`.
      refs: (number of the leaf, serial of the step that made it, leaf of that step).
      key: The serial and leaf to look for.
    """
    index = next((index for index, *made in refs if tuple(made) == key), None)
    if index is None:
        return ""
    which, *path = spec.paths()[index]
    return f"argument {'kwargs' if which else 'args'}{''.join(f'[{entry!r}]' for entry in path)}"
