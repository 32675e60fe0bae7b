"""Strategies: which replicas there are, where variables live, how values are combined."""
