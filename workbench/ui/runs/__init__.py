"""`wb.record`, `wb.open_run`, `wb.runs`: recorded runs in files."""
