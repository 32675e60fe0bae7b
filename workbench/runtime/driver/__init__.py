"""The notebook's side of a strategy: its replicas, the steps they run, values, failures, recovery."""
