"""Live views in notebook outputs. Nothing here is imported before a notebook with a kernel shows something."""
