"""Tasks that form a Dask cluster by `workbench join`: their secret, addresses and attendance."""
