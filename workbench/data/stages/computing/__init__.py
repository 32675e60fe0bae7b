"""Stages that call a user's function for elements."""
