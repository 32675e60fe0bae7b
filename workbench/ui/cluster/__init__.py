"""`wb.topology`, `wb.devices`, `wb.log`, `wb.diagnose`: a cluster now."""
