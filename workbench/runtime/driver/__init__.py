"""The notebook's side of a gang: steps, values, failures."""
