"""Tasks that become one Dask cluster by `workbench join`: their secret, their addresses, who has joined."""
