"""`wb.explain_sharding`: which replica reads what of a dataset, or holds what of an array."""
