"""Readers of columnar formats and of other libraries' data: one file for each, with its source and its dataset."""
