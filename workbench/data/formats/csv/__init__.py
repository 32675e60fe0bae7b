"""CSV files: where records end, how columns are typed, and the datasets."""
