"""JAX: arrays over its devices, collectives and programs traced for them, and the results of their operations."""
