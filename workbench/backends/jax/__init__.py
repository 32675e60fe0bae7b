"""JAX: arrays over its devices, collectives and programs traced for them, and what their operations give."""
