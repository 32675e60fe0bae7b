"""Stages that choose and order elements."""
