"""JAX: arrays spread over its devices, traced collectives and programs, and the results of their operations."""
