"""Pictures of pages with few colours, so that their files are small."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from PIL.Image import Image

_ROUNDS = 3


def few_colours(picture: Image) -> Image:
    """A picture with a palette of at most 256 colours.

    Most coverage finds a place for each colour; median cut, the default, counts pixels, and gives small marks the
    colour of something larger. Rounds of k-means then move the places to the colours of large grounds.
    """
    from PIL.Image import Dither, Quantize

    return picture.convert("RGB").quantize(
        256, method=Quantize.MAXCOVERAGE, kmeans=_ROUNDS, dither=Dither.NONE
    )
