"""Runs the reference vectors through the public API of workbench."""
