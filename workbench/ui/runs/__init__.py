"""`wb.record`, `wb.open_run`, `wb.runs`: what happened, kept in files."""
