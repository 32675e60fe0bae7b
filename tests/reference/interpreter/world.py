"""What a case may use besides its input."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tests.reference.interpreter.clusters import Clusters


@dataclass(frozen=True, slots=True)
class World:
    """The surroundings of one case.

    Attributes:
      scratch: A folder of its own, empty at first.
      clusters: The clusters that cases share.
    """

    scratch: Path
    clusters: Clusters
