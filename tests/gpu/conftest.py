"""Processes for the contract suite, as for the collectives that need no GPU."""

from __future__ import annotations

from tests.communicators.conftest import pool as pool
