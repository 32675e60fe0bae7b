"""Marks fields that were added after models were first saved in recorded runs and notebooks."""

from typing import Final

ADDED: Final = {"added": True}
"""Metadata of model fields that are missing in files of earlier versions; views draw these files without them."""
