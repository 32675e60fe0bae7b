"""`wb.explain_sharding`: who reads what of a dataset, who holds what of an array."""
