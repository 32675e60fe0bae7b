"""Figures, tables and pages as text and as script-free HTML."""
