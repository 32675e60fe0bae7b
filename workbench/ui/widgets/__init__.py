"""Live views in notebook outputs. Nothing here is imported before something is shown in a notebook with a kernel."""
