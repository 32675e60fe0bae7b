"""Strategies, which determine the replicas, the place of variables, and how values are combined."""
