"""Readers of columnar formats and of other libraries' data: one file each, with its source and its dataset."""
