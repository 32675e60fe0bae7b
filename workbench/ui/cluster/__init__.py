"""`wb.topology`, `wb.devices`, `wb.log`, `wb.diagnose`: the present state of a cluster."""
