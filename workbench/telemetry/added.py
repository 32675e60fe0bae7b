"""What marks fields that came after models were first saved, in recorded runs and notebooks."""

from typing import Final

ADDED: Final = {"added": True}
"""Metadata of model fields that files of earlier versions lack; views draw these files without them."""
