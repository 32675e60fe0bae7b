"""CSV files: where records end, what types columns have, and the datasets."""
